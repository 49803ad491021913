//! Tests the count of rows that were written to the calendar.

use anyhow::Result;
use sqlx::AssertSqlSafe;

use super::parts::calendar::{Writes, mark, rows, writes_since};
use crate::support::TestDatabase;

#[tokio::test]
async fn every_write_into_the_calendar_is_counted_and_nothing_else() -> Result<()> {
    let database = TestDatabase::new().await?;
    let pool = &database.pool;
    let put = |days: std::ops::Range<i64>| {
        AssertSqlSafe(format!(
            "insert into tailrace.calendar (catalog_id, table_uuid, spec_id, is_day, value, range_end,
                                            last_end, span_seconds)
             select 1, '00000000-0000-0000-0000-000000000001', 1, false, d::text, now(), now(), 86400
             from generate_series({}, {} - 1) d",
            days.start, days.end
        ))
    };
    assert_eq!(rows(pool).await?, 0);
    sqlx::raw_sql(put(0..10)).execute(pool).await?;
    for (statement, written, gone) in [
        (AssertSqlSafe("select count(*) from tailrace.calendar".to_owned()), 0, 0),
        (put(10..13), 3, 0),
        (
            AssertSqlSafe("delete from tailrace.calendar where value in ('10', '11')".to_owned()),
            0,
            2,
        ),
        (
            AssertSqlSafe(
                "update tailrace.calendar set next_look = now() where value = '12'".to_owned(),
            ),
            1,
            1,
        ),
        (
            AssertSqlSafe(format!(
                "delete from tailrace.calendar where value = '0'; {}",
                put(20..21).0
            )),
            1,
            1,
        ),
    ] {
        let before = mark(pool).await?;
        sqlx::raw_sql(statement).execute(pool).await?;
        assert_eq!(writes_since(pool, before).await?, Writes { written, gone });
    }
    assert_eq!(rows(pool).await?, 11);
    sqlx::raw_sql("drop table tailrace.calendar").execute(pool).await?;
    let before = mark(pool).await?;
    assert_eq!(rows(pool).await?, 0);
    assert_eq!(writes_since(pool, before).await?, Writes { written: 0, gone: 0 });
    Ok(())
}
