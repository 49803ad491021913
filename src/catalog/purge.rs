//! Deletes rows of the schema tailrace that belong to nothing any more.

use std::time::Duration;

use super::receipts;
use super::session::Session;
use crate::rules::instant::UtcInstant;

/// Receipts are purged in batches of this many rows, and at most so many batches a pass.
const BATCH: i64 = 1_000;
const BATCHES: usize = 20;

/// Purges, of all catalogs but these, drops that are gone (or undone) for longer than `history_keep`, heads
/// noted of catalogs that are gone for as long, and receipts older than `receipt_keep`. What is kept of tables
/// that are gone is no business of this: see [`super::gone_tables`] and [`super::tombstones`].
///
/// A drop stays in the history, however old, until its objects are deleted, so that the history explains
/// whatever data is still there; and as long as a receipt names it, because the answer to a repeated request
/// says whether the drop was undone. The rows of a catalog that is gone are deleted once it is gone for
/// longer than `history_keep`: a catalog that is being restored is away for a moment. `now` is the time at which it is seen.
/// After a refused clock the age counts from when it was accepted again: what was noted before may bear
/// any date, and is at least as old as that.
/// Which catalogs have a history is asked of its key in steps, for it may be long.
pub async fn purge(
    connection: &mut Session,
    now: UtcInstant,
    history_keep: Duration,
    receipt_keep: Duration,
    but: &[i64],
) -> sqlx::Result<()> {
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
    purge_history_of_gone_catalogs(connection, now, history_keep, but).await?;
    for _ in 0..BATCHES {
        if receipts::purge(connection, receipt_keep, but, BATCH).await? < BATCH.unsigned_abs() {
            break;
        }
    }
    Ok(())
}

/// Notes which catalogs are gone, and purges the drops and the noted heads of those that are for longer
/// than `keep`. A head is noted only where a clock was accepted, which clock_memory remembers.
async fn purge_history_of_gone_catalogs(
    connection: &mut Session,
    now: UtcInstant,
    keep: Duration,
    but: &[i64],
) -> sqlx::Result<()> {
    let Some(now) = now.to_chrono() else { return Ok(()) };
    sqlx::query!(
        r#"update tailrace.clock_memory m set gone_seen_at = null
           where m.gone_seen_at is not null and m.catalog_id <> all ($1::bigint[])
             and exists (select from hog_catalog c where c.catalog_id = m.catalog_id)"#,
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
           insert into tailrace.clock_memory as m (catalog_id, gone_seen_at)
           select k.catalog_id, $1
           from (select catalog_id from known
                 union select catalog_id from tailrace.clock_memory) as k
           where k.catalog_id is not null and k.catalog_id <> all ($2::bigint[])
             and not exists (select from hog_catalog c where c.catalog_id = k.catalog_id)
           on conflict (catalog_id) do update set gone_seen_at = excluded.gone_seen_at
           where m.gone_seen_at is null"#,
        now,
        but
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        r#"with gone as materialized (
             select m.catalog_id from tailrace.clock_memory m
             where m.gone_seen_at < $1::timestamptz - pg_catalog.make_interval(secs => $2)
               and not (m.epoch > 0::bigint
                        and m.epoch_began >= $1::timestamptz
                                             - pg_catalog.make_interval(secs => $2))
               and m.catalog_id <> all ($3::bigint[])
               and not exists (select from hog_catalog c where c.catalog_id = m.catalog_id)
           ),
           heads as (
             delete from tailrace.noted_head
             where catalog_id = any (array (select catalog_id from gone))
           )
           delete from tailrace.drop_history h
           where h.catalog_id = any (array (select catalog_id from gone))
             and not exists (select from tailrace.drop_receipt r where r.drop_id = h.drop_id)"#,
        now,
        keep.as_secs_f64(),
        but
    )
    .execute(connection)
    .await?;
    Ok(())
}
