//! Tests of a catalog that is restored to an earlier time while the schema `tailrace` is not.

mod drops;
mod memory;
mod passes;
mod told;
mod unharmed;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{TimeDelta, Utc};
use tailrace::catalog::connect::close;
use tailrace::catalog::tables::catalogs;
use tailrace::explicit::call::{DropAnswer, DropBody};
use tailrace::explicit::drop_partitions;
use tailrace::sweep::report::TableReport;
use tailrace::trace::{Asked, DropTrace, trace};
use tailrace_kit::lake::{Catalog, CatalogOptions, Field, NewFile, Table};
use tailrace_kit::simulated_loops::Expiry;

use crate::explicit::{days, patient, raw};
use crate::support::TestDatabase;
use crate::support::governed::live_ids;
use crate::support::program::days_ago;

/// A lake with an hour of retention and the table `events.raw` by day, which keeps seven.
pub struct Scene {
    pub database: TestDatabase,
    pub catalog: Catalog,
    pub table: Table,
}

impl Scene {
    pub async fn new() -> Result<Self> {
        let database = TestDatabase::new().await?;
        let retention = Some(Duration::from_secs(3600));
        let options = CatalogOptions { retention, ..CatalogOptions::default() };
        let catalog = database.lake.catalog("lake", options).await?;
        let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
        database.govern(&table, "at", "7d").await?;
        Ok(Scene { database, catalog, table })
    }

    /// Appends a file of each of these ages in days, in one commit; their ids.
    pub async fn append<const N: usize>(&self, ages: [i64; N]) -> Result<Vec<i64>> {
        let files = ages.map(|age| NewFile::of([days_ago(age)]).records(10).bytes(100));
        Ok(self.table.append(files.to_vec()).await?.file_ids)
    }

    pub async fn sweep(&self) -> Result<TableReport> {
        self.database.sweep_one().await
    }

    /// A pass that drops so many files in one snapshot; that snapshot.
    pub async fn dropping(&self, files: i64) -> Result<i64> {
        let report = self.sweep().await?;
        let [snapshot] = report.snapshots.as_slice() else { panic!("{report:?}") };
        assert_eq!(snapshot.files_ended, files, "{report:?}");
        Ok(snapshot.snapshot_id)
    }

    pub async fn live(&self) -> Result<Vec<i64>> {
        live_ids(&self.table).await
    }

    /// A drop by request of the day that is so old, with a fresh key.
    pub async fn request(&self, age: i64) -> Result<(DropBody, DropAnswer)> {
        let body = days([&days_ago(age)]);
        let answer = self.ask(&body).await?;
        Ok((body, answer))
    }

    pub async fn ask(&self, body: &DropBody) -> Result<DropAnswer> {
        let mut session = self.database.tailrace().session().await?;
        let answer = drop_partitions(&mut session, &raw(), body, "me", &patient()).await;
        close(session).await;
        Ok(answer?)
    }

    /// All drops, the newest first.
    pub async fn drops(&self) -> Result<Vec<DropTrace>> {
        let mut session = self.database.tailrace().read_only_session().await?;
        let found = catalogs(&mut session).await?.pop().context("lake")?;
        let asked = Asked { table: None, before: i64::MAX, limit: 100 };
        let report = trace(&mut session, &found, asked).await?;
        close(session).await;
        Ok(report.drops)
    }

    /// Snapshot, stage and whether that is noted, of all drops, the newest first.
    pub async fn stages(&self) -> Result<Vec<(i64, &'static str, bool)>> {
        let told = |d: &DropTrace| (d.snapshot_id, d.stage.name(), d.undone_seen_at.is_some());
        Ok(self.drops().await?.iter().map(told).collect())
    }

    /// Moves the floor to a snapshot.
    pub async fn floor_to(&self, snapshot_id: i64) -> Result<Expiry> {
        let mut expiry = Expiry::new(&self.catalog);
        expiry.batch = snapshot_id - self.catalog.floor().await?;
        let moved = expiry.advance_floor(Some(Utc::now() + TimeDelta::days(1))).await?;
        ensure!(moved.to == snapshot_id, "{moved:?}");
        Ok(expiry)
    }
}
