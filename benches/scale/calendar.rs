//! Counts the rows that were written to `tailrace.calendar` since a moment, by the transaction ids
//! of the rows.

use anyhow::Result;
use sqlx::PgPool;

/// The moment from which writes are counted.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    /// The transaction that recorded the moment: later transactions that write have higher ids.
    transaction: i64,
    rows: i64,
}

/// The rows written since that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writes {
    /// Rows that were inserted or changed, and exist.
    pub written: i64,
    /// Rows that existed, and were deleted or changed.
    pub gone: i64,
}

/// How many rows the calendar has; 0 before the table exists.
pub async fn rows(pool: &PgPool) -> Result<i64> {
    match is_there(pool).await? {
        true => {
            Ok(sqlx::query_scalar("select count(*) from tailrace.calendar").fetch_one(pool).await?)
        }
        false => Ok(0),
    }
}

/// Records the moment.
pub async fn mark(pool: &PgPool) -> Result<Mark> {
    let query = "select pg_current_xact_id()::text::bigint";
    let transaction = sqlx::query_scalar(query).fetch_one(pool).await?;
    Ok(Mark { transaction, rows: rows(pool).await? })
}

/// What was written since a moment. The benchmark's server never reaches 2^32 transactions.
pub async fn writes_since(pool: &PgPool, mark: Mark) -> Result<Writes> {
    if !is_there(pool).await? {
        return Ok(Writes { written: 0, gone: 0 });
    }
    let query = "select count(*), count(*) filter (where xmin::text::bigint > $1)
                 from tailrace.calendar";
    let (rows, written): (i64, i64) =
        sqlx::query_as(query).bind(mark.transaction).fetch_one(pool).await?;
    Ok(Writes { written, gone: mark.rows - (rows - written) })
}

async fn is_there(pool: &PgPool) -> Result<bool> {
    let query = "select to_regclass('tailrace.calendar') is not null";
    Ok(sqlx::query_scalar(query).fetch_one(pool).await?)
}
