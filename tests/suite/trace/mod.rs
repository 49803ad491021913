//! Tests of what trace reports of a drop, at each step of the server's expiry and cleanup.

mod history;
mod holds;
mod order;
mod stages;
mod stuck;
mod tables;
mod unindexed;
mod wire;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use chrono::{DateTime, TimeDelta, Utc};
use tailrace::catalog::connect::close;
use tailrace::catalog::tables::catalogs;
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::Settings;
use tailrace::trace::{Asked, DropTrace, TraceReport, advance, trace};
use tailrace_kit::lake::{Catalog, CatalogOptions, Field, NewFile, Table};
use tailrace_kit::simulated_loops::{Expiry, FloorMove};

use crate::support::TestDatabase;
use crate::support::program::{days_ago, settings};

/// A lake with the table `events.raw` by day, of which seven days are kept.
struct Scene {
    database: TestDatabase,
    catalog: Catalog,
    table: Table,
    expiry: Expiry,
}

impl Scene {
    /// With an hour of retention.
    async fn new() -> Result<Self> {
        Self::keeping(Some(Duration::from_secs(3600))).await
    }

    /// With this retention of snapshots.
    async fn keeping(retention: Option<Duration>) -> Result<Self> {
        let database = TestDatabase::new().await?;
        let options = CatalogOptions { retention, ..CatalogOptions::default() };
        let catalog = database.lake.catalog("lake", options).await?;
        let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
        database.govern(&table, "at", "7d").await?;
        let expiry = Expiry::new(&catalog);
        Ok(Scene { database, catalog, table, expiry })
    }

    /// Drops as many files of ten rows and a hundred bytes, of a day that is so old; its snapshot.
    async fn drop(&self, age: i64, files: usize) -> Result<i64> {
        let new = || NewFile::of([days_ago(age)]).records(10).bytes(100);
        self.table.append((0..files).map(|_| new()).collect()).await?;
        self.sweep().await
    }

    /// Drops what has expired, in one snapshot.
    async fn sweep(&self) -> Result<i64> {
        let report = self.database.sweep_one().await?;
        let [snapshot] = report.snapshots.as_slice() else { panic!("{report:?}") };
        Ok(snapshot.snapshot_id)
    }

    /// Moves the floor to a snapshot of the drop's; everything is old enough.
    async fn floor_to(&mut self, snapshot_id: i64) -> Result<()> {
        let from = self.catalog.floor().await?;
        self.expiry.batch = snapshot_id - from;
        let later = Utc::now() + TimeDelta::days(1);
        let moved = self.expiry.advance_floor(Some(later)).await?;
        assert_eq!(moved, FloorMove { from, to: snapshot_id });
        Ok(())
    }

    /// What a pass at this time notes.
    async fn note(&self, at: &str) -> Result<()> {
        let mut session = self.database.tailrace().session().await?;
        advance(&mut session, at.parse()?, &BTreeSet::new()).await?;
        close(session).await;
        Ok(())
    }

    /// What a whole pass at this time notes.
    async fn note_by_a_pass(&self, at: &str) -> Result<()> {
        self.database.sweep_with(&Settings { as_of: Some(at.parse()?), ..settings() }).await?;
        Ok(())
    }

    /// The table's drops.
    async fn report(&self) -> Result<TraceReport> {
        self.asked(Some(("events", "raw")), i64::MAX, 100).await
    }

    async fn asked(
        &self,
        table: Option<(&str, &str)>,
        before: i64,
        limit: i64,
    ) -> Result<TraceReport> {
        let mut session = self.database.tailrace().read_only_session().await?;
        let found = catalogs(&mut session).await?;
        let catalog = found.iter().find(|catalog| catalog.name == "lake").context("lake")?;
        let report = trace(&mut session, catalog, Asked { table, before, limit }).await;
        close(session).await;
        report
    }

    /// The only drop.
    async fn only(&self) -> Result<DropTrace> {
        let mut report = self.report().await?;
        assert_eq!(report.drops.len(), 1, "{report:?}");
        report.drops.pop().context("one")
    }

    /// The highest id that the server's queue ever gave.
    async fn last_removal(&self) -> Result<i64> {
        Ok(sqlx::query_scalar("SELECT max(removal_id) FROM hog_file_removal")
            .fetch_one(&self.database.pool)
            .await?)
    }

    /// When a snapshot was made.
    async fn time_of(&self, snapshot_id: i64) -> Result<UtcInstant> {
        let time: DateTime<Utc> = sqlx::query_scalar(
            "SELECT snapshot_time FROM hog_snapshot WHERE catalog_id = $1 AND snapshot_id = $2",
        )
        .bind(self.catalog.catalog_id)
        .bind(snapshot_id)
        .fetch_one(&self.database.pool)
        .await?;
        Ok(time.into())
    }
}

/// A time that can be told from any other.
/// An instant as the program shows it to people.
fn second(at: UtcInstant) -> String {
    let time = at.to_chrono().expect("a time of this era");
    time.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn at(text: &str) -> Option<UtcInstant> {
    Some(text.parse().expect("a time"))
}
