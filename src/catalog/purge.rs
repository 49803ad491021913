//! Rows of ours that nothing stands behind any more.

use std::time::Duration;

use sqlx::PgConnection;

use super::receipts;

/// Receipts are purged in batches of this many rows, and at most so many batches a pass.
const BATCH: i64 = 1_000;
const BATCHES: usize = 20;

/// Purges, of all catalogs but these, rows that name a table or a catalog which is gone, drops that are gone (or undone) for
/// longer than `history_keep`, heads noted of catalogs that are gone, and receipts older than `receipt_keep`.
///
/// A drop stays in the history, however old, until it is gone: so it can be told of any data that
/// is still somewhere; and while a receipt names it, for a replay tells whether it was undone. Of a catalog that is no more nothing will ever be told, and age alone counts.
/// After a refused clock the age counts from when it was accepted again: what was noted before may bear
/// any date, and is at least as old as that.
/// Which catalogs have a history is asked of its key in steps, for it may be long.
///
/// A table that was replaced keeps its rows until the server has retired it: they mean nothing
/// by then, but tell that a policy was left behind. (Servers before V14 lack `replaced_table_id`: it
/// is read as [`super`] says.)
pub async fn purge(
    connection: &mut PgConnection,
    history_keep: Duration,
    receipt_keep: Duration,
    but: &[i64],
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"with kept as materialized (
             select catalog_id, table_id from hog_table where dropped_snapshot is null
             union
             select s.catalog_id, s.replaced_table_id
             from (select null::bigint as replaced_table_id) as absent
             cross join lateral (select catalog_id, replaced_table_id from hog_table) as s
             where s.replaced_table_id is not null
           ),
           gone as materialized (
             select catalog_id, table_id from (
               select catalog_id, table_id from tailrace.policy
               union select catalog_id, table_id from tailrace.spec_copy
               union select catalog_id, table_id from tailrace.source_column_type
               union select catalog_id, table_id from tailrace.sweep_state
               union select catalog_id, table_id from tailrace.sweep_cursor) as named
             where catalog_id <> all ($1::bigint[])
             except
             select catalog_id, table_id from kept
           ),
           policies as (
             delete from tailrace.policy x using gone g
             where x.catalog_id = g.catalog_id and x.table_id = g.table_id
           ),
           specs as (
             delete from tailrace.spec_copy x using gone g
             where x.catalog_id = g.catalog_id and x.table_id = g.table_id
           ),
           types as (
             delete from tailrace.source_column_type x using gone g
             where x.catalog_id = g.catalog_id and x.table_id = g.table_id
           ),
           states as (
             delete from tailrace.sweep_state x using gone g
             where x.catalog_id = g.catalog_id and x.table_id = g.table_id
           )
           delete from tailrace.sweep_cursor x using gone g
           where x.catalog_id = g.catalog_id and x.table_id = g.table_id"#,
        but
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        r#"delete from tailrace.drop_history h
           where coalesce(undone_seen_at, gone_seen_at)
                 < pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $1)
             and catalog_id <> all ($2::bigint[])
             and not exists (select from tailrace.drop_receipt r where r.drop_id = h.drop_id)
             and not exists (
               select from tailrace.clock_memory m
               where m.catalog_id = h.catalog_id and m.epoch > 0::bigint
                 and m.epoch_began >= pg_catalog.clock_timestamp()
                                      - pg_catalog.make_interval(secs => $1))"#,
        history_keep.as_secs_f64(),
        but
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        r#"with recursive known as (
             select pg_catalog.min(catalog_id) as catalog_id from tailrace.drop_history
             union all
             select (select pg_catalog.min(h.catalog_id) from tailrace.drop_history h
                     where h.catalog_id > k.catalog_id)
             from known k where k.catalog_id is not null
           )
           delete from tailrace.drop_history
           where catalog_id = any (array (
                   select k.catalog_id from known k
                   where not exists (select from hog_catalog c
                                     where c.catalog_id = k.catalog_id)))
             and catalog_id <> all ($2::bigint[])
             and dropped_at < pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $1)"#,
        history_keep.as_secs_f64(),
        but
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        r#"delete from tailrace.noted_head h
           where not exists (select from hog_catalog c where c.catalog_id = h.catalog_id)
             and catalog_id <> all ($2::bigint[])
             and noted_at < pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $1)"#,
        history_keep.as_secs_f64(),
        but
    )
    .execute(&mut *connection)
    .await?;
    for _ in 0..BATCHES {
        if receipts::purge(connection, receipt_keep, but, BATCH).await? < BATCH.unsigned_abs() {
            break;
        }
    }
    Ok(())
}
