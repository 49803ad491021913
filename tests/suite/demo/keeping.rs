//! Tests of the demo that is left running: the commands that it prints, and how it ends.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chrono::Utc;

use super::{demo, left_over, temporary};

/// What the commands to copy begin with.
const PROMPT: &str = "   $ ";

/// A demo that has printed its commands.
struct Kept {
    process: Child,
    commands: Vec<String>,
}

impl Kept {
    fn start(temporary: &Path) -> Result<Self> {
        let mut process = demo(temporary, &["--keep"])?.stdout(Stdio::piped()).spawn()?;
        let shown = BufReader::new(process.stdout.take().context("a pipe")?).lines();
        let mut kept = Self { process, commands: Vec::new() };
        for line in shown {
            let line = line?;
            let cut = kept.commands.last_mut().filter(|command| command.ends_with('\\'));
            if let Some(command) = cut {
                command.push('\n');
                command.push_str(&line);
            } else if let Some(command) = line.strip_prefix(PROMPT) {
                kept.commands.push(command.to_owned());
                if command == "tailrace run" {
                    return Ok(kept);
                }
            }
        }
        bail!("the demo ended: {:?}", kept.process.wait()?)
    }

    fn interrupt(&mut self) -> Result<ExitStatus> {
        send("INT", self.process.id())?;
        Ok(self.process.wait()?)
    }
}

/// A failing test leaves no demo behind.
impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn send(signal: &str, process: u32) -> Result<()> {
    let sent = Command::new("kill").args(["-s", signal, &process.to_string()]).status()?;
    anyhow::ensure!(sent.success(), "no signal {signal} to {process}");
    Ok(())
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-ec", script])
        .env("USER", "visitor")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null());
    command
}

#[test]
fn each_printed_command_works_and_the_interrupt_ends_all() -> Result<()> {
    let folder = temporary()?;
    let started = Utc::now().date_naive();
    let mut kept = Kept::start(folder.path())?;
    let (daemon, others) = kept.commands.split_last().context("commands")?;

    let output = shell(&others.join("\n")).output()?;
    let shown = String::from_utf8(output.stdout)?;
    assert!(output.status.success(), "{shown}{}", String::from_utf8_lossy(&output.stderr));
    for line in [
        "demo web.events_raw: day(timestamp) keep 7d, enforce (stored policy)",
        "  expired      nothing",
        "demo web.audit_log: day(timestamp) keep 5d, observe (revision 4)",
        "demo web.audit_log: observed",
        "demo web.audit_log: day(timestamp) keep 5d, enforce (revision 5)",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    }
    // 14 days, of which with 5d those are dropped that ended 5 days ago: one more if a day ended
    // meanwhile.
    let more = usize::from(Utc::now().date_naive() != started);
    let as_many = |found: usize| found == 8 || found == 8 + more;
    let would = shown.lines().filter(|line| line.starts_with("  would drop ")).count();
    assert!(as_many(would), "{shown}");
    let report: serde_json::Value =
        serde_json::from_str(shown.lines().last().context("a report")?)?;
    let swept = report["tables"].as_array().context("tables")?;
    let audit = swept.iter().find(|table| table["table"] == "audit_log").context("audit_log")?;
    assert_eq!(audit["outcome"], "dropped");
    let partitions = audit["snapshots"][0]["partitions"].as_array().context("partitions")?;
    assert!(as_many(partitions.len()), "{shown}");

    let exports: Vec<&str> =
        others.iter().map(String::as_str).filter(|line| line.starts_with("export ")).collect();
    let mut daemon = shell(&format!("{}\nexec {daemon}", exports.join("\n")))
        .env("TAILRACE__HEALTH__FILE", folder.path().join("health.json"))
        .stderr(Stdio::piped())
        .spawn()?;
    let log = BufReader::new(daemon.stderr.take().context("a pipe")?).lines();
    let mut seen = false;
    for line in log {
        if line?.contains("\"pass_finished\"") {
            seen = true;
            send("INT", daemon.id())?;
        }
    }
    assert!(seen, "the daemon's pass");
    assert_eq!(daemon.wait()?.code(), Some(0));

    assert_eq!(kept.interrupt()?.code(), Some(0));
    assert_eq!(left_over(folder.path())?, Vec::<String>::new());
    Ok(())
}

#[test]
fn a_demo_that_is_killed_leaves_nothing_either() -> Result<()> {
    let folder = temporary()?;
    let mut kept = Kept::start(folder.path())?;
    assert!(!left_over(folder.path())?.is_empty());
    kept.process.kill()?;
    kept.process.wait()?;
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let left = left_over(folder.path())?;
        if left.is_empty() {
            return Ok(());
        }
        assert!(Instant::now() < deadline, "{left:?} stays");
        std::thread::sleep(Duration::from_millis(20));
    }
}
