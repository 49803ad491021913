//! Marks: since which row of a table, and since which snapshot, every writer should know a partition
//! spec.
//!
//! A writer with a cached spec goes on with it for some time after it ended; its files carry the id
//! of the spec that is live by then. One window (`guard.stale_writer_window`) after a spec was first
//! seen, the table's row-id counter is noted with our copy of that spec: rows from it on were
//! appended since, for row ids are given out under the commit lock, in the order of the commits. The
//! counter is read at or after the time that it stands for, never before, so that what lands in
//! between is below the mark and stays unproven.

use chrono::{DateTime, Utc};

use super::clock_memory::Epoch;
use super::evidence::may_read;
use super::session::Session;
use super::tables::TableIdentity;
use crate::rules::expiry::evidence::first_late_snapshot;
use crate::rules::instant::UtcInstant;

/// Where a look comes later than this after a mark was due (an upgrade, a long pause), snapshots are
/// asked as well.
const LATE_LOOK: std::time::Duration = std::time::Duration::from_secs(86_400);

/// How many snapshots are asked for their time.
const PROBES: i64 = 64;

/// How many of our own drops are asked for their time.
const DROPS: i64 = 10_000;

/// Notes the marks of a catalog that are due at `now`, and has what waits for evidence in their tables
/// looked at by the next pass. One short statement where none is.
///
/// Nothing is noted without the right to read `hog_table_stats`, nor for a table that is not in
/// the catalog: the counter would be that of another one with its id.
pub async fn note_marks(
    connection: &mut Session,
    catalog_id: i64,
    now: UtcInstant,
    window: std::time::Duration,
) -> sqlx::Result<()> {
    let Some(now_stored) = now.to_chrono() else { return Ok(()) };
    let due = sqlx::query!(
        r#"select table_id, spec_id, due as "due!" from (
             select c.table_id, c.spec_id, coalesce(c.mark_due,
                      c.copied_at + pg_catalog.make_interval(secs => $3::double precision)) as due
             from tailrace.spec_copy c
             join hog_table t on t.catalog_id = c.catalog_id and t.table_id = c.table_id
                             and t.table_uuid = c.table_uuid
             where c.catalog_id = $1 and c.mark_row_id is null) as unmarked
           where due <= $2"#,
        catalog_id,
        now_stored,
        window.as_secs_f64()
    )
    .fetch_all(&mut *connection)
    .await?;
    if due.is_empty() || !may_read(connection).await?.table_stats {
        return Ok(());
    }
    let is_late = |due: DateTime<Utc>| UtcInstant::from(due).plus(LATE_LOOK) <= now;
    let dated = match due.iter().any(|row| is_late(row.due)) {
        true => dated_snapshots(connection, catalog_id).await?,
        false => Vec::new(),
    };
    let snapshot = |due: DateTime<Utc>| match is_late(due) {
        true => first_late_snapshot(&dated, due.into(), now),
        false => None,
    };
    let tables: Vec<i64> = due.iter().map(|row| row.table_id).collect();
    let specs: Vec<i64> = due.iter().map(|row| row.spec_id).collect();
    let snapshots: Vec<Option<i64>> = due.iter().map(|row| snapshot(row.due)).collect();
    sqlx::query!(
        r#"with marked as (
             update tailrace.spec_copy c
             set mark_row_id = s.next_row_id, mark_snapshot = d.snapshot_id, mark_due = null,
                 marked_at = $5, watched_from = coalesce(c.watched_from, s.next_row_id)
             from unnest($2::bigint[], $3::bigint[], $4::bigint[])
                    as d (table_id, spec_id, snapshot_id)
             join hog_table_stats s on s.catalog_id = $1 and s.table_id = d.table_id
             join hog_table t on t.catalog_id = $1 and t.table_id = d.table_id
             where c.catalog_id = $1 and c.table_id = d.table_id and c.spec_id = d.spec_id
               and c.table_uuid = t.table_uuid
               and c.mark_row_id is null
             returning c.table_uuid
           ),
           tuples as (
             update tailrace.waiting w set next_look = null
             from (select distinct table_uuid from marked) as m
             where w.catalog_id = $1 and w.table_uuid = m.table_uuid and w.next_look is not null
               and w.reason in ('ambiguous_spec', 'newer_rows_than_partition')
           )
           update tailrace.calendar k set next_look = null
           from (select distinct table_uuid from marked) as m
           where k.catalog_id = $1 and k.table_uuid = m.table_uuid and k.next_look is not null"#,
        catalog_id,
        &tables,
        &specs,
        &snapshots as &[Option<i64>],
        now_stored
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Some snapshots of the catalog with their times, by ascending id: of those that the server still
/// has, evenly spaced ones, and our own drops.
async fn dated_snapshots(
    connection: &mut Session,
    catalog_id: i64,
) -> sqlx::Result<Vec<(i64, UtcInstant)>> {
    let rows = sqlx::query!(
        r#"select snapshot_id as "snapshot_id!", snapshot_time as "snapshot_time!" from (
             select s.snapshot_id, s.snapshot_time
             from hog_catalog c
             cross join lateral pg_catalog.generate_series(
               greatest(c.earliest_snapshot_id, 1::bigint), c.last_snapshot_id,
               greatest((c.last_snapshot_id - c.earliest_snapshot_id) / $2::bigint, 1::bigint))
               as i (id)
             cross join lateral (
               select snapshot_id, snapshot_time from hog_snapshot
               where catalog_id = $1 and snapshot_id = i.id offset 0) as s
             where c.catalog_id = $1
             union
             (select snapshot_id, dropped_at from tailrace.drop_history
              where catalog_id = $1 and undone_seen_at is null
              order by snapshot_id desc limit $3)) as dated
           order by snapshot_id"#,
        catalog_id,
        PROBES,
        DROPS
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| (row.snapshot_id, row.snapshot_time.into())).collect())
}

