//! tailrace as the benchmark runs it: in process, with the settings that the configuration gives
//! by default.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tailrace::config::{Config, LoadOptions};
use tailrace::policy::set::{Wanted, set_policy};
use tailrace::sweep::report::{Outcome, TableReport};
use tailrace::sweep::{Progress, Scope, Settings, run_pass};
use tokio_util::sync::CancellationToken;

use super::bench::Db;
use super::fixture::{CATALOG, DAY_COLUMN, NAMESPACE};
use super::scale::SUBJECT;

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
    Ok(sqlx::Connection::close(session).await?)
}

/// One pass over the one governed table, and how long it took by the clock.
pub async fn pass(db: &Db, settings: &Settings) -> Result<(TableReport, Duration)> {
    pass_with(db, settings, &|_| {}).await
}

/// As [`pass`], telling of its progress.
pub async fn pass_with(
    db: &Db,
    settings: &Settings,
    progress: &(dyn Fn(Progress<'_>) + Send + Sync),
) -> Result<(TableReport, Duration)> {
    let database = db.database();
    let stop = CancellationToken::new();
    let clock = Instant::now();
    let report = run_pass(&database, settings, &Scope::default(), &stop, progress).await?;
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

/// Governs the table so that everything up to the day before `day` has expired already and `day`
/// expires in a moment, lets a pass deal with what there is, and returns once `day` has expired:
/// what a daemon meets at midnight.
pub async fn let_expire(db: &Db, day: i64, settings: &Settings) -> Result<()> {
    let end = (day + 1) * DAY;
    // On the way a pass may have to drop what is older; the one after that, a first pass again
    // because the policy is another, tells how long one takes that has nothing to do.
    govern(db, &format!("{}s", db_seconds(db).await? - end + 600)).await?;
    pass(db, settings).await?;
    govern(db, &format!("{}s", db_seconds(db).await? - end + 600)).await?;
    let (_, took) = pass(db, settings).await?;
    let keep = db_seconds(db).await? - end + 3 + 2 * took.as_secs() as i64;
    govern(db, &format!("{keep}s")).await?;
    let (report, _) = pass(db, settings).await?;
    ensure!(
        report.outcome == Outcome::NothingToDo,
        "the day expired too early: {}",
        brief(&report)
    );
    while db_seconds(db).await? < end + keep {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// The database's time, in whole seconds since 1970.
async fn db_seconds(db: &Db) -> Result<i64> {
    let query = "select floor(extract(epoch from clock_timestamp()))::bigint";
    Ok(sqlx::query_scalar(query).fetch_one(&db.pool).await?)
}
