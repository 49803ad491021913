//! When the calendar's rows fall due, asked of all tables at once.

use std::time::Duration;

use uuid::Uuid;

use super::session::Session;
use crate::rules::instant::UtcInstant;

/// A table of which something falls due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    pub catalog_id: i64,
    pub table_uuid: Uuid,
    /// From when on it may wake somebody; the beginning of the asked time where that was before.
    pub at: UtcInstant,
    /// Whether something was due at the beginning of the asked time already.
    pub was_due: bool,
}

/// Each live table that is not paused, whose policy in force enforces and of which a row falls due up to `until`, ranges of
/// at least `least_span` alone; what fell due before `since` counts as of then.
///
/// A table's first due row is not told where the table wakes nobody up to `until`, nor is a row whose pause
/// ends before it is due: those go with the passes.
pub async fn first_due(
    connection: &mut Session,
    since: UtcInstant,
    until: UtcInstant,
    least_span: Duration,
) -> sqlx::Result<Vec<Due>> {
    // The calendar may have ten thousand rows of a table, and this is asked after every pass: of each table
    // the two partial indexes are entered once, and give the first row in their order. What is compared with
    // their last column has to be known before, so the keep is taken from the bound, not put on the rows;
    // and no row that the index leads past is due (of a span that does not count, those alone that no pass
    // has looked at yet), so that the search ends at once. A condition that the index does not have, in
    // place of `next_look is (not) null`, would read all rows of the table.
    let least_seconds = least_span.as_secs() + u64::from(least_span.subsec_nanos() > 0);
    let rows = sqlx::query!(
        r#"select p.catalog_id, p.table_uuid,
                  greatest(d.due_at, s.quiet_until, $1::timestamptz) as "at!",
                  d.due_at <= $1::timestamptz as "was_due!"
           from tailrace.policy p
           join hog_table t
             on t.catalog_id = p.catalog_id and t.table_id = p.table_id
            and t.table_uuid = p.table_uuid and t.dropped_snapshot is null
           join tailrace.table_state s
             on s.catalog_id = p.catalog_id and s.table_uuid = p.table_uuid
            and s.source_field_id = p.source_field_id
           cross join lateral (
             select pg_catalog.make_interval(secs => p.keep_seconds::double precision)
               as length) as keep
           cross join lateral (
             select due_at from (
               (select greatest(c.last_end, $1::timestamptz - keep.length) + keep.length as due_at
                from tailrace.calendar c
                where c.catalog_id = p.catalog_id and c.table_uuid = p.table_uuid
                  and c.next_look is null and c.last_end <= $2::timestamptz - keep.length
                  and c.span_seconds >= $3
                order by c.last_end limit 1)
               union all
               (select c.next_look as due_at
                from tailrace.calendar c
                where c.catalog_id = p.catalog_id and c.table_uuid = p.table_uuid
                  and c.next_look is not null and c.next_look <= $2::timestamptz
                  and c.last_end <= greatest(c.next_look, $1::timestamptz) - keep.length
                  and c.span_seconds >= $3
                order by c.next_look limit 1)) as firsts
             order by due_at limit 1) as d
           where p.mode = 'enforce' and p.problem is null
             and (p.source = 'stored' or not exists (
                    select from tailrace.policy o
                    where o.catalog_id = p.catalog_id and o.table_id = p.table_id
                      and o.table_uuid = p.table_uuid and o.source = 'stored'))
             and (s.quiet_until is null or s.quiet_until <= $2::timestamptz)
             -- Asked once where nothing is paused.
             and (not exists (select from tailrace.pause)
                  or not tailrace.is_paused(p.catalog_id, p.table_id, p.table_uuid))"#,
        since.to_chrono(),
        until.to_chrono(),
        i64::try_from(least_seconds).unwrap_or(i64::MAX)
    )
    .fetch_all(connection)
    .await?;
    let due = rows.into_iter().map(|row| Due {
        catalog_id: row.catalog_id,
        table_uuid: row.table_uuid,
        at: row.at.into(),
        was_due: row.was_due,
    });
    Ok(due.collect())
}
