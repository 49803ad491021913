//! A pass over all catalogs.

use std::time::Duration;

use chrono::Utc;
use sqlx::PgConnection;
use tokio_util::sync::CancellationToken;

use super::effective;
use super::lease::LeasedSession;
use super::plan::NOT_PARQUET;
use super::report::{CatalogFailure, Outcome, PassReport, TableReport, milliseconds};
use super::settings::{Scope, Settings};
use super::table::{Context, sweep_table};
use crate::catalog::clock::{self, Behind};
use crate::catalog::connect::{Database, close};
use crate::catalog::deadline::within;
use crate::catalog::failure::{in_words, is_away};
use crate::catalog::purge::purge;
use crate::catalog::shape::copy_specs;
use crate::catalog::tables::{Catalog, LiveTable, TableIdentity, catalogs, live_tables};
use crate::events;
use crate::instant::UtcInstant;

/// Clocks that differ by more than this are told of, and a database that is behind its own
/// snapshots by more than this drops nothing.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

/// The longest that may pass before work on a catalog or a table begins: a few statements of at most
/// 60 s each.
const PREPARATION: Duration = Duration::from_secs(300);

/// What a pass tells while it works.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// It turned to a table.
    Table(&'a TableIdentity),
    /// It ended files of a table.
    Dropped {
        /// The table.
        table: &'a TableIdentity,
        /// How many files.
        files: i64,
    },
}

