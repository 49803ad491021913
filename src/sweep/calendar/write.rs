//! Rows of `tailrace.calendar` as they are written: only in the session that holds the catalog's lease.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{Row, RowKey, stored};
use crate::catalog::session::Session;
use crate::catalog::tables::TableIdentity;
use crate::rules::instant::UtcInstant;

/// So many rows are written at once.
const AT_ONCE: usize = 5_000;

/// Rows as arrays.
struct Columns<'a> {
    specs: Vec<i64>,
    days: Vec<bool>,
    values: Vec<&'a str>,
    range_ends: Vec<DateTime<Utc>>,
    last_ends: Vec<DateTime<Utc>>,
    spans: Vec<i64>,
    next_looks: Vec<Option<DateTime<Utc>>>,
}

impl<'a> Columns<'a> {
    /// Rows that no timestamptz can hold are left out.
    fn of(rows: &'a [Row]) -> Self {
        let mut columns = Columns {
            specs: Vec::with_capacity(rows.len()),
            days: Vec::with_capacity(rows.len()),
            values: Vec::with_capacity(rows.len()),
            range_ends: Vec::with_capacity(rows.len()),
            last_ends: Vec::with_capacity(rows.len()),
            spans: Vec::with_capacity(rows.len()),
            next_looks: Vec::with_capacity(rows.len()),
        };
        for row in rows {
            let Some((range_end, last_end)) = stored(row.range_end).zip(stored(row.last_end))
            else {
                continue;
            };
            columns.specs.push(row.key.spec_id);
            columns.days.push(row.key.is_day);
            columns.values.push(&row.key.value);
            columns.range_ends.push(range_end);
            columns.last_ends.push(last_end);
            columns.spans.push(i64::try_from(row.span.as_secs()).unwrap_or(i64::MAX));
            columns.next_looks.push(row.next_look.and_then(stored));
        }
        columns
    }
}

/// Puts rows in. Where one is there, what was known of it holds as well: it falls due when the first of the two
/// does, and a pause is over no later than that. Nothing is written where it does so anyway. Returns how many are
/// new or changed.
pub async fn put(
    connection: &mut Session,
    table: &TableIdentity,
    rows: &[Row],
    keep: Duration,
) -> sqlx::Result<u64> {
    let mut written = 0;
    for rows in rows.chunks(AT_ONCE) {
        let Columns { specs, days, values, range_ends, last_ends, spans, next_looks } =
            Columns::of(rows);
        let put = sqlx::query!(
            r#"insert into tailrace.calendar as c (catalog_id, table_uuid, spec_id, is_day, value,
                   range_end, last_end, span_seconds, next_look)
               -- Several values may have the row of one day.
               select $1, $2, n.spec_id, n.is_day, n.value, pg_catalog.min(n.range_end),
                      pg_catalog.min(n.last_end), pg_catalog.max(n.span),
                      pg_catalog.min(n.next_look)
               from unnest($3::bigint[], $4::boolean[], $5::text[], $6::timestamptz[],
                           $7::timestamptz[], $8::bigint[], $9::timestamptz[])
                      as n (spec_id, is_day, value, range_end, last_end, span, next_look)
               group by n.spec_id, n.is_day, n.value
               on conflict (catalog_id, table_uuid, spec_id, is_day, value) do update
               set range_end = least(c.range_end, excluded.range_end),
                   last_end = least(c.last_end, excluded.last_end),
                   next_look = case
                     when c.next_look is null and excluded.next_look is null then null
                     else least(
                       coalesce(c.next_look, c.last_end + pg_catalog.make_interval(secs => $10)),
                       coalesce(excluded.next_look,
                                excluded.last_end + pg_catalog.make_interval(secs => $10)))
                     end
               where c.range_end > excluded.range_end or c.last_end > excluded.last_end
                  or c.next_look > coalesce(excluded.next_look,
                                            excluded.last_end
                                            + pg_catalog.make_interval(secs => $10))"#,
            table.catalog_id,
            table.table_uuid,
            &specs,
            &days,
            &values as &[&str],
            &range_ends,
            &last_ends,
            &spans,
            &next_looks as &[Option<DateTime<Utc>>],
            keep.as_secs_f64()
        );
        written += put.execute(&mut *connection).await?.rows_affected();
    }
    Ok(written)
}

