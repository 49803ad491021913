//! The server's queue of objects to delete (`hog_file_removal`), which only it writes.

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
