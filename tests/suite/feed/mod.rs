//! Tests of the changes of a table, on real catalogs.

mod ends;
mod floor;
mod large;
mod lists;
mod pages;
mod random;
mod refusals;
mod servers;
mod several;

use std::pin::pin;

use anyhow::{Context, Result, ensure};
use futures_util::TryStreamExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use sqlx::PgPool;
use tailrace::catalog::session::{Patience, Session};
use tailrace::catalog::tuples::TupleOfSpec;
use tailrace::drop::{DropOutcome, DropRequest, drop_tuples};
use tailrace::explicit::call::TableRef;
use tailrace::explicit::problem::Problem;
use tailrace::feed::{self, Changes, ChangesPage, ChangesQuery};
use tailrace::rules::expiry::StoredTuple;
use tailrace_kit::lake::{Catalog, Field, NewFile, Table};

use crate::drop::races::patient;
use crate::support::TestDatabase;

/// A lake with the table `events.raw` by day.
pub struct Scene {
    pub database: TestDatabase,
    pub catalog: Catalog,
    pub table: Table,
}

impl Scene {
    pub async fn new() -> Result<Self> {
        Self::within(TestDatabase::new().await?).await
    }

    pub async fn within(database: TestDatabase) -> Result<Self> {
        let catalog = database.catalog("lake").await?;
        let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
        Ok(Scene { database, catalog, table })
    }

    /// Appends a file for each of these days, and returns the snapshot.
    pub async fn append(&self, days: &[&str]) -> Result<i64> {
        let files = days.iter().map(|day| NewFile::of([*day]).records(10)).collect();
        Ok(self.table.append(files).await?.snapshot_id)
    }

    /// Drops a day as the daemon's pass does, and returns the snapshot.
    pub async fn drop_day(&self, day: &str) -> Result<Option<i64>> {
        drop_day(&self.database, &self.table, day).await
    }

    pub fn pool(&self) -> &PgPool {
        self.database.lake.pool()
    }

    /// Opens a window of `events.raw`.
    pub async fn open(&self, query: &ChangesQuery) -> Result<Result<Changes, Problem>> {
        let table = table_ref("lake", "events", "raw");
        let mut session = self.database.plain_session().await?;
        Ok(feed::open(&mut session, &table, query).await)
    }

    /// The whole answer as its bytes.
    pub async fn text(&self, query: &ChangesQuery) -> Result<String> {
        let changes = self.open(query).await??;
        let parts: Vec<Vec<u8>> = changes.stream(sessions(self.pool())).try_collect().await?;
        Ok(String::from_utf8(parts.concat())?)
    }

    /// The whole answer.
    pub async fn told(&self, query: &ChangesQuery) -> Result<Value> {
        let text = self.text(query).await?;
        serde_json::from_str(&text).context(text)
    }

    /// One page.
    pub async fn page(&self, query: &ChangesQuery) -> Result<ChangesPage> {
        let changes = self.open(query).await??;
        ensure!(changes.is_page() == query.limit.is_some());
        let mut session = self.database.plain_session().await?;
        Ok(changes.page(&mut session).await?)
    }

    /// All pages put together, without a cursor, each checked not to be larger than asked for.
    pub async fn paged(&self, query: &ChangesQuery, limit: i64) -> Result<Value> {
        let mut query = ChangesQuery { limit: Some(limit), ..query.clone() };
        let mut whole = self.page(&query).await?;
        ensure!(size(&whole) <= limit, "{limit}: {whole:?}");
        while let Some(cursor) = whole.next_cursor.take() {
            query.cursor = Some(cursor);
            let page = self.page(&query).await?;
            ensure!(size(&page) <= limit, "{limit}: {page:?}");
            ensure!(page.next_cursor.is_none() || size(&page) == limit, "{limit}: {page:?}");
            whole.files.extend(page.files);
            whole.delete_files.extend(page.delete_files);
            if let (Some(all), Some(more)) = (&mut whole.ended_files, page.ended_files) {
                all.extend(more);
            }
            whole.next_cursor = page.next_cursor;
        }
        Ok(serde_json::to_value(&whole)?)
    }

    /// Why a window is refused, as (status, code).
    pub async fn refused(&self, query: &ChangesQuery) -> Result<(u16, &'static str)> {
        let problem = self.open(query).await?.err().context("it is not refused")?;
        Ok((problem.status(), problem.code()))
    }
}

fn size(page: &ChangesPage) -> i64 {
    let ended = page.ended_files.as_ref().map_or(0, Vec::len);
    (page.files.len() + page.delete_files.len() + ended) as i64
}

/// A window without ended files.
pub fn window(from: i64, to: i64) -> ChangesQuery {
    ChangesQuery { from_snapshot: from, to_snapshot: Some(to), ..ChangesQuery::default() }
}

/// A window with ended files.
pub fn with_ends(from: i64, to: i64) -> ChangesQuery {
    ChangesQuery { ended_files: true, ..window(from, to) }
}

pub fn table_ref(catalog: &str, namespace: &str, table: &str) -> TableRef {
    let [catalog, namespace, table] = [catalog, namespace, table].map(str::to_owned);
    TableRef { catalog, namespace, table }
}

/// A session of its own.
type Given = Result<Box<Session>, Problem>;

/// What gives a stream its sessions.
pub fn sessions(pool: &PgPool) -> impl FnMut() -> BoxFuture<'static, Given> + Send + 'static {
    let pool = pool.clone();
    move || {
        let pool = pool.clone();
        Box::pin(async move {
            let connection = pool.acquire().await.map_err(|_| Problem::Internal)?.detach();
            Ok(Box::new(Session::of(connection, Patience::default())))
        })
    }
}

/// The ids of a list of an answer, by the name of the list.
pub fn ids(answer: &Value, list: &str) -> Vec<i64> {
    let id = if list == "delete_files" { "delete_file_id" } else { "data_file_id" };
    let entries = answer[list].as_array().map(Vec::as_slice).unwrap_or_default();
    entries.iter().filter_map(|entry| entry[id].as_i64()).collect()
}

/// The ids of all three lists.
pub fn all_ids(answer: &Value) -> [Vec<i64>; 3] {
    ["files", "delete_files", "ended_files"].map(|list| ids(answer, list))
}

/// What [`all_ids`] gives for an answer without entries.
pub const NOTHING: [Vec<i64>; 3] = [const { Vec::new() }; 3];

/// Drops all files of a day through the shared drop-commit.
pub async fn drop_day(database: &TestDatabase, table: &Table, day: &str) -> Result<Option<i64>> {
    let live = database.live(table).await?;
    let tuples = [TupleOfSpec {
        spec_id: table.live_spec().await?.context("a spec")?,
        tuple: StoredTuple { keys: vec![0], values: vec![Some(day.to_owned())] },
    }];
    let request = DropRequest {
        table: &live.identity,
        tuples: &tuples,
        lookup_keys: &[0],
        policy: None,
        found: &[],
        found_below: 0,
        late: None,
        is_piece: false,
        fence: false,
        author: "tester",
        message: "a day",
    };
    let mut session = pin!(database.tailrace().session().await?);
    match drop_tuples(&mut session, &request, &patient().limits).await.result? {
        DropOutcome::Dropped(receipt) => Ok(Some(receipt.snapshot_id)),
        DropOutcome::NothingMatches { .. } => Ok(None),
        DropOutcome::Refused(refusal) => anyhow::bail!("{refusal:?}"),
    }
}
