//! Passes over one table, and the obstacles that they meet.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tailrace::sweep::report::{Outcome, TableReport};
use tailrace::sweep::{Progress, Scope, Settings, run_paced_pass};
use tokio_util::sync::CancellationToken;

use crate::support::TestDatabase;
use crate::support::program::settings;
use crate::support::timer::{TestTimer, pacing};

/// Has the database refuse to end a file of the lake.
pub async fn refuse(database: &TestDatabase, file: i64) -> Result<()> {
    database
        .sql(&format!(
            "CREATE OR REPLACE FUNCTION refuse_file() RETURNS trigger LANGUAGE plpgsql
               AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
             CREATE TRIGGER refuse_{file} BEFORE UPDATE ON hog_data_file FOR EACH ROW
               WHEN (new.end_snapshot IS NOT NULL AND new.data_file_id = {file})
               EXECUTE FUNCTION refuse_file()"
        ))
        .await
}

/// An error unless the pass ended so.
pub fn expect(outcome: Outcome, report: TableReport) -> Result<()> {
    ensure!(report.outcome == outcome, "{report:?}");
    Ok(())
}

/// Settings by which a pass has time for one commit of two files.
pub fn one_commit() -> Settings {
    let mut settings =
        Settings { max_duration: Duration::from_millis(1), lock_duty: 0.001, ..settings() };
    settings.batch.files_per_commit = 2;
    settings
}

/// Settings by which a table is read three files at a time, which is remembered each time.
pub fn small_pieces() -> Settings {
    let mut settings = settings();
    (settings.scan_limits.small_table, settings.scan_limits.piece) = (0, 3);
    settings.scan_limits.pieces_remembered = 1;
    settings
}

/// A pass over one table of the lake, in which no time passes but in pauses; it is told to stop at its first
/// commit, where there is such a word.
pub async fn pass(
    database: &TestDatabase,
    table: &str,
    settings: &Settings,
    stop: Option<&CancellationToken>,
) -> Result<TableReport> {
    let scope = Scope {
        catalog: Some("lake".to_owned()),
        table: Some(("events".to_owned(), table.to_owned())),
    };
    let (never, timer) = (CancellationToken::new(), TestTimer::new());
    let at_commit = |progress: Progress<'_>| {
        if let (Some(stop), Progress::Dropped { .. }) = (stop, progress) {
            stop.cancel();
        }
    };
    let mut report = run_paced_pass(
        &database.tailrace(),
        settings,
        &scope,
        stop.unwrap_or(&never),
        &at_commit,
        &pacing(&timer),
    )
    .await?;
    report.tables.pop().context("one table")
}
