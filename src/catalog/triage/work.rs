//! What may be due in tables, and what came late.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::tables::TableKey;
use crate::catalog::session::Session;
use crate::rules::instant::UtcInstant;

/// When the earliest row of a table ended that is to be looked at; with the policy's keep added, that is when
/// it fell due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EarliestEnds {
    /// Of all whose pause is over.
    pub any: Option<UtcInstant>,
    /// Of those that had not fallen due when the last pass looked at everything, or whose pause is over.
    pub since_looked: Option<UtcInstant>,
}

/// That of each table with something in its calendar, at this time; without one no pause is heeded.
///
/// A few descents of partial indexes for each table, however many rows it has.
pub async fn earliest_ends(
    connection: &mut Session,
    now: Option<UtcInstant>,
) -> sqlx::Result<HashMap<TableKey, EarliestEnds>> {
    let rows = sqlx::query!(
        r#"select s.catalog_id, s.table_uuid,
                  case when coalesce(plain.ended, paused.ended) is not null
                    then least(greatest(least(plain.ended, paused.ended),
                                        '0001-01-01'::timestamptz), '9999-12-31'::timestamptz)
                    end as ended,
                  case when coalesce(fresh.ended, paused.ended) is not null
                    then least(greatest(least(fresh.ended, paused.ended),
                                        '0001-01-01'::timestamptz),
                               '9999-12-31'::timestamptz) end as fresh_ended
           from tailrace.table_state s
           left join lateral (
             select last_end as ended from tailrace.calendar
             where catalog_id = s.catalog_id and table_uuid = s.table_uuid and next_look is null
             order by last_end limit 1) as plain on true
           left join lateral (
             select last_end as ended from tailrace.calendar
             where catalog_id = s.catalog_id and table_uuid = s.table_uuid and next_look is null
               and last_end > coalesce(s.looked_through, '-infinity'::timestamptz)
             order by last_end limit 1) as fresh on true
           left join lateral (
             select pg_catalog.min(last_end) as ended from (
               select last_end from tailrace.calendar
               where catalog_id = s.catalog_id and table_uuid = s.table_uuid
                 and next_look is not null
                 and next_look <= coalesce($1, 'infinity'::timestamptz) offset 0) as over) as paused on true
           where plain.ended is not null or paused.ended is not null"#,
        now.and_then(UtcInstant::to_chrono)
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let ends = EarliestEnds {
                any: row.ended.map(UtcInstant::from),
                since_looked: row.fresh_ended.map(UtcInstant::from),
            };
            ((row.catalog_id, row.table_uuid), ends)
        })
        .collect())
}

/// A table and the snapshot up to which its files were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermark {
    pub catalog_id: i64,
    pub table_id: i64,
    pub through_snapshot: i64,
}

/// Which of these tables, by catalog and table id, have a live file that began after their watermark: one
/// descent of `hog_data_file_live` each. Asked of the files themselves: what snapshots changed costs more to
/// read, and goes with their expiry.
pub async fn with_new_files(
    connection: &mut Session,
    tables: &[Watermark],
) -> sqlx::Result<HashSet<(i64, i64)>> {
    if tables.is_empty() {
        return Ok(HashSet::new());
    }
    let catalogs: Vec<i64> = tables.iter().map(|table| table.catalog_id).collect();
    let ids: Vec<i64> = tables.iter().map(|table| table.table_id).collect();
    let through: Vec<i64> = tables.iter().map(|table| table.through_snapshot).collect();
    let rows = sqlx::query!(
        r#"select g.catalog_id as "catalog_id!", g.table_id as "table_id!"
           from unnest($1::bigint[], $2::bigint[], $3::bigint[])
                  as g (catalog_id, table_id, through_snapshot)
           cross join lateral (
             select begin_snapshot from hog_data_file
             where catalog_id = g.catalog_id and table_id = g.table_id and end_snapshot is null
               and begin_snapshot > g.through_snapshot
             order by begin_snapshot desc limit 1) as late"#,
        &catalogs,
        &ids,
        &through
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| (row.catalog_id, row.table_id)).collect())
}

/// The catalogs in which a mark of a spec is due at `now` and can be noted (see [`crate::catalog::marks`]).
/// For a session that may read `hog_table_stats`.
pub async fn with_due_marks(
    connection: &mut Session,
    now: DateTime<Utc>,
    window: std::time::Duration,
) -> sqlx::Result<HashSet<i64>> {
    let rows = sqlx::query_scalar!(
        r#"select distinct coalesce(k.catalog_id) as "catalog_id!"
           from tailrace.spec_copy k
           join hog_table t on t.catalog_id = k.catalog_id and t.table_id = k.table_id
                           and t.table_uuid = k.table_uuid
           join hog_table_stats s on s.catalog_id = k.catalog_id and s.table_id = k.table_id
           where k.mark_row_id is null
             and coalesce(k.mark_due,
                          k.copied_at + pg_catalog.make_interval(secs => $2)) <= $1"#,
        now,
        window.as_secs_f64()
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().collect())
}

/// Tables by catalog and UUID, as two arrays.
pub(super) fn arrays(keys: &[TableKey]) -> (Vec<i64>, Vec<Uuid>) {
    keys.iter().copied().unzip()
}
