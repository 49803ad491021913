//! Tests of the explicit drop.

mod basics;
mod between;
mod fence;
mod guard_property;
mod guards;
mod ledger;
mod locked_rows;
mod matching;
mod purge;
mod races;
mod receipts;
mod retries;
mod round_trips;
mod same_key;
mod server_keys;
mod size;
mod specs;
mod truncate;
mod validation;
pub mod wire;

use std::time::Duration;

use anyhow::Result;
use tailrace::catalog::session::Session;
use tailrace::explicit::call::{
    DropAnswer, DropBody, PartitionItem, TableRef, TruncateAnswer, TruncateBody,
};
use tailrace::explicit::problem::Problem;
use tailrace::explicit::{Bounds, drop_partitions, truncate};
use tailrace_kit::lake::{Catalog, Field, NewFile, Table};
use uuid::Uuid;

use crate::support::TestDatabase;
use crate::support::program::settings;

/// A lake with one table, `events.raw` in the catalog `lake`.
pub struct Scene {
    pub database: TestDatabase,
    pub catalog: Catalog,
    pub table: Table,
}

impl Scene {
    /// Partitioned by day.
    pub async fn new() -> Result<Self> {
        Self::of(&[Field::day("at")]).await
    }

    /// Partitioned by these.
    pub async fn of(spec: &[Field]) -> Result<Self> {
        Self::within(TestDatabase::new().await?, spec).await
    }

    /// In this database.
    pub async fn within(database: TestDatabase, spec: &[Field]) -> Result<Self> {
        let catalog = database.catalog("lake").await?;
        let table = database.table(&catalog, "raw", spec).await?;
        Ok(Scene { database, catalog, table })
    }

    /// A session of ours.
    pub async fn session(&self) -> Result<Session> {
        self.database.tailrace().session().await
    }

    /// A drop in a session of its own, which waits for the commit lock as long as it takes.
    pub async fn call(&self, body: &DropBody) -> Result<Result<DropAnswer, Problem>> {
        self.call_with(body, &patient()).await
    }

    /// As [`Self::call`], within these bounds.
    pub async fn call_with(
        &self,
        body: &DropBody,
        bounds: &Bounds,
    ) -> Result<Result<DropAnswer, Problem>> {
        let mut session = self.session().await?;
        Ok(drop_partitions(&mut session, &raw(), body, "me", bounds).await)
    }

    /// A drop that is to succeed.
    pub async fn done(&self, body: &DropBody) -> Result<DropAnswer> {
        Ok(self.call(body).await??)
    }

    /// A drop that is to be refused; nothing of any table may change.
    pub async fn refused(&self, body: &DropBody) -> Result<Problem> {
        let before = self.everything().await?;
        let refused = self.call(body).await?.expect_err("it is refused");
        assert_eq!(self.everything().await?, before, "nothing is written");
        Ok(refused)
    }

    /// A truncate in a session of its own.
    pub async fn truncate(&self, body: &TruncateBody) -> Result<Result<TruncateAnswer, Problem>> {
        let mut session = self.session().await?;
        let uuid = Some(self.table.table_uuid);
        Ok(truncate(&mut session, &raw(), uuid, body, "me", &patient()).await)
    }

    /// The ids of the live files.
    pub async fn live(&self) -> Result<Vec<i64>> {
        live(&self.table).await
    }

    /// All rows of the server's tables and of ours.
    pub async fn everything(&self) -> Result<(tailrace_kit::lake::Dump, Vec<String>)> {
        let ours = self
            .database
            .rows(
                "SELECT to_jsonb(r) AS row FROM tailrace.drop_receipt r
                 UNION ALL SELECT to_jsonb(h) FROM tailrace.drop_history h ORDER BY 1",
            )
            .await?;
        Ok((self.database.lake.dump().await?, ours))
    }

    /// How many receipts there are.
    pub async fn receipts(&self) -> Result<i64> {
        Ok(sqlx::query_scalar("SELECT count(*) FROM tailrace.drop_receipt")
            .fetch_one(&self.database.pool)
            .await?)
    }
}

/// The ids of a table's live files.
pub async fn live(table: &Table) -> Result<Vec<i64>> {
    Ok(table.live_files().await?.iter().map(|file| file.data_file_id).collect())
}

/// Bounds that a slow machine does not meet.
pub fn patient() -> Bounds {
    let mut limits = settings().limits;
    limits.lock_timeout = Duration::from_secs(60);
    limits.row_lock_timeout = Duration::from_millis(100);
    limits.max_hold = Duration::from_secs(60);
    Bounds { limits, max_files: 100_000 }
}

/// The scene's table by its names.
pub fn raw() -> TableRef {
    TableRef { catalog: "lake".to_owned(), namespace: "events".to_owned(), table: "raw".to_owned() }
}

/// An item of the live spec.
pub fn item<const N: usize>(values: [Option<&str>; N]) -> PartitionItem {
    PartitionItem {
        partition_values: values.into_iter().map(|value| value.map(str::to_owned)).collect(),
        spec_id: None,
        literal: false,
    }
}

/// An item of a spec.
pub fn of_spec<const N: usize>(spec_id: i64, values: [Option<&str>; N]) -> PartitionItem {
    PartitionItem { spec_id: Some(spec_id), ..item(values) }
}

/// A request with a fresh key.
pub fn drop_of(partitions: Vec<PartitionItem>) -> DropBody {
    DropBody {
        partitions,
        idempotency_key: Uuid::new_v4(),
        expected_table_uuid: None,
        read_snapshot: None,
        author: None,
        message: None,
        dry_run: false,
        fence: false,
    }
}

/// A request for days with a fresh key.
pub fn days<const N: usize>(days: [&str; N]) -> DropBody {
    drop_of(days.into_iter().map(|day| item([Some(day)])).collect())
}

/// A file of 10 records and 100 bytes.
pub fn file(day: &str) -> NewFile {
    NewFile::of([day]).records(10).bytes(100)
}

/// The answer, as the first one to it.
pub fn first(answer: DropAnswer) -> DropAnswer {
    DropAnswer { replayed: false, ..answer }
}

/// How many files each partition of an answer gave.
pub fn per_partition(answer: &DropAnswer) -> Vec<i64> {
    answer.partitions.iter().map(|partition| partition.files_ended).collect()
}
