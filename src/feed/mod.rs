//! A table's changes between two snapshots, as hoglake's own changefeed tells them, and what that
//! one cannot tell: the files that a drop or truncate ended. Nothing of the window is missed, whatever
//! commits or expires while it is sent: where rows may be gone, the answer ends in an error.
//!
//! [`query`] says what can be asked, [`open`] checks it; [`stream`] tells the whole window in
//! chunks, [`page`] tells it in pages; [`window_reader`] finds the rows of both, [`cursor`] is where a page
//! ended.

pub mod cursor;
pub mod page;
pub mod query;
pub mod stream;
pub mod window_reader;

use crate::catalog::changefeed::{self, Edges, Section};
use crate::catalog::errors::Failure;
use crate::catalog::session::Session;
use crate::catalog::tables::{TableIdentity, find_table};
use crate::events;
use crate::explicit::call::TableRef;
use crate::explicit::problem::Problem;

pub use page::ChangesPage;
pub use query::ChangesQuery;
use window_reader::WindowReader;

/// How many snapshots of an outline are looked at at once.
const OUTLINE: i64 = 1000;

/// A window whose changes can be listed: the table is live, the window lies between floor and head,
/// and it needs no reconciliation.
#[derive(Debug)]
pub struct Changes {
    reader: WindowReader,
    /// The most entries of a page; `None` tells all of the window.
    limit: Option<usize>,
}

impl Changes {
    /// Whether a page was asked for ([`page`]), and not the whole window ([`stream`]).
    pub fn is_page(&self) -> bool {
        self.limit.is_some()
    }
}

/// Finds the table by its names and checks that the window can be answered.
///
/// One transaction, in which a window without `ended_files` is looked through for files that a
/// drop ended: about a thousand snapshots with a deletion take one statement.
///
/// A handler:
///
/// ```no_run
/// # use tailrace::explicit::problem::Problem;
/// # async fn example(database: tailrace::catalog::connect::Database,
/// #     table: tailrace::explicit::call::TableRef, query: tailrace::feed::ChangesQuery,
/// # ) -> Result<axum::response::Response, Problem> {
/// use axum::{Json, body::Body, response::IntoResponse};
///
/// let session = move || {
///     let database = database.clone();
///     async move { database.session().await.map(Box::new).map_err(|_| Problem::Internal) }
/// };
/// let mut first = session().await?;
/// let changes = tailrace::feed::open(&mut first, &table, &query).await?;
/// if changes.is_page() {
///     return Ok(Json(changes.page(&mut first).await?).into_response());
/// }
/// drop(first);
/// let body = Body::from_stream(changes.stream(session));
/// Ok(([("content-type", "application/json")], body).into_response())
/// # }
/// ```
///
/// # Errors
/// 404 for the table; 410 below the floor; 422 ahead of the head, for a window that ends before
/// it begins, and for parameters that do not go together; 400 for a cursor that is none; 409
/// `table_recreated` for a cursor of a table with another UUID, `table_dropped` if that happens right
/// now, `reconciliation_required` if the window holds what only `ended_files` tells; 503 where the
/// database is lost on the way.
pub async fn open(
    connection: &mut Session,
    table: &TableRef,
    query: &ChangesQuery,
) -> Result<Changes, Problem> {
    let asked = query.check()?;
    let found = find_table(connection, &table.catalog, &table.namespace, &table.table).await;
    let table = match found {
        Ok(found) => found.identity,
        Err(error) => {
            return Err(match error.downcast::<sqlx::Error>() {
                Ok(error) => failed(table, &error),
                Err(error) => Problem::NotFound(error.to_string()),
            });
        }
    };
    if asked.position.as_ref().is_some_and(|position| position.table_uuid != table.table_uuid) {
        return Err(Problem::TableRecreated { table: name(&table) });
    }
    let names = names(&table);
    let mut state = changefeed::begin(connection).await.map_err(|error| failed(&names, &error))?;
    let edges = edges(&mut state, &table).await?;
    // Snapshot ids are given out under the commit lock, and a commit is visible before its lock is free: who
    // sees the head at `to` sees every commit up to it. So the set of rows that began, or ended, in the window
    // is complete by now.
    let to = asked.to_snapshot.unwrap_or(edges.head);
    check_window(asked.from_snapshot, to, edges)?;
    if !asked.ended_files {
        check_told_without_ends(&mut state, &table, asked.from_snapshot, to).await?;
    }
    state.commit().await.map_err(|error| failed(&names, &error))?;
    let reader = WindowReader::new(table, asked.from_snapshot, to, asked.ended_files);
    let reader = match asked.position {
        Some(position) => reader.resume(position.section, position.after),
        None => reader,
    };
    Ok(Changes { reader, limit: asked.limit })
}

