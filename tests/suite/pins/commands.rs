//! Pins every command with its exit code and the shape of its JSON, and the log lines of these
//! runs. Further exit codes are tested in `cli/exit_codes.rs`, among them those of `health`. Values
//! of `plan` and `sweep` are tested in `cli/json.rs`.

use anyhow::{Context, Result};
use chrono::{TimeDelta, Utc};
use serde_json::Value;
use tailrace_kit::simulated_loops::{Cleanup, Consumer, Expiry};

use super::golden;
use super::lake::{ENV, Lake};
use super::told::Told;
use crate::support::program::days_ago;

struct Runs {
    lake: Lake,
    commands: Told,
    log: Told,
}

impl Runs {
    /// Runs a command with `--output json`.
    async fn json(&mut self, case: &str, args: &[&str]) -> Result<()> {
        let out = self.code(case, &[args, &["--output", "json"]].concat()).await?;
        if !out.is_empty() {
            let printed: Value =
                serde_json::from_str(&out).with_context(|| format!("{args:?}: {out}"))?;
            anyhow::ensure!(printed.is_object(), "{args:?}: {printed}");
            self.commands.value(&command(args), &printed);
        }
        Ok(())
    }

    /// Runs a command, and gives what it prints.
    async fn code(&mut self, case: &str, args: &[&str]) -> Result<String> {
        let ran = self.lake.database.ran_with(args, &ENV).await?;
        self.commands.line(&command(args), format!("exit {}: {case}", ran.code));
        let lines = ran.err.lines().filter_map(|line| serde_json::from_str(line).ok());
        lines.for_each(|line: Value| self.log.log(&line));
        Ok(ran.out)
    }
}

/// The words that name a command.
fn command(args: &[&str]) -> String {
    let words = if matches!(args[0], "policy" | "spec" | "clock") { 2 } else { 1 };
    args[..words].join(" ")
}

#[tokio::test]
async fn commands_print_these_fields_and_end_with_these_codes() -> Result<()> {
    let lake = Lake::new().await?;
    let mut runs = Runs { lake, commands: Told::default(), log: Told::default() };
    runs.json("as it is", &["migrate"]).await?;
    runs.json("as it is", &["config"]).await?;
    plans_and_passes(&mut runs).await?;
    policies(&mut runs).await?;
    specs(&mut runs).await?;
    drops(&mut runs).await?;
    what_is_known(&mut runs).await?;
    clocks(&mut runs).await?;
    golden::holds("commands.txt", &runs.commands.text());
    golden::holds("commands-log.txt", &runs.log.text());
    Ok(())
}

async fn plans_and_passes(runs: &mut Runs) -> Result<()> {
    let raw = ["--catalog", "lake", "--table", "events.raw"];
    runs.json("of one table", &[&["plan"], &raw[..]].concat()).await?;
    runs.json("before the first pass", &["plan"]).await?;
    runs.json("of another time", &["plan", "--at", "2019-06-01T00:00:00Z"]).await?;
    runs.json("of no table", &["plan", "--table", "events.nothing"]).await?;
    runs.json("of one table", &[&["sweep"], &raw[..]].concat()).await?;
    runs.json("as it is", &["sweep"]).await?;
    runs.json("after a pass", &["plan"]).await?;
    runs.json("of no table", &["sweep", "--table", "events.nothing"]).await?;
    Ok(())
}

async fn policies(runs: &mut Runs) -> Result<()> {
    let set = |field: &'static str, keep: &'static str| {
        ["policy", "set", "lake", "events.raw", "--field", field, "--keep", keep]
    };
    runs.json("as it is", &set("day(at)", "7d")).await?;
    runs.json("of a wrong keep", &set("day(at)", "7 months")).await?;
    runs.json("of no field", &set("nothing", "7d")).await?;
    runs.json("as it is", &["policy", "get", "lake", "events.raw"]).await?;
    runs.json("of none", &["policy", "get", "lake", "events.gone"]).await?;
    runs.json("as it is", &["policy", "list"]).await?;
    runs.json("--all", &["policy", "list", "--all"]).await?;
    runs.json("as it is", &["policy", "unset", "lake", "events.paused"]).await?;
    runs.json("of none", &["policy", "unset", "lake", "events.paused"]).await?;
    runs.json("of a property", &["policy", "unset", "lake", "events.property"]).await?;
    runs.json("of a table that is gone", &["policy", "unset", "lake", "events.gone"]).await?;
    Ok(())
}

