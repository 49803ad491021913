//! Tests of the drop that passes and explicit drops share: what it finds, what it reads before the
//! commit lock, and its result, whatever happens between planning and commit.

mod between;
mod bounded_hold;
mod differences;
mod finding;
mod locked_tables;
mod prewarming;
pub mod races;
mod round_trips;
mod silent;
mod sums;

use anyhow::{Context, Result, bail};
use tailrace::catalog::session::Session;
use tailrace::catalog::tables::TableIdentity;
use tailrace::catalog::tuples::TupleOfSpec;
use tailrace::drop::{DropOutcome, DropRequest, Receipt, drop_tuples};
use tailrace::rules::expiry::StoredTuple;
use tailrace_kit::lake::{Catalog, Field, NewFile, Table};

use crate::explicit::patient;
use crate::explicit::wire::Wire;
use crate::support::TestDatabase;

/// A lake with one table, `events.raw`, by day.
struct Scene {
    database: TestDatabase,
    catalog: Catalog,
    table: Table,
    identity: TableIdentity,
}

/// The table's live rows: files, and vectors with their files.
type Live = (Vec<i64>, Vec<(i64, i64)>);

impl Scene {
    async fn new() -> Result<Self> {
        let database = TestDatabase::new().await?;
        let catalog = database.catalog("lake").await?;
        let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
        let identity = database.live(&table).await?.identity;
        Ok(Scene { database, catalog, table, identity })
    }

    /// Appends a file to each of these days.
    async fn append<const N: usize>(&self, days: [&str; N]) -> Result<Vec<i64>> {
        Ok(self.table.append(days.map(file).to_vec()).await?.file_ids)
    }

    /// Drops days, and does something else between planning and the commit lock.
    async fn drop_while<T>(
        &self,
        days: &[&str],
        meanwhile: impl Future<Output = Result<T>>,
    ) -> Result<(DropOutcome, T)> {
        let (wire, through) = Wire::to(&self.database).await?;
        let mut session = through.session().await?;
        let tuples = days_of(days);
        let call = drop_days(&mut session, &self.identity, &tuples);
        wire.meanwhile("pg_advisory_xact_lock", call, meanwhile).await
    }

    async fn live(&self) -> Result<Live> {
        let files = self.table.live_files().await?.iter().map(|file| file.data_file_id).collect();
        let vectors = self.table.all_vectors().await?;
        let live = vectors.iter().filter(|vector| vector.end_snapshot.is_none());
        Ok((files, live.map(|vector| (vector.delete_file_id, vector.data_file_id)).collect()))
    }

    /// The snapshot in which a vector ended.
    async fn end_of_vector(&self, delete_file_id: i64) -> Result<Option<i64>> {
        let vectors = self.table.all_vectors().await?;
        let found = vectors.iter().find(|vector| vector.delete_file_id == delete_file_id);
        Ok(found.context("the vector is there")?.end_snapshot)
    }
}

/// A file of 10 records and 100 bytes.
fn file(day: &str) -> NewFile {
    NewFile::of([day]).records(10).bytes(100)
}

/// Tuples of the first spec.
fn days_of(days: &[&str]) -> Vec<TupleOfSpec> {
    let tuple = |day: &&str| StoredTuple { keys: vec![0], values: vec![Some((*day).to_owned())] };
    days.iter().map(|day| TupleOfSpec { spec_id: 1, tuple: tuple(day) }).collect()
}

async fn drop_days(
    session: &mut Session,
    table: &TableIdentity,
    tuples: &[TupleOfSpec],
) -> Result<DropOutcome> {
    let lookup_keys = vec![0; tuples.len()];
    let request = DropRequest { lookup_keys: &lookup_keys, ..request(table, tuples) };
    Ok(drop_tuples(session, &request, &patient().limits).await.result?)
}

/// A request without a policy that found nothing before; its lookup keys are to be given.
fn request<'a>(table: &'a TableIdentity, tuples: &'a [TupleOfSpec]) -> DropRequest<'a> {
    DropRequest {
        table,
        tuples,
        lookup_keys: &[],
        policy: None,
        found: &[],
        found_below: 0,
        late: None,
        is_piece: false,
        fence: false,
        author: "tester",
        message: "days",
    }
}

fn receipt(outcome: DropOutcome) -> Result<Receipt> {
    match outcome {
        DropOutcome::Dropped(receipt) => Ok(receipt),
        other => bail!("nothing was dropped: {other:?}"),
    }
}

/// Files and vectors of each tuple.
fn per_tuple(receipt: &Receipt) -> Vec<(i64, i64)> {
    receipt.per_tuple.iter().map(|counts| (counts.files, counts.delete_files)).collect()
}