fn check_window(from: i64, to: i64, edges: Edges) -> Result<(), Problem> {
    let Edges { head, floor } = edges;
    if from < floor {
        return Err(below_floor(from, floor));
    }
    if to > head {
        return Err(Problem::Validation(format!("snapshot {to} is ahead of the head {head}")));
    }
    if from > to {
        return Err(Problem::Validation(format!(
            "the window ends at snapshot {to}, before it begins after {from}"
        )));
    }
    Ok(())
}

fn below_floor(from: i64, floor: i64) -> Problem {
    Problem::Expired(format!(
        "changes after snapshot {from} have expired: the oldest snapshot is {floor}; \
         reconcile from a full scan"
    ))
}

/// Refuses a window of which a consumer that hears of no ended files would keep what is gone. A
/// vector carries `table_deleted_from` too and ends no file, so it is the files that count.
async fn check_told_without_ends(
    state: &mut Session,
    table: &TableIdentity,
    from: i64,
    to: i64,
) -> Result<(), Problem> {
    let found = match changefeed::first_fence(&mut *state, table, from, to).await {
        Ok(None) => first_drop(state, table, from, to).await,
        fence => fence,
    };
    match found.map_err(|error| failed(&names(table), &error))? {
        None => Ok(()),
        Some(snapshot) => Err(Problem::ReconciliationRequired(format!(
            "snapshot {snapshot} ended files of {} that this answer cannot list: \
             ask with ended_files=true, or reconcile from a full scan",
            name(table)
        ))),
    }
}

async fn first_drop(
    state: &mut Session,
    table: &TableIdentity,
    from: i64,
    to: i64,
) -> sqlx::Result<Option<i64>> {
    let mut after = from;
    loop {
        let snapshots =
            changefeed::outline(&mut *state, Section::EndedFiles, table, after, to, OUTLINE)
                .await?;
        if let Some((snapshot, _)) = snapshots.iter().find(|(_, files)| *files > 0) {
            return Ok(Some(*snapshot));
        }
        match snapshots.last() {
            Some((last, _)) => after = *last,
            None => return Ok(None),
        }
    }
}

/// Head and floor. A table that is dropped takes its rows with it, floor or no floor: so each transaction
/// looks, in the state that it reads, whether the table that was opened is still live.
async fn edges(state: &mut Session, table: &TableIdentity) -> Result<Edges, Problem> {
    changefeed::edges(state, table.catalog_id, table.table_id, table.table_uuid)
        .await
        .map_err(|error| failed(&names(table), &error))?
        .ok_or_else(|| Problem::TableDropped { table: name(table) })
}

/// `ns.table`
fn name(table: &TableIdentity) -> String {
    format!("{}.{}", table.namespace, table.table)
}

fn names(table: &TableIdentity) -> TableRef {
    TableRef {
        catalog: table.catalog.clone(),
        namespace: table.namespace.clone(),
        table: table.table.clone(),
    }
}

/// Tells the log what the answer does not say. Where the database was lost on the way, the same
/// question may be asked again.
fn failed(table: &TableRef, error: &sqlx::Error) -> Problem {
    let TableRef { catalog, namespace, table } = table;
    tracing::error!(
        event = events::CHANGES_FAILED, %catalog, %namespace, %table, %error,
        "the changes of a table could not be read"
    );
    match Failure::of(error) {
        Failure::ConnectionLost => Problem::Unavailable,
        _ => Problem::Internal,
    }
}
