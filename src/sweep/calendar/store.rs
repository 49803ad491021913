//! Where it is stored: `tailrace.calendar`. Rows are written only in the session that holds the catalog's
//! lease.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{Row, RowKey, stored};
use crate::catalog::session::Session;
use crate::catalog::tables::TableIdentity;
use crate::instant::UtcInstant;

/// So many rows are written at once.
const AT_ONCE: usize = 5_000;

/// A row as the statements answer it.
struct StoredRow {
    spec_id: i64,
    is_day: bool,
    value: String,
    range_end: DateTime<Utc>,
    last_end: DateTime<Utc>,
    span_seconds: i64,
    next_look: Option<DateTime<Utc>>,
}

impl From<StoredRow> for Row {
    fn from(row: StoredRow) -> Self {
        let StoredRow { spec_id, is_day, value, range_end, last_end, span_seconds, next_look } =
            row;
        Row {
            key: RowKey { spec_id, is_day, value },
            range_end: range_end.into(),
            last_end: last_end.into(),
            span: Duration::from_secs(span_seconds.unsigned_abs()),
            next_look: next_look.map(UtcInstant::from),
        }
    }
}

/// The rows whose last ends are at or before `through` and whose pause is over at `now`, the oldest range
/// first, at most `most`; without `now` those that wait, too.
///
/// By calendar_due and calendar_paused: rows that are not due, and those that wait, are not read.
pub async fn due(
    connection: &mut Session,
    table: &TableIdentity,
    through: UtcInstant,
    now: Option<UtcInstant>,
    most: i64,
) -> sqlx::Result<Vec<Row>> {
    let rows = sqlx::query_as!(
        StoredRow,
        r#"select spec_id as "spec_id!", is_day as "is_day!", value as "value!",
                  range_end as "range_end!", last_end as "last_end!",
                  span_seconds as "span_seconds!", next_look
           from (
             (select spec_id, is_day, value, range_end, last_end, span_seconds, next_look
              from tailrace.calendar
              where catalog_id = $1 and table_uuid = $2 and next_look is null and last_end <= $3
                and last_end >= '4714-11-24 00:00:00+00 BC'::timestamptz
              order by last_end limit $5)
             union all
             (select spec_id, is_day, value, range_end, last_end, span_seconds, next_look
              from tailrace.calendar
              where catalog_id = $1 and table_uuid = $2 and next_look is not null
                and next_look <= coalesce($4::timestamptz, 'infinity'::timestamptz)
                and next_look >= '4714-11-24 00:00:00+00 BC'::timestamptz
                and next_look <= '9999-12-31 00:00:00+00'::timestamptz
                and last_end <= $3 and last_end >= '4714-11-24 00:00:00+00 BC'::timestamptz
              order by next_look limit $5)) as rows
           -- A time that no pass can have written is none.
           where range_end between '4714-11-24 00:00:00+00 BC'::timestamptz
                               and '9999-12-31 00:00:00+00'::timestamptz
           order by range_end, spec_id, value limit $5"#,
        table.catalog_id,
        table.table_uuid,
        through.to_chrono(),
        now.and_then(UtcInstant::to_chrono),
        most
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(Row::from).collect())
}

/// The first rows whose last ends are after `through`, at most `most`.
pub async fn upcoming(
    connection: &mut Session,
    table: &TableIdentity,
    through: UtcInstant,
    most: i64,
) -> sqlx::Result<Vec<Row>> {
    let rows = sqlx::query_as!(
        StoredRow,
        r#"select spec_id, is_day, value, range_end, last_end, span_seconds, next_look
           from tailrace.calendar
           where catalog_id = $1 and table_uuid = $2 and next_look is null and last_end > $3
             and last_end <= '9999-12-30 00:00:00+00'::timestamptz
             and range_end between '4714-11-24 00:00:00+00 BC'::timestamptz
                               and '9999-12-31 00:00:00+00'::timestamptz
           order by last_end limit $4"#,
        table.catalog_id,
        table.table_uuid,
        through.to_chrono(),
        most
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(Row::from).collect())
}

