//! The server's queue of objects to delete (`hog_file_removal`), which only it writes.

use chrono::{DateTime, Utc};

use super::inventory::owners::server_has_index;
use super::session::Session;

/// How many rows of the catalog's queue are not drained yet, counted up to `limit`: where that is
/// the answer, there may be more.
///
/// Rows that were drained stay in the table for long, and lie before the others, so the count
/// goes through the partial index of those that are not (`hog_file_removal_drain`) and reads no
/// more of it than the limit. The order is there for the planner alone: without it a scan of the
/// table, which it takes to meet such rows early, looks cheaper than the index; and so does the
/// primary key where two catalogs share the queue, unless the order is one that it cannot give.
pub async fn undrained(connection: &mut Session, catalog_id: i64, limit: i64) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        r#"select pg_catalog.count(*) as "rows!" from (
             select from hog_file_removal
             where catalog_id between $1 and $1 and drained_at is null
             order by catalog_id, removal_id
             limit $2) as first_rows"#,
        catalog_id,
        limit
    )
    .fetch_one(connection)
    .await
}

/// How many of a queue's first undrained rows are looked at for those that were tried in vain. Cleanup goes
/// from the lower end of the queue on, so what it cannot drain gathers there.
const LOOKED_AT: i64 = 1_000;

/// How many of those are listed.
pub const TOLD: i64 = 100;

/// Where no row is known that names the path, it is told after so many tries: cleanup may be at it, or have
/// failed once.
const TRIED: i32 = 3;

/// A queued path that cleanup tried, and has not drained. Where a row names it, the server skips it at
/// each run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    pub removal_id: i64,
    pub path: String,
    /// When it was queued.
    pub scheduled_at: DateTime<Utc>,
    /// How often it was tried.
    pub attempts: i32,
    /// When it was tried last.
    pub last_attempt_at: Option<DateTime<Utc>>,
    /// A row that names the path, a live one if there is one; `None` where none of a file or vector was
    /// looked for or found.
    pub named_by: Option<Namer>,
}

/// A row that names a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namer {
    /// Whether it is a deletion vector, and not a data file.
    pub is_vector: bool,
    /// The id of the file or of the vector.
    pub file_id: i64,
    pub table_id: i64,
    /// NAMESPACE.TABLE, as the table is named now or was named last.
    pub table: Option<String>,
    /// The snapshot in which it ended; `None` while it is live.
    pub end_snapshot: Option<i64>,
}

/// Whether the server has the indexes by which a path leads to its rows, which came with V17.
pub async fn has_path_indexes(connection: &mut Session) -> sqlx::Result<bool> {
    Ok(server_has_index(connection, "hog_data_file", "hog_data_file_path").await?
        && server_has_index(connection, "hog_delete_file", "hog_delete_file_path").await?)
}

/// Of the first 1,000 undrained rows of the catalog's queue those that were tried in vain, up to
/// [`TOLD`], the oldest first: a path that a row names after its first try. `by_path` says whether the rows
/// are to be looked up that name the paths: by hog_data_file_path and hog_delete_file_path, up to ten each,
/// which the server must have then.
pub async fn stuck(
    connection: &mut Session,
    catalog_id: i64,
    by_path: bool,
) -> sqlx::Result<Vec<Stuck>> {
    let rows = sqlx::query!(
        r#"with tried as materialized (
             select removal_id, path, scheduled_at, attempts, last_attempt_at from (
               select catalog_id, removal_id, path, scheduled_at, attempts, last_attempt_at
               from hog_file_removal
               where catalog_id between $1 and $1 and drained_at is null
               order by catalog_id, removal_id
               limit $2) as first_rows
             where attempts > 0
           )
           select t.removal_id as "removal_id!", t.path as "path!",
                  t.scheduled_at as "scheduled_at!", t.attempts as "attempts!",
                  t.last_attempt_at as "last_attempt_at?",
                  n.is_vector as "is_vector?", n.file_id as "file_id?", n.table_id as "table_id?",
                  n.end_snapshot as "end_snapshot?",
                  (select s.name || '.' || v.name
                   from hog_table_version v
                   join hog_namespace s
                     on s.catalog_id = v.catalog_id and s.namespace_id = v.namespace_id
                   where v.catalog_id = $1 and v.table_id = n.table_id
                   order by v.begin_snapshot desc limit 1) as "table?"
           from tried t
           left join lateral (
             select is_vector, file_id, table_id, end_snapshot from (
               (select false as is_vector, f.data_file_id as file_id, f.table_id, f.end_snapshot
                from hog_data_file f
                where $3 and f.catalog_id = $1 and f.path = t.path limit 10)
               union all
               (select true, d.delete_file_id, d.table_id, d.end_snapshot from hog_delete_file d
                where $3 and d.catalog_id = $1 and d.path = t.path limit 10)) as named
             order by end_snapshot desc nulls first, file_id limit 1) as n on true
           where n.file_id is not null or t.attempts >= $4
           order by t.removal_id limit $5"#,
        catalog_id,
        LOOKED_AT,
        by_path,
        TRIED,
        TOLD
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let named_by = match (row.is_vector, row.file_id, row.table_id) {
                (Some(is_vector), Some(file_id), Some(table_id)) => Some(Namer {
                    is_vector,
                    file_id,
                    table_id,
                    table: row.table,
                    end_snapshot: row.end_snapshot,
                }),
                _ => None,
            };
            Stuck {
                removal_id: row.removal_id,
                path: row.path,
                scheduled_at: row.scheduled_at,
                attempts: row.attempts,
                last_attempt_at: row.last_attempt_at,
                named_by,
            }
        })
        .collect())
}