/// Ends the pauses that lie further ahead than any that a pass can have noted.
pub async fn end_far_pauses(
    connection: &mut Session,
    table: &TableIdentity,
    farthest: UtcInstant,
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"update tailrace.calendar set next_look = null
           where catalog_id = $1 and table_uuid = $2 and next_look > $3"#,
        table.catalog_id,
        table.table_uuid,
        farthest.to_chrono()
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Ends the pauses of rows: a file came late that has expired by their values.
pub async fn end_pauses(
    connection: &mut Session,
    table: &TableIdentity,
    keys: &[RowKey],
) -> sqlx::Result<()> {
    let (specs, days, values) = columns(keys);
    sqlx::query!(
        r#"update tailrace.calendar c set next_look = null
           from unnest($3::bigint[], $4::boolean[], $5::text[]) as k (spec_id, is_day, value)
           where c.catalog_id = $1 and c.table_uuid = $2 and c.spec_id = k.spec_id
             and c.is_day = k.is_day and c.value = k.value and c.next_look is not null"#,
        table.catalog_id,
        table.table_uuid,
        &specs,
        &days,
        &values as &[&str]
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes rows as a look has found them, whether or not they were there; nothing where they are so already.
pub async fn set(
    connection: &mut Session,
    table: &TableIdentity,
    rows: &[Row],
) -> sqlx::Result<()> {
    for rows in rows.chunks(AT_ONCE) {
        let Columns { specs, days, values, range_ends, last_ends, spans, next_looks } =
            Columns::of(rows);
        sqlx::query!(
            r#"insert into tailrace.calendar as c (catalog_id, table_uuid, spec_id, is_day, value,
                   range_end, last_end, span_seconds, next_look)
               select $1, $2, n.spec_id, n.is_day, n.value, n.range_end, n.last_end, n.span,
                      n.next_look
               from unnest($3::bigint[], $4::boolean[], $5::text[], $6::timestamptz[],
                           $7::timestamptz[], $8::bigint[], $9::timestamptz[])
                      as n (spec_id, is_day, value, range_end, last_end, span, next_look)
               on conflict (catalog_id, table_uuid, spec_id, is_day, value) do update
               set range_end = excluded.range_end, last_end = excluded.last_end,
                   next_look = excluded.next_look
               where c.range_end <> excluded.range_end or c.last_end <> excluded.last_end
                  or coalesce(c.next_look, '-infinity'::timestamptz)
                     <> coalesce(excluded.next_look, '-infinity'::timestamptz)"#,
            table.catalog_id,
            table.table_uuid,
            &specs,
            &days,
            &values as &[&str],
            &range_ends,
            &last_ends,
            &spans,
            &next_looks as &[Option<DateTime<Utc>>]
        )
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// Removes rows: a look that began after their files were read ended without a live one.
pub async fn remove(
    connection: &mut Session,
    table: &TableIdentity,
    keys: &[RowKey],
) -> sqlx::Result<()> {
    for keys in keys.chunks(AT_ONCE) {
        let (specs, days, values) = columns(keys);
        sqlx::query!(
            r#"delete from tailrace.calendar c
               using unnest($3::bigint[], $4::boolean[], $5::text[]) as k (spec_id, is_day, value)
               where c.catalog_id = $1 and c.table_uuid = $2 and c.spec_id = k.spec_id
                 and c.is_day = k.is_day and c.value = k.value"#,
            table.catalog_id,
            table.table_uuid,
            &specs,
            &days,
            &values as &[&str]
        )
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// Removes the rows that are due: a scan of all of the table's files takes over from them.
pub async fn remove_due(
    connection: &mut Session,
    table: &TableIdentity,
    through: UtcInstant,
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"delete from tailrace.calendar
           where catalog_id = $1 and table_uuid = $2 and last_end <= $3"#,
        table.catalog_id,
        table.table_uuid,
        through.to_chrono()
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes all rows of a table: they are of another column.
pub async fn clear(connection: &mut Session, table: &TableIdentity) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from tailrace.calendar where catalog_id = $1 and table_uuid = $2",
        table.catalog_id,
        table.table_uuid
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Makes rows for days of a spec's rows for single values, in one statement with noting that it has such.
pub async fn fold_into_days(
    connection: &mut Session,
    table: &TableIdentity,
    spec_id: i64,
) -> sqlx::Result<()> {
    // A range that ends with a day is of that day.
    sqlx::query!(
        r#"with noted as (
             update tailrace.table_state s
             set day_specs = pg_catalog.array_append(day_specs, $3)
             where s.catalog_id = $1 and s.table_uuid = $2 and not ($3 = any (s.day_specs))
           ),
           single as (
             delete from tailrace.calendar
             where catalog_id = $1 and table_uuid = $2 and spec_id = $3 and not is_day
             returning range_end, last_end, span_seconds
           )
           insert into tailrace.calendar as c (catalog_id, table_uuid, spec_id, is_day, value,
               range_end, last_end, span_seconds)
           select $1, $2, $3, true, d.day::text, pg_catalog.min(d.range_end),
                  pg_catalog.min(d.last_end), pg_catalog.max(d.span_seconds)
           from (select range_end, last_end, span_seconds,
                        pg_catalog.floor(extract(epoch from range_end - '1 microsecond'::interval)
                                         / 86400::numeric)::bigint as day
                 from single where pg_catalog.isfinite(range_end)) as d
           group by d.day
           on conflict (catalog_id, table_uuid, spec_id, is_day, value) do update
           set range_end = least(c.range_end, excluded.range_end),
               last_end = least(c.last_end, excluded.last_end), next_look = null"#,
        table.catalog_id,
        table.table_uuid,
        spec_id
    )
    .execute(connection)
    .await?;
    Ok(())
}

fn columns(keys: &[RowKey]) -> (Vec<i64>, Vec<bool>, Vec<&str>) {
    let mut columns = (Vec::new(), Vec::new(), Vec::new());
    for RowKey { spec_id, is_day, value } in keys {
        columns.0.push(*spec_id);
        columns.1.push(*is_day);
        columns.2.push(value.as_str());
    }
    columns
}
