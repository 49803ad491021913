//! Runs tailrace for the tests: in this process, with the default configuration, and as a program.

use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use sqlx::{ConnectOptions, PgConnection};
use tailrace::catalog::connect::Database;
use tailrace::catalog::session::{Patience, Session};
use tailrace::config::{Config, LoadOptions};
use tailrace::policy::grace::PolicyLimits;
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::plan::TablePlan;
use tailrace::sweep::planning::plan_all;
use tailrace::sweep::report::{PassReport, TableReport};
use tailrace::sweep::{Scope, Settings, run_pass};
use tailrace_kit::lake::NewFile;
use tokio_util::sync::CancellationToken;

use super::TestDatabase;

impl TestDatabase {
    /// The database as our own sessions open it.
    pub fn tailrace(&self) -> Database {
        Database {
            options: self.pool.connect_options().as_ref().clone(),
            schema: self.lake.schema().to_owned(),
            connect_timeout: Duration::from_secs(10),
            patience: Patience::default(),
        }
    }

    /// A session of its own, outside of every pool.
    pub async fn connection(&self) -> Result<PgConnection> {
        Ok(self.pool.connect_options().connect().await?)
    }

    /// One as the lake's own, as the functions of tailrace take it.
    pub async fn plain_session(&self) -> Result<Session> {
        let connection = self.lake.pool().acquire().await?.detach();
        Ok(Session::of(connection, Patience::default()))
    }

    /// One pass with these settings.
    pub async fn sweep_with(&self, settings: &Settings) -> Result<PassReport> {
        let stop = CancellationToken::new();
        run_pass(&self.tailrace(), settings, &Scope::default(), &stop, &|_| {}).await
    }

    /// One pass with the default settings.
    pub async fn sweep(&self) -> Result<PassReport> {
        self.sweep_with(&settings()).await
    }

    /// One pass over a lake with one governed table.
    pub async fn sweep_one(&self) -> Result<TableReport> {
        let mut report = self.sweep().await?;
        match (report.tables.pop(), report.tables.is_empty()) {
            (Some(table), true) => Ok(table),
            other => bail!("not one table: {other:?}"),
        }
    }

    /// The plan at a time, of a lake with one governed table.
    pub async fn plan_one(&self, at: &str) -> Result<TablePlan> {
        let at: UtcInstant = at.parse()?;
        let plans = plan_all(&self.tailrace(), &settings(), &Scope::default(), Some(at)).await?;
        let [(_, plan)] = plans.tables.as_slice() else { bail!("not one table: {plans:?}") };
        plan.clone().map_err(anyhow::Error::msg)
    }

    /// The program with these arguments and variables beside the database's, to its end.
    pub async fn run_with(&self, args: &[&str], env: &[(&str, &str)]) -> Result<Output> {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_tailrace"));
        command
            .args(args)
            .env_clear()
            .env("TAILRACE__DATABASE__URL", self.url())
            .env("TAILRACE__DATABASE__SCHEMA", self.lake.schema())
            // Tests read what commands log beside their result.
            .env("TAILRACE__LOG__COMMAND_FILTER", "info,tailrace=debug")
            .env("USER", "tester")
            // Tests of other things let go at once.
            .env("TAILRACE__GUARD__POLICY_GRACE", "0s")
            .envs(env.iter().copied())
            .stdin(Stdio::null());
        command.output().await.context("running tailrace")
    }

    /// The program with these arguments, to its end.
    pub async fn run(&self, args: &[&str]) -> Result<Output> {
        self.run_with(args, &[]).await
    }

    /// What the program prints on stdout, which must be JSON, and its exit code.
    pub async fn json(&self, args: &[&str]) -> Result<(Value, i32)> {
        let output = self.run(args).await?;
        let code = output.status.code().context("killed")?;
        let value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{args:?}: {}", String::from_utf8_lossy(&output.stderr)))?;
        Ok((value, code))
    }

    /// Sets a policy through the program, and confirms what it drops.
    pub async fn policy(&self, catalog: &str, table: &str, field: &str, keep: &str) -> Result<()> {
        let args = ["policy", "set", catalog, table, "--field", field, "--keep", keep, "--yes"];
        let output = self.run(&args).await?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }
}

/// The settings that the configuration gives where nobody sets anything.
pub fn settings() -> Settings {
    let config = Config::load(&LoadOptions::default()).expect("the built-in configuration");
    let settings = Settings::from_config(&config);
    let policy_limits = at_once(settings.policy_limits);
    Settings { spreads_full_passes: false, policy_limits, ..settings }
}

/// No change of a policy waits.
pub fn at_once(limits: PolicyLimits) -> PolicyLimits {
    PolicyLimits { grace: Duration::ZERO, ..limits }
}

/// Any keep is acted upon, and at once.
pub const NO_LIMITS: PolicyLimits =
    PolicyLimits { min_keep: Duration::ZERO, grace: Duration::ZERO };

/// A file of the day 18000 (2019-04-14) whose column statistics prove that it holds no later rows.
pub fn proven_18000(column: &str) -> NewFile {
    let noon = 1_555_243_200_000_000_i64;
    NewFile::of(["18000"]).upper(column, &noon.to_le_bytes())
}

/// The text of the day that was `days` ago by this host's clock, which the tests' server shares.
pub fn days_ago(days: i64) -> String {
    (UtcInstant::from(chrono::Utc::now()).days() as i64 - days).to_string()
}
