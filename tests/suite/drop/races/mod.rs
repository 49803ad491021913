//! Tests of what happens between planning and commit, of other writers that meet a drop, and of a
//! drop that is stopped, cut off or killed.

mod between;
mod cut_off;
mod daemon;
mod daemon_database;
mod gone;
mod hangups;
mod hydrator;
mod interrupted;
mod isolation;
mod killed;
mod killed_model;
mod late;
mod lock_held;
mod new_policy;
mod pipeline;
mod policy;
mod policy_writer;
mod stopped;
mod two_at_once;
mod untouched;
pub mod whole;
mod writers;

use std::time::Duration;

use anyhow::{Result, bail};
use tailrace::sweep::Settings;
use tailrace::sweep::report::{SnapshotReport, TableReport};
use tailrace_kit::lake::{Catalog, Committed, Field, NewFile, Table};

use crate::support::TestDatabase;
use crate::support::program::{days_ago, settings};

/// A lake with the table `events.raw` by day, which keeps 7 days.
pub struct Scene {
    pub database: TestDatabase,
    pub catalog: Catalog,
    pub table: Table,
    /// Its first files.
    pub files: Vec<i64>,
}

impl Scene {
    /// One file of 10 records and 100 bytes for each of these ages in days. What is 8 days old
    /// or older goes; tests use nothing between 5 and 8, so that midnight changes nothing.
    pub async fn new(ages: &[i64]) -> Result<Self> {
        Self::of(ages.iter().map(|age| file(*age)).collect()).await
    }

    /// With these first files.
    pub async fn of(files: Vec<NewFile>) -> Result<Self> {
        Self::within(TestDatabase::new().await?, files).await
    }

    /// In this database.
    pub async fn within(database: TestDatabase, files: Vec<NewFile>) -> Result<Self> {
        let catalog = database.catalog("lake").await?;
        let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
        let Committed { file_ids, .. } = table.append(files).await?;
        database.policy("lake", "events.raw", "day(at)", "7d").await?;
        Ok(Scene { database, catalog, table, files: file_ids })
    }

    /// One pass, which waits for the commit lock as long as it takes.
    pub async fn sweep(&self) -> Result<TableReport> {
        self.sweep_with(&patient()).await
    }

    /// One pass over the one table.
    pub async fn sweep_with(&self, settings: &Settings) -> Result<TableReport> {
        let mut report = self.database.sweep_with(settings).await?;
        match (report.tables.pop(), report.tables.is_empty()) {
            (Some(table), true) => Ok(table),
            other => bail!("not one table: {other:?}"),
        }
    }

    /// The ids of the live files.
    pub async fn live(&self) -> Result<Vec<i64>> {
        Ok(self.table.live_files().await?.iter().map(|file| file.data_file_id).collect())
    }

    /// The snapshot in which a file ended.
    pub async fn end_of(&self, file_id: i64) -> Result<Option<i64>> {
        let files = self.table.all_files().await?;
        Ok(files.iter().find(|file| file.data_file_id == file_id).and_then(|f| f.end_snapshot))
    }
}

/// A file of 10 records and 100 bytes that is so many days old.
pub fn file(age: i64) -> NewFile {
    NewFile::of([days_ago(age)]).records(10).bytes(100)
}

/// The default settings without a limit that a slow machine could meet, and without pauses.
pub fn patient() -> Settings {
    let mut settings = settings();
    settings.limits.lock_timeout = Duration::from_secs(60);
    settings.limits.row_lock_timeout = Duration::from_millis(100);
    settings.limits.max_hold = Duration::from_secs(60);
    settings.lock_duty = 1.0;
    settings
}

/// The one snapshot of a report.
pub fn only(report: &TableReport) -> &SnapshotReport {
    match report.snapshots.as_slice() {
        [snapshot] => snapshot,
        _ => panic!("not one snapshot: {report:?}"),
    }
}

/// The partition texts of a snapshot with their numbers of files.
pub fn texts(snapshot: &SnapshotReport) -> Vec<(String, i64)> {
    let text = |values: &[Option<String>]| values[0].clone().unwrap_or_default();
    snapshot.partitions.iter().map(|p| (text(&p.partition_values), p.counts.files)).collect()
}
