//! What passes remember of tables that are gone. It only saves time. It is deleted in bounded pieces once the
//! table is gone for a while, because a table that is being restored is away for a moment.

use std::time::Duration;

use super::session::Session;
use crate::rules::instant::UtcInstant;

/// So many rows are purged by one statement, and so many statements are sent by one pass.
const BATCH: i64 = 5_000;
const BATCHES: usize = 20;

/// Notes which tables are gone and which are back, and purges the calendar, what waits and the state of those
/// that are gone for longer than `keep`; of all catalogs but these. `now` is the time at which it is seen.
pub async fn purge_gone_tables(
    connection: &mut Session,
    now: UtcInstant,
    keep: Duration,
    but: &[i64],
) -> sqlx::Result<()> {
    let (Some(at), Some(before)) = (now.to_chrono(), now.minus(keep).to_chrono()) else {
        return Ok(());
    };
    sqlx::query!(
        r#"update tailrace.table_state s
           set gone_seen_at = case when s.gone_seen_at is null then $1::timestamptz end
           where s.catalog_id <> all ($2::bigint[])
             and (s.gone_seen_at is null)
                 = not exists (select from hog_table t
                               where t.catalog_id = s.catalog_id and t.table_id = s.table_id
                                 and t.table_uuid = s.table_uuid and t.dropped_snapshot is null)"#,
        at,
        but
    )
    .execute(&mut *connection)
    .await?;
    let mut left = BATCHES;
    while left > 0 && purge_calendar(connection, before, but).await? > 0 {
        left -= 1;
    }
    if left > 0 {
        sqlx::query!(
            r#"delete from tailrace.table_state
               where gone_seen_at < $1 and catalog_id <> all ($2::bigint[])"#,
            before,
            but
        )
        .execute(&mut *connection)
        .await?;
    }
    purge_waiting(connection, now, keep, but).await
}

async fn purge_calendar(
    connection: &mut Session,
    before: chrono::DateTime<chrono::Utc>,
    but: &[i64],
) -> sqlx::Result<u64> {
    let purged = sqlx::query!(
        r#"delete from tailrace.calendar c using (
             select o.catalog_id, o.table_uuid, o.spec_id, o.is_day, o.value
             from tailrace.table_state s
             join tailrace.calendar o
               on o.catalog_id = s.catalog_id and o.table_uuid = s.table_uuid
             where s.gone_seen_at < $1 and s.catalog_id <> all ($2::bigint[])
             limit $3) as gone
           where c.catalog_id = gone.catalog_id and c.table_uuid = gone.table_uuid
             and c.spec_id = gone.spec_id and c.is_day = gone.is_day and c.value = gone.value"#,
        before,
        but,
        BATCH
    );
    Ok(purged.execute(connection).await?.rows_affected())
}

/// Purges, of all catalogs but these, what waited in tables that are gone, and that no pass has met for as
/// long as `gone_for`; whether or not anything else is remembered of them. What is left is the business of the
/// next pass.
pub async fn purge_waiting(
    connection: &mut Session,
    now: UtcInstant,
    gone_for: Duration,
    but: &[i64],
) -> sqlx::Result<()> {
    let Some(met_before) = now.minus(gone_for).to_chrono() else { return Ok(()) };
    for _ in 0..BATCHES {
        let purged = sqlx::query!(
            r#"delete from tailrace.waiting w using (
                 select o.catalog_id, o.table_uuid, o.tuple_hash from tailrace.waiting o
                 where o.last_look < $1 and o.catalog_id <> all ($2::bigint[])
                   and not exists (select from hog_table t
                                   where t.catalog_id = o.catalog_id
                                     and t.table_uuid = o.table_uuid
                                     and t.dropped_snapshot is null)
                 limit $3) as gone
               where w.catalog_id = gone.catalog_id and w.table_uuid = gone.table_uuid
                 and w.tuple_hash = gone.tuple_hash"#,
            met_before,
            but,
            BATCH
        )
        .execute(&mut *connection)
        .await?;
        if purged.rows_affected() < BATCH.unsigned_abs() {
            break;
        }
    }
    Ok(())
}
