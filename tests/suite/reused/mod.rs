//! What is remembered of a catalog that is restored, and ids that are given out a second time.

mod carried_over;
mod empty_moments;
mod first_thing_after;
mod in_flight;
mod orphans;
mod rights;
mod unnoticed;
mod upgrade;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{TimeDelta, Utc};
use tailrace::catalog::connect::close;
use tailrace::catalog::tables::catalogs;
use tailrace::demo::lake::{Catalog, CatalogOptions, Field, NewFile, Table};
use tailrace::demo::standin::Expiry;
use tailrace::explicit::call::{DropAnswer, DropBody};
use tailrace::explicit::drop_partitions;
use tailrace::sweep::report::TableReport;
use tailrace::trace::{Asked, DropTrace, trace};

use crate::explicit::{days, patient, raw};
use crate::support::TestDatabase;
use crate::support::governed::live_ids;
use crate::support::program::days_ago;

/// A lake with an hour of retention and the table `events.raw` by day, which keeps seven.
struct Scene {
    database: TestDatabase,
    catalog: Catalog,
    table: Table,
}

impl Scene {
    async fn new() -> Result<Self> {
        let database = TestDatabase::new().await?;
        let retention = Some(Duration::from_secs(3600));
        let options = CatalogOptions { retention, ..CatalogOptions::default() };
        let catalog = database.lake.catalog("lake", options).await?;
        let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
        database.govern(&table, "at", "7d").await?;
        Ok(Scene { database, catalog, table })
    }

    /// Appends a file of each of these ages in days, in one commit; their ids.
    async fn append<const N: usize>(&self, ages: [i64; N]) -> Result<Vec<i64>> {
        let files = ages.map(|age| NewFile::of([days_ago(age)]).records(10).bytes(100));
        Ok(self.table.append(files.to_vec()).await?.file_ids)
    }

    async fn sweep(&self) -> Result<TableReport> {
        self.database.sweep_one().await
    }

    async fn live(&self) -> Result<Vec<i64>> {
        live_ids(&self.table).await
    }

    /// A drop by request of the day that is so old, with a fresh key.
    async fn request(&self, age: i64) -> Result<(DropBody, DropAnswer)> {
        let body = days([&days_ago(age)]);
        let answer = self.ask(&body).await?;
        Ok((body, answer))
    }

    async fn ask(&self, body: &DropBody) -> Result<DropAnswer> {
        let mut session = self.database.tailrace().session().await?;
        let answer = drop_partitions(&mut session, &raw(), body, "me", &patient()).await;
        close(session).await;
        Ok(answer?)
    }

    /// All drops, the newest first.
    async fn drops(&self) -> Result<Vec<DropTrace>> {
        let mut session = self.database.tailrace().read_only_session().await?;
        let found = catalogs(&mut session).await?.pop().context("lake")?;
        let asked = Asked { table: None, before: i64::MAX, limit: 100 };
        let report = trace(&mut session, &found, asked).await?;
        close(session).await;
        Ok(report.drops)
    }

    /// Snapshot, stage and whether that is noted, of all drops, the newest first.
    async fn stages(&self) -> Result<Vec<(i64, &'static str, bool)>> {
        let told = |d: &DropTrace| (d.snapshot_id, d.stage.name(), d.undone_seen_at.is_some());
        Ok(self.drops().await?.iter().map(told).collect())
    }

    /// Moves the floor to a snapshot.
    async fn floor_to(&self, snapshot_id: i64) -> Result<Expiry> {
        let mut expiry = Expiry::new(&self.catalog);
        expiry.batch = snapshot_id - self.catalog.floor().await?;
        let moved = expiry.advance_floor(Some(Utc::now() + TimeDelta::days(1))).await?;
        ensure!(moved.to == snapshot_id, "{moved:?}");
        Ok(expiry)
    }

    /// Has all that passes and people noted so far be of a day earlier. Drops and snapshots keep their
    /// times, by which they are known.
    async fn a_day_passes(&self) -> Result<()> {
        self.database
            .sql(
                "UPDATE tailrace.noted_head SET noted_at = noted_at - interval '1 day';
                 UPDATE tailrace.policy SET updated_at = updated_at - interval '1 day';
                 UPDATE tailrace.spec_copy SET copied_at = copied_at - interval '1 day',
                                               marked_at = marked_at - interval '1 day';
                 UPDATE tailrace.drop_history
                    SET purged_seen_at = purged_seen_at - interval '1 day',
                        gone_seen_at = gone_seen_at - interval '1 day'",
            )
            .await
    }

    /// Commits a file with this value and the next id, as a writer of the server's does that was let
    /// in while somebody waits for the commit lock; its id.
    async fn slip_in(&self, value: &str) -> Result<i64> {
        let id = self.catalog.next_file_id().await?;
        let (catalog, table) = (self.catalog.catalog_id, self.table.table_id);
        self.database
            .sql(&format!(
                "BEGIN;
                 UPDATE hog_catalog SET last_snapshot_id = last_snapshot_id + 1,
                                        next_file_id = next_file_id + 1
                  WHERE catalog_id = {catalog};
                 INSERT INTO hog_snapshot (catalog_id, snapshot_id, snapshot_time, schema_version,
                                           author, commit_message)
                 SELECT catalog_id, last_snapshot_id, clock_timestamp(), schema_version, 'w', 'append'
                   FROM hog_catalog WHERE catalog_id = {catalog};
                 INSERT INTO hog_snapshot_change (catalog_id, snapshot_id, kind, object_id)
                 SELECT catalog_id, last_snapshot_id, 'table_inserted_into', {table}
                   FROM hog_catalog WHERE catalog_id = {catalog};
                 INSERT INTO hog_data_file (catalog_id, table_id, data_file_id, path, file_format,
                     record_count, file_size_bytes, row_id_start, begin_snapshot, spec_id)
                 SELECT {catalog}, {table}, {id}, 'slipped-in-' || gen_random_uuid(), 'parquet', 10, 100,
                        100000, last_snapshot_id, 1 FROM hog_catalog WHERE catalog_id = {catalog};
                 INSERT INTO hog_file_partition_value (catalog_id, data_file_id, key_index, value)
                 VALUES ({catalog}, {id}, 0, '{value}');
                 COMMIT"
            ))
            .await?;
        Ok(id)
    }
}
