//! Runs tailrace for the benchmark: in this process, with the default configuration.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tailrace::catalog::connect::close;
use tailrace::config::{Config, LoadOptions};
use tailrace::policy::grace::PolicyLimits;
use tailrace::policy::set::{Wanted, set_policy};
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::report::{Outcome, PassReport, TableReport};
use tailrace::sweep::{Scope, Settings, run_pass};
use tokio_util::sync::CancellationToken;

use super::bench::Db;
use super::fixture::{CATALOG, DAY_COLUMN, NAMESPACE};
use super::scale::{SUBJECT, Scale};

/// The seconds of a day.
pub const DAY: i64 = 86_400;
/// Longer than any row takes.
const DECADES: Duration = Duration::from_secs(20 * 365 * 86_400);

/// The configuration without a file or a variable.
pub fn config() -> Result<Config> {
    Ok(Config::load(&LoadOptions::default())?)
}

/// The settings of a pass by that configuration.
pub fn settings() -> Result<Settings> {
    Ok(Settings::from_config(&config()?))
}

/// Sets the policy of the table, on the time of its days or hours.
pub async fn govern(db: &Db, keep: &str) -> Result<()> {
    let mut session = db.database().session().await?;
    let wanted = Wanted {
        catalog: CATALOG,
        namespace: NAMESPACE,
        table: SUBJECT,
        field: DAY_COLUMN,
        keep,
        keep_last: None,
        mode: None,
        fence: None,
        is_confirmed: true,
        by: "benchmark",
        reason: None,
    };
    let limits = PolicyLimits { min_keep: Duration::from_secs(1), grace: Duration::ZERO };
    set_policy(&mut session, wanted, limits).await?;
    close(session).await;
    Ok(())
}

/// Runs one pass over the only table with a policy; returns its time by the clock too.
pub async fn pass(db: &Db, settings: &Settings) -> Result<(TableReport, Duration)> {
    let (report, took) = pass_over_all(db, settings).await?;
    let table = report.tables.into_iter().next().context("no table is governed")?;
    Ok((table, took))
}

/// Runs one pass over all tables with a policy; returns its time by the clock too. It is an error if a table
/// failed or the pass left work for it.
pub async fn pass_over_all(db: &Db, settings: &Settings) -> Result<(PassReport, Duration)> {
    let (report, took) = any_pass(db, settings).await?;
    for table in &report.tables {
        ensure!(
            matches!(table.outcome, Outcome::Dropped | Outcome::NothingToDo),
            "the pass ended otherwise: {}, {}",
            brief(table),
            table.error.as_deref().unwrap_or("no error")
        );
    }
    Ok((report, took))
}

/// Runs passes until one has nothing to do for every table and no full scan is unfinished. No pass may drop
/// anything. Returns the sum of their times by the clock.
pub async fn first_passes(db: &Db, settings: &Settings) -> Result<Duration> {
    let mut took = Duration::ZERO;
    for _ in 0..100 {
        let (report, one) = any_pass(db, settings).await?;
        took += one;
        ensure!(report.counts().files == 0, "{} files were dropped", report.counts().files);
        let through = report.tables.iter().all(|table| table.outcome == Outcome::NothingToDo);
        if through && unread(db).await? == 0 {
            return Ok(took);
        }
        if let Some(table) = report.tables.iter().find(|table| table.outcome.is_failure()) {
            bail!("{}, {}", brief(table), table.error.as_deref().unwrap_or("no error"));
        }
    }
    bail!("100 passes did not come to an end of it")
}

async fn any_pass(db: &Db, settings: &Settings) -> Result<(PassReport, Duration)> {
    let database = db.database();
    let stop = CancellationToken::new();
    let clock = Instant::now();
    let report = run_pass(&database, settings, &Scope::default(), &stop, &|_| {}).await?;
    let took = clock.elapsed();
    if let Some(failed) = report.failed_catalogs.first() {
        bail!("the catalog {} failed: {}", failed.catalog, failed.error);
    }
    Ok((report, took))
}

/// How many full scans of tables are unfinished.
async fn unread(db: &Db) -> Result<i64> {
    let query = "select (select count(*) from tailrace.sweep_state where reading is not null)
                      + (select count(*) from tailrace.table_state
                         where reading is not null or owes_full_pass)";
    Ok(sqlx::query_scalar(query).fetch_one(&db.pool).await?)
}

/// What a pass did, for a message about why it should not have.
pub fn brief(report: &TableReport) -> String {
    let (snapshots, files) = (report.snapshots.len(), report.counts().files);
    format!("{:?}, {files} files in {snapshots} snapshots", report.outcome)
}

/// The settings of two passes: the time of the first is set shortly before the next day expires, that of the
/// second shortly after. The oldest `expired` days have expired before. A daemon has such passes around
/// midnight. By the policy no day has expired at the present time.
pub fn around_midnight(scale: Scale, expired: i64) -> Result<(Settings, Settings)> {
    // No day has expired today, and the oldest expires at the end of today.
    let midnight = (scale.today + 1 + expired) * DAY;
    Ok((settings_at(midnight - 60)?, settings_at(midnight + 60)?))
}

/// The settings of passes whose time is set to this one, in seconds since 1970, instead of the database's time.
pub fn settings_at(second: i64) -> Result<Settings> {
    let time = chrono::DateTime::from_timestamp(second, 0).context("a time out of range")?;
    Ok(Settings { as_of: Some(UtcInstant::from(time)), ..settings()? })
}

/// The same settings, by which no full pass comes due, however much time there is between two passes.
pub fn steady_settings_at(second: i64) -> Result<Settings> {
    Ok(Settings { full_pass_every: DECADES, ..settings_at(second)? })
}
