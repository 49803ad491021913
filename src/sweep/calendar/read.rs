//! Rows of `tailrace.calendar` as they are read.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{Row, RowKey};
use crate::catalog::session::Session;
use crate::catalog::tables::TableIdentity;
use crate::rules::instant::UtcInstant;

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