/// Runs one pass: every catalog in scope whose lease can be had, every live table of it that
/// has a policy. The time is read once, from the database.
///
/// Takes no lock but the lease and, for each commit, the catalog's commit lock. Once `stop` is
/// cancelled no commit starts. One table's failure is in its report and stops no other.
///
/// # Errors
/// The database is away, our schema is not there, or the scope names what is not there.
pub async fn run_pass(
    database: &Database,
    settings: &Settings,
    scope: &Scope,
    stop: &CancellationToken,
    progress: &(dyn Fn(Progress<'_>) + Send + Sync),
) -> anyhow::Result<PassReport> {
    let mut control = database.session().await?;
    let now = read_clock(&mut control).await?;
    let all = catalogs(&mut control).await?;
    // Rows that nothing stands behind do no harm: that they could not be purged is no reason to let
    // a pass fail.
    let purged =
        within(PREPARATION, purge(&mut control, settings.history_keep, settings.receipt_keep))
            .await;
    if let Err(error) = purged {
        tracing::warn!(event = events::PURGE_FAILED, %error, "Old rows of ours were not purged");
    }
    close(control).await;

    tracing::info!(
        event = events::PASS_STARTED,
        as_of = %now, catalogs = all.len(),
        "A pass began"
    );
    let started = std::time::Instant::now();
    let context = Context { now, settings, stop, progress };
    let mut report = PassReport {
        as_of: now,
        tables: Vec::new(),
        skipped_catalogs: Vec::new(),
        failed_catalogs: Vec::new(),
    };
    for catalog in all.iter().filter(|catalog| scope.has_catalog(&catalog.name)) {
        if stop.is_cancelled() {
            break;
        }
        let worked = lease_and_sweep(database, catalog, scope, &context, &mut report).await;
        if let Err(error) = worked {
            failed(catalog, &error, &mut report);
        }
    }
    tell_finished(&report, started.elapsed(), stop.is_cancelled());
    Ok(report)
}

async fn lease_and_sweep(
    database: &Database,
    catalog: &Catalog,
    scope: &Scope,
    context: &Context<'_>,
    report: &mut PassReport,
) -> anyhow::Result<()> {
    let Some(mut session) = LeasedSession::open(database, catalog.catalog_id).await? else {
        tracing::info!(
            event = events::CATALOG_SKIPPED,
            catalog = catalog.name,
            "Another daemon works on this catalog"
        );
        report.skipped_catalogs.push(catalog.name.clone());
        return Ok(());
    };
    let worked = sweep_catalog(&mut session, catalog, scope, context, report).await;
    session.close().await;
    worked
}

fn failed(catalog: &Catalog, error: &anyhow::Error, report: &mut PassReport) {
    let away = is_away(error);
    let error = in_words(error);
    tracing::error!(
        event = events::CATALOG_FAILED,
        catalog = catalog.name,
        error,
        "A catalog could not be worked on"
    );
    report.failed_catalogs.push(CatalogFailure { catalog: catalog.name.clone(), error, away });
}

fn tell_finished(report: &PassReport, took: Duration, stopped: bool) {
    let counts = report.counts();
    tracing::info!(
        event = events::PASS_FINISHED,
        as_of = %report.as_of,
        tables = report.tables.len(),
        tables_failed = report.failures(),
        catalogs_failed = report.failed_catalogs.len(),
        catalogs_skipped = report.skipped_catalogs.len(),
        snapshots = report.tables.iter().map(|table| table.snapshots.len()).sum::<usize>(),
        files_ended = counts.files,
        delete_files_ended = counts.delete_files,
        records = counts.records,
        bytes = counts.bytes,
        stopped,
        duration_ms = milliseconds(took),
        "A pass came to its end"
    );
}

/// The database's time; says so where the host thinks otherwise.
async fn read_clock(control: &mut PgConnection) -> sqlx::Result<UtcInstant> {
    let now = clock::now(control).await?;
    let host = UtcInstant::from(Utc::now());
    let skew = now.distance(host);
    if skew > CLOCK_TOLERANCE {
        tracing::warn!(
            event = events::CLOCK_SKEW,
            database_time = %now, host_time = %host, skew_seconds = skew.as_secs(),
            "Host and database disagree about the time; the database's counts"
        );
    }
    Ok(now)
}

async fn sweep_catalog(
    session: &mut LeasedSession<'_>,
    catalog: &Catalog,
    scope: &Scope,
    context: &Context<'_>,
    report: &mut PassReport,
) -> anyhow::Result<()> {
    let (behind, tables) = within(PREPARATION, prepare(session, catalog)).await?;
    if let Some(Behind { now, newest_snapshot, by }) = behind {
        tracing::error!(
            event = events::CLOCK_BEHIND,
            catalog = catalog.name,
            database_time = %now,
            newest_snapshot_time = %newest_snapshot,
            behind_seconds = by.as_secs(),
            "The database's clock is behind the newest snapshot: nothing is dropped"
        );
    }
    for table in tables
        .iter()
        .filter(|table| scope.has_table(&table.identity.namespace, &table.identity.table))
    {
        if context.stop.is_cancelled() {
            break;
        }
        (context.progress)(Progress::Table(&table.identity));
        let swept = match behind {
            Some(Behind { now, newest_snapshot, .. }) => {
                let error = format!(
                    "the database's clock ({now}) is behind the newest snapshot ({newest_snapshot})"
                );
                Some(TableReport::new(&table.identity, Outcome::ClockBehind, Some(error)))
            }
            None => sweep_one(session, table, context).await?,
        };
        if let Some(swept) = swept {
            tell(&swept);
            report.tables.push(swept);
        }
    }
    Ok(())
}

/// What a catalog is worked on by: its specs copied, its clock, its governed tables.
async fn prepare(
    session: &mut LeasedSession<'_>,
    catalog: &Catalog,
) -> sqlx::Result<(Option<Behind>, Vec<LiveTable>)> {
    let connection = session.connection();
    copy_specs(connection, catalog.catalog_id).await?;
    let behind = clock::behind_newest_snapshot(connection, catalog.catalog_id).await?;
    let tables = live_tables(connection, catalog, true).await?;
    Ok((behind.filter(|behind| behind.by > CLOCK_TOLERANCE), tables))
}

/// One table, with a session that answers. `None` where no policy is in force.
///
/// # Errors
/// There is no session to be had: the catalog cannot be worked on any further.
async fn sweep_one(
    session: &mut LeasedSession<'_>,
    table: &LiveTable,
    context: &Context<'_>,
) -> anyhow::Result<Option<TableReport>> {
    session.reestablish().await?;
    let failed =
        |error: String| Some(TableReport::new(&table.identity, Outcome::Failed, Some(error)));
    let min_keep = context.settings.min_keep;
    let looked = effective::look_and_mirror(session.connection(), table, min_keep);
    Ok(match within(PREPARATION, looked).await {
        Err(error) => failed(format!("its policy could not be read: {error}")),
        Ok(Err(problem)) => failed(problem),
        Ok(Ok(None)) => None,
        Ok(Ok(Some(_))) if !table.is_parquet => failed(NOT_PARQUET.to_owned()),
        Ok(Ok(Some(policy))) => {
            let swept = sweep_table(session, &table.identity, &policy, context).await;
            Some(swept.by(&policy, context.now))
        }
    })
}

/// The one line that every table gets, and one more for those that no other line told of.
fn tell(report: &TableReport) {
    let TableReport { catalog, namespace, table, outcome, .. } = report;
    let counts = report.counts();
    let error = report.error.as_deref();
    match outcome {
        Outcome::Failed => tracing::error!(
            event = events::TABLE_FAILED,
            catalog,
            namespace,
            table,
            error,
            "A table could not be worked on"
        ),
        Outcome::Unhealthy => tracing::error!(
            event = events::TABLE_UNHEALTHY,
            catalog,
            namespace,
            table,
            error,
            "A policy can date none of its table's files"
        ),
        _ => {}
    }
    tracing::info!(
        event = events::TABLE_FINISHED,
        catalog,
        namespace,
        table,
        outcome = outcome.name(),
        field = report.field,
        keep = report.keep,
        cutoff = report.cutoff.map(tracing::field::display),
        snapshots = report.snapshots.len(),
        files_ended = counts.files,
        delete_files_ended = counts.delete_files,
        records = counts.records,
        bytes = counts.bytes,
        full = report.full,
        undatable_files = report.counted.map(|counted| counted.undatable_files),
        uncovered_files = report.counted.map(|counted| counted.uncovered_files),
        counted_at = report.counted.map(|counted| tracing::field::display(counted.at)),
        "A pass is through with a table"
    );
}