/// All rows of a table.
pub async fn all(connection: &mut Session, table: &TableIdentity) -> sqlx::Result<Vec<Row>> {
    // A time that no pass can have written is none.
    let rows = sqlx::query_as!(
        StoredRow,
        r#"select spec_id, is_day, value, range_end, last_end, span_seconds, next_look
           from tailrace.calendar
           where catalog_id = $1 and table_uuid = $2
             and last_end between '4714-11-24 00:00:00+00 BC'::timestamptz
                              and '9999-12-31 00:00:00+00'::timestamptz
             and range_end between '4714-11-24 00:00:00+00 BC'::timestamptz
                              and '9999-12-31 00:00:00+00'::timestamptz
             and coalesce(next_look, last_end)
                 between '4714-11-24 00:00:00+00 BC'::timestamptz and '9999-12-31 00:00:00+00'::timestamptz"#,
        table.catalog_id,
        table.table_uuid
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(Row::from).collect())
}

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

/// Puts in rows for values that files were seen with. Where a row is there, it falls due no later than the
/// new one says, and nothing is written where it does not anyway. Returns how many are new or changed.
pub async fn put(
    connection: &mut Session,
    table: &TableIdentity,
    rows: &[Row],
) -> sqlx::Result<u64> {
    let mut written = 0;
    for rows in rows.chunks(AT_ONCE) {
        let Columns { specs, days, values, range_ends, last_ends, spans, .. } = Columns::of(rows);
        let put = sqlx::query!(
            r#"insert into tailrace.calendar as c (catalog_id, table_uuid, spec_id, is_day, value,
                   range_end, last_end, span_seconds)
               select $1, $2, n.spec_id, n.is_day, n.value, n.range_end, n.last_end, n.span
               from unnest($3::bigint[], $4::boolean[], $5::text[], $6::timestamptz[],
                           $7::timestamptz[], $8::bigint[])
                      as n (spec_id, is_day, value, range_end, last_end, span)
               on conflict (catalog_id, table_uuid, spec_id, is_day, value) do update
               set range_end = least(c.range_end, excluded.range_end),
                   last_end = least(c.last_end, excluded.last_end)
               where c.range_end > excluded.range_end or c.last_end > excluded.last_end"#,
            table.catalog_id,
            table.table_uuid,
            &specs,
            &days,
            &values as &[&str],
            &range_ends,
            &last_ends,
            &spans
        );
        written += put.execute(&mut *connection).await?.rows_affected();
    }
    Ok(written)
}

/// Has rows that pause looked at when these fall due, where that is sooner: a pause is of what a look left, and
/// these came since.
pub async fn hasten(
    connection: &mut Session,
    table: &TableIdentity,
    rows: &[Row],
    keep: Duration,
) -> sqlx::Result<()> {
    for rows in rows.chunks(AT_ONCE) {
        let Columns { specs, days, values, last_ends, .. } = Columns::of(rows);
        sqlx::query!(
            r#"update tailrace.calendar c
               set next_look = k.last_end + pg_catalog.make_interval(secs => $7)
               from unnest($3::bigint[], $4::boolean[], $5::text[], $6::timestamptz[])
                      as k (spec_id, is_day, value, last_end)
               where c.catalog_id = $1 and c.table_uuid = $2 and c.spec_id = k.spec_id
                 and c.is_day = k.is_day and c.value = k.value
                 and c.next_look > k.last_end + pg_catalog.make_interval(secs => $7)"#,
            table.catalog_id,
            table.table_uuid,
            &specs,
            &days,
            &values as &[&str],
            &last_ends,
            keep.as_secs_f64()
        )
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
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

/// Removes the rows that are due: a reading of all of the table's files takes over from them.
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

/// Whether a spec has more than so many rows for single values.
pub async fn has_more_values(
    connection: &mut Session,
    table: &TableIdentity,
    spec_id: i64,
    most: usize,
) -> sqlx::Result<bool> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows = sqlx::query_scalar!(
        r#"select pg_catalog.count(*) as "rows!" from (
             select from tailrace.calendar
             where catalog_id = $1 and table_uuid = $2 and spec_id = $3 and not is_day
             limit $4::bigint + 1) as counted"#,
        table.catalog_id,
        table.table_uuid,
        spec_id,
        most
    )
    .fetch_one(connection)
    .await?;
    Ok(rows > most)
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
