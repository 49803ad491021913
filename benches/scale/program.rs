//! tailrace as the benchmark runs it: in process, with the settings that the configuration gives
//! by default.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tailrace::catalog::connect::close;
use tailrace::config::{Config, LoadOptions};
use tailrace::instant::UtcInstant;
use tailrace::policy::set::{Wanted, set_policy};
use tailrace::sweep::report::{Outcome, TableReport};
use tailrace::sweep::{Scope, Settings, run_pass};
use tokio_util::sync::CancellationToken;

use super::bench::Db;
use super::fixture::{CATALOG, DAY_COLUMN, NAMESPACE};
use super::scale::{SUBJECT, Scale};

/// The seconds of a day.
const DAY: i64 = 86_400;

/// The configuration without any file or variable.
pub fn config() -> Result<Config> {
    Ok(Config::load(&LoadOptions::default())?)
}

/// The settings of a pass by that configuration.
pub fn settings() -> Result<Settings> {
    Ok(Settings::from_config(&config()?))
}

/// Lets the table be governed by the time of its days or hours.
pub async fn govern(db: &Db, keep: &str) -> Result<()> {
    let mut session = db.database().session().await?;
    let wanted = Wanted {
        catalog: CATALOG,
        namespace: NAMESPACE,
        table: SUBJECT,
        field: DAY_COLUMN,
        keep,
        mode: None,
        fence: None,
        by: "benchmark",
    };
    set_policy(&mut session, wanted, Duration::from_secs(1)).await?;
    close(session).await;
    Ok(())
}

/// One pass over the one governed table, and how long it took by the clock.
pub async fn pass(db: &Db, settings: &Settings) -> Result<(TableReport, Duration)> {
    let database = db.database();
    let stop = CancellationToken::new();
    let clock = Instant::now();
    let report = run_pass(&database, settings, &Scope::default(), &stop, &|_| {}).await?;
    let took = clock.elapsed();
    let table = report.tables.into_iter().next().context("no table is governed")?;
    ensure!(
        matches!(table.outcome, Outcome::Dropped | Outcome::NothingToDo),
        "the pass ended otherwise: {}, {}",
        brief(&table),
        table.error.as_deref().unwrap_or("no error")
    );
    Ok((table, took))
}

/// What a pass did, for a message about why it should not have.
pub fn brief(report: &TableReport) -> String {
    let (snapshots, files) = (report.snapshots.len(), report.counts().files);
    format!("{:?}, {files} files in {snapshots} snapshots", report.outcome)
}

/// The settings of passes that decide by a time shortly before and shortly after the moment at
/// which the next day expires, for which the oldest `expired` of so many days have: what the daemon
/// meets at midnight. The policy is that by which none of them has expired yet.
pub fn around_midnight(scale: Scale, expired: i64) -> Result<(Settings, Settings)> {
    // None has expired today, and the oldest does at the end of it.
    let midnight = (scale.today + 1 + expired) * DAY;
    let at = |second: i64| -> Result<Settings> {
        let time = chrono::DateTime::from_timestamp(second, 0).context("a time out of range")?;
        Ok(Settings { as_of: Some(UtcInstant::from(time)), ..settings()? })
    };
    Ok((at(midnight - 60)?, at(midnight + 60)?))
}
