//! Runs the program as a process: reads its log as it is written, sends signals, and waits for its
//! end.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::TestDatabase;

/// Far longer than anything that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run of the program. It is killed when this is dropped.
pub struct Running {
    child: Child,
    pid: u32,
    log: watch::Receiver<Vec<Value>>,
    stdout: JoinHandle<std::io::Result<String>>,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// What it wrote on stdout.
    pub stdout: String,
    /// Its log lines.
    pub log: Vec<Value>,
}

impl Ended {
    /// The names of its events.
    pub fn events(&self) -> Vec<&str> {
        self.log.iter().filter_map(|line| line["event"].as_str()).collect()
    }

    /// How many events of this name it told.
    pub fn count(&self, event: &str) -> usize {
        self.events().iter().filter(|name| **name == event).count()
    }

    /// What it wrote on stdout, as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.stdout).with_context(|| format!("{self:?}"))
    }
}

impl TestDatabase {
    /// Starts the program beside the test.
    pub fn start(&self, args: &[&str], env: &[(&str, &str)]) -> Result<Running> {
        start(&self.url(), args, env)
    }
}

/// The program on a database, with the log as JSON. It is killed when its run is dropped.
pub fn program(url: &str, args: &[&str], env: &[(&str, &str)]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_tailrace"));
    program
        .args(args)
        .env_clear()
        .env("TAILRACE__DATABASE__URL", url)
        .env("TAILRACE__LOG__FORMAT", "json")
        // Tests read what commands log beside their result, as the daemon does.
        .env("TAILRACE__LOG__COMMAND_FILTER", "info,tailrace=debug")
        // A free port: several daemons run side by side.
        .env("TAILRACE__HTTP__BIND", "127.0.0.1:0")
        .env("USER", "tester")
        // Tests of other things let go at once.
        .env("TAILRACE__GUARD__POLICY_GRACE", "0s")
        // Tests stop it in the middle of a hold, and on a slow machine.
        .env("TAILRACE__DROP__MAX_HOLD", "30s")
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    program
}

/// Starts the program on a database, with the log as JSON.
pub fn start(url: &str, args: &[&str], env: &[(&str, &str)]) -> Result<Running> {
    let mut program = program(url, args, env);
    let mut child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let stderr = child.stderr.take().context("stderr is piped")?;
    let mut stdout = child.stdout.take().context("stdout is piped")?;
    let (sender, log) = watch::channel(Vec::new());
    tokio::spawn(async move {
        let mut lines = BufReader::new(stderr).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let line = serde_json::from_str(&line).unwrap_or(Value::String(line));
            sender.send_modify(|lines| lines.push(line));
        }
    });
    let stdout = tokio::spawn(async move {
        let mut text = String::new();
        stdout.read_to_string(&mut text).await?;
        Ok(text)
    });
    let pid = child.id().context("it has just been started")?;
    Ok(Running { child, pid, log, stdout })
}

impl Running {
    /// Sends it a signal, by its short name.
    pub async fn signal(&self, name: &str) -> Result<()> {
        let pid = self.pid.to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status().await?;
        ensure!(sent.success(), "kill -s {name} {pid}");
        Ok(())
    }

    /// The state letter of its process, as the kernel has it.
    pub async fn state(&self) -> Result<char> {
        let stat = tokio::fs::read_to_string(format!("/proc/{}/stat", self.pid)).await?;
        let after_name = stat.rsplit(')').next().context("a name")?;
        after_name.trim_start().chars().next().context("a state")
    }

    /// Returns once it has told so many events of this name.
    pub async fn event(&mut self, name: &str, times: usize) -> Result<()> {
        let told = self.log.wait_for(|lines| {
            lines.iter().filter(|line| line["event"].as_str() == Some(name)).count() >= times
        });
        let seen = tokio::time::timeout(PATIENCE, told).await.map(|seen| seen.is_ok());
        let last: Vec<_> = self.log.borrow().iter().rev().take(5).cloned().collect();
        ensure!(matches!(seen, Ok(true)), "{times} times {name} did not come; last: {last:?}");
        Ok(())
    }

    /// The first event of this name, once it has been logged.
    pub async fn told(&mut self, name: &str) -> Result<Value> {
        self.event(name, 1).await?;
        let log = self.log.borrow();
        let found = log.iter().find(|line| line["event"].as_str() == Some(name));
        found.cloned().context("it was told")
    }

    /// The events of this name that it has told so far.
    pub fn so_far(&self, name: &str) -> Vec<Value> {
        let log = self.log.borrow();
        log.iter().filter(|line| line["event"].as_str() == Some(name)).cloned().collect()
    }

    /// Kills it as `kill -9` does and waits until its process is gone.
    pub async fn kill(&mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Waits for its end.
    pub async fn end(mut self) -> Result<Ended> {
        let status = tokio::time::timeout(PATIENCE, self.child.wait())
            .await
            .with_context(|| format!("it does not end: {:?}", *self.log.borrow()))??;
        let stdout = self.stdout.await??;
        // The log is complete when its reader is gone.
        while self.log.changed().await.is_ok() {}
        let log = self.log.borrow().clone();
        Ok(Ended { code: status.code(), stdout, log })
    }
}
