//! How much of a drop is left: rows that it ended, and what waits in the server's queue.

use std::collections::BTreeMap;

use super::read::{COUNTED, ROWS_COUNTED};
use crate::catalog::session::Session;

/// How many files that ended in each of these snapshots still have a row, up to [`ROWS_COUNTED`]
/// each; through hog_data_file_ended, which the server must have.
pub async fn files_left(
    connection: &mut Session,
    catalog_id: i64,
    snapshot_ids: &[i64],
) -> sqlx::Result<BTreeMap<i64, i64>> {
    let rows = sqlx::query!(
        r#"select s.snapshot_id as "snapshot_id!", (
             select pg_catalog.count(*) from (
               select from hog_data_file f
               where f.catalog_id = $1 and f.end_snapshot = s.snapshot_id
               limit $3) as rows) as "files!"
           from pg_catalog.unnest($2::bigint[]) as s (snapshot_id)"#,
        catalog_id,
        snapshot_ids,
        ROWS_COUNTED
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| (row.snapshot_id, row.files)).collect())
}

/// The undrained rows of a catalog's queue, the first [`COUNTED`] of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queue {
    /// How many rows were counted.
    pub undrained: i64,
    /// Whether there are no more than that.
    pub is_all: bool,
    /// By mark, how many of them are at or below it.
    at_or_below: BTreeMap<i64, i64>,
    /// The ids of those that were tried in vain, as far as they are listed.
    pub stuck: Vec<i64>,
}

impl Queue {
    /// How many undrained rows are at or below a mark that was asked for, at least. Only where it
    /// is all of the queue, or less than that, is it exact.
    pub fn at_or_below(&self, mark: i64) -> i64 {
        self.at_or_below.get(&mark).copied().unwrap_or(0)
    }

    /// How many of those that were tried in vain are at or below a mark.
    pub fn stuck_at_or_below(&self, mark: i64) -> i64 {
        self.stuck.iter().filter(|removal_id| **removal_id <= mark).count() as i64
    }
}

/// Counts, in one scan of hog_file_removal_drain from its beginning, the undrained rows at or
/// below each of the marks.
pub async fn queue(
    connection: &mut Session,
    catalog_id: i64,
    marks: impl IntoIterator<Item = i64>,
) -> sqlx::Result<Queue> {
    let mut counts: BTreeMap<i64, i64> = marks.into_iter().map(|mark| (mark, 0)).collect();
    // A row is at or below a mark if it is below the next id: width_bucket's limits belong above.
    let limits: Vec<i64> = counts.keys().map(|mark| mark.saturating_add(1)).collect();
    let rows = sqlx::query!(
        r#"select pg_catalog.width_bucket(removal_id, $2::bigint[]) as "bucket!",
                  pg_catalog.count(*) as "rows!"
           from (select removal_id from hog_file_removal
                 where catalog_id = $1 and drained_at is null
                 order by removal_id limit $3) as first_rows
           group by 1"#,
        catalog_id,
        &limits,
        COUNTED
    )
    .fetch_all(connection)
    .await?;
    let undrained = rows.iter().map(|row| row.rows).sum();
    for (position, count) in counts.values_mut().enumerate() {
        let is_below = |bucket: i32| usize::try_from(bucket).is_ok_and(|bucket| bucket <= position);
        *count = rows.iter().filter(|row| is_below(row.bucket)).map(|row| row.rows).sum();
    }
    let is_all = undrained < COUNTED;
    Ok(Queue { undrained, is_all, at_or_below: counts, stuck: Vec::new() })
}