/// Takes the marks of some specs back at `now`, to be noted anew a window later: a file shows that a
/// writer has not stopped. Files that land until then and show it again put it off again.
pub async fn revoke_marks(
    connection: &mut Session,
    table: &TableIdentity,
    specs: &[i64],
    now: UtcInstant,
    window: std::time::Duration,
) -> sqlx::Result<()> {
    let Some((now, due)) = now.to_chrono().zip(now.plus(window).to_chrono()) else {
        return Ok(());
    };
    let (catalog_id, table_id) = (table.catalog_id, table.table_id);
    // Read after the files that show it were found, so that these are below.
    let next_row_id =
        match may_read(connection).await?.table_stats {
            true => sqlx::query_scalar!(
                "select next_row_id from hog_table_stats where catalog_id = $1 and table_id = $2",
                catalog_id,
                table_id
            )
            .fetch_optional(&mut *connection)
            .await?,
            false => None,
        };
    sqlx::query!(
        r#"update tailrace.spec_copy
           set mark_row_id = null, mark_snapshot = null, mark_due = $4, marked_at = $6,
               watched_from = coalesce($5, watched_from)
           where catalog_id = $1 and table_id = $2 and table_uuid = $7 and spec_id = any($3)"#,
        catalog_id,
        table_id,
        specs,
        due,
        next_row_id,
        now,
        table.table_uuid
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Takes back what was noted under a clock that was refused since: every mark of the catalog that
/// was noted before `epoch`, or is waited for since then, is noted anew, a window after the epoch began.
pub async fn revoke_marks_before(
    connection: &mut Session,
    catalog_id: i64,
    epoch: Epoch,
    window: std::time::Duration,
) -> sqlx::Result<()> {
    let began = epoch.began.filter(|_| epoch.number > 0);
    let Some(due) = began.and_then(|began| began.plus(window).to_chrono()) else { return Ok(()) };
    sqlx::query!(
        r#"update tailrace.spec_copy
           set mark_row_id = null, mark_snapshot = null, mark_due = $3, clock_epoch = $2
           where catalog_id = $1 and clock_epoch < $2"#,
        catalog_id,
        epoch.number,
        due
    )
    .execute(connection)
    .await?;
    Ok(())
}