async fn specs(runs: &mut Runs) -> Result<()> {
    let trust = ["spec", "trust", "lake", "events.tenants", "2", "--reason", "by hand"];
    runs.json("as it is", &["spec", "list", "lake", "events.tenants"]).await?;
    runs.json("without an answer", &trust).await?;
    runs.json("as it is", &[&trust[..], &["--yes"]].concat()).await?;
    // As after the window of stale writers.
    runs.lake
        .database
        .sql("UPDATE tailrace.spec_copy SET copied_at = now() - interval '8 days'")
        .await?;
    runs.json("of a trusted spec", &["sweep", "--table", "events.tenants"]).await?;
    runs.json("with a mark", &["spec", "list", "lake", "events.tenants"]).await?;
    runs.json("of no table", &["spec", "list", "lake", "events.nothing"]).await?;
    Ok(())
}

async fn drops(runs: &mut Runs) -> Result<()> {
    let partition = format!(r#"["7", "{}"]"#, days_ago(1));
    let key = "11111111-2222-4333-8444-555555555555";
    let drop = ["drop", "lake", "events.raw", "--idempotency-key", key, "--partition"];
    let of = |partition, more: &'static str| [&drop[..], &[partition, more]].concat();
    runs.json("--dry-run", &of(&partition, "--dry-run")).await?;
    runs.json("without an answer", &[&drop[..], &[partition.as_str()]].concat()).await?;
    runs.json("as it is", &of(&partition, "--yes")).await?;
    runs.json("again", &of(&partition, "--yes")).await?;
    runs.json("of another partition by the same key", &of(r#"["8", "1"]"#, "--yes")).await?;
    runs.json("of no such partition", &of("1", "--yes")).await?;
    let refused = ["drop", "lake", "events.refused", "--partition", r#"["18000"]"#, "--yes"];
    runs.json("that the database refuses", &refused).await?;
    Ok(())
}

async fn what_is_known(runs: &mut Runs) -> Result<()> {
    runs.json("as it is", &["verify"]).await?;
    runs.json("as it is", &["doctor"]).await?;
    runs.json("as it is", &["debt"]).await?;
    runs.json("as it is", &["trace"]).await?;
    // The server's expiry and cleanup.
    let consumer = Consumer::register(&runs.lake.raw, "copy").await?;
    consumer.advance(runs.lake.catalog.head().await?).await?;
    let expiry = Expiry::new(&runs.lake.catalog);
    let later = Utc::now() + TimeDelta::days(1);
    runs.json("before expiry", &["trace", "lake"]).await?;
    expiry.advance_floor(Some(later)).await?;
    runs.json("once the floor has moved", &["trace", "lake", "--all"]).await?;
    expiry.purge().await?;
    runs.json("after expiry", &["sweep"]).await?;
    runs.json("after a pass that met the purge", &["trace", "lake"]).await?;
    Cleanup::new(&runs.lake.catalog).run(1_000).await?;
    runs.json("after cleanup", &["sweep"]).await?;
    runs.json("of a table", &["trace", "lake", "events.raw"]).await?;
    runs.json("of no catalog", &["trace", "sea"]).await?;
    // A history that differs from what is in the catalog, or was.
    runs.lake
        .database
        .sql("UPDATE tailrace.drop_history SET records = records + 1 WHERE policy_revision IS NULL")
        .await?;
    runs.json("with a finding", &["verify", "--catalog", "lake"]).await?;
    Ok(())
}

/// The program reads the real clocks, so it is the memory that is changed.
async fn clocks(runs: &mut Runs) -> Result<()> {
    let accept = ["clock", "accept", "lake", "--reason", "moved"];
    runs.json("of a good clock", &accept).await?;
    runs.lake
        .database
        .sql("UPDATE tailrace.clock_memory SET accepted_now = accepted_now - interval '365 days'")
        .await?;
    runs.json("by a refused clock", &["plan", "--table", "events.raw"]).await?;
    runs.json("by a refused clock", &["sweep", "--table", "events.raw"]).await?;
    runs.json("without an answer", &accept).await?;
    runs.json("as it is", &[&accept[..], &["--yes"]].concat()).await?;
    runs.json("of no catalog", &["clock", "accept", "sea", "--reason", "x"]).await?;
    runs.json("by an accepted clock", &["sweep", "--table", "events.raw"]).await?;
    Ok(())
}
