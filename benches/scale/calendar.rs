//! What is written into our calendar, by the transactions that its rows are of.

use anyhow::Result;
use sqlx::PgPool;

/// A moment from which on writes are counted.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    /// The transaction that noted it: all that write later have higher ids.
    transaction: i64,
    rows: i64,
}

/// What was written since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writes {
    /// Rows that were put in or changed, and are there.
    pub written: i64,
    /// Rows that were there, and are gone or changed.
    pub gone: i64,
}

/// How many rows the calendar has; none before there is one.
pub async fn rows(pool: &PgPool) -> Result<i64> {
    match is_there(pool).await? {
        true => {
            Ok(sqlx::query_scalar("select count(*) from tailrace.calendar").fetch_one(pool).await?)
        }
        false => Ok(0),
    }
}

/// The moment.
pub async fn mark(pool: &PgPool) -> Result<Mark> {
    let query = "select pg_current_xact_id()::text::bigint";
    let transaction = sqlx::query_scalar(query).fetch_one(pool).await?;
    Ok(Mark { transaction, rows: rows(pool).await? })
}

/// What was written since a moment. A server that has counted through 2^32 transactions is none of ours.
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
