//! Measures what tailrace is compared with: the plain UPDATE of the same rows by id, and its WAL.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use sqlx::Executor;

use tailrace::catalog::session::Session;

const UPDATE: &str = "UPDATE hog_data_file SET end_snapshot = $1
     WHERE catalog_id = $2 AND data_file_id = ANY ($3)";

/// Has the server parse the statement, so that it is not timed.
pub async fn prepare(session: &mut Session) -> Result<()> {
    session.prepare(sqlx::SqlStr::from_static(UPDATE)).await?;
    Ok(())
}

/// Ends files by nothing but one UPDATE in a transaction of its own, and returns how long it took
/// from the start of the UPDATE to the end of COMMIT.
pub async fn end_files(session: &mut Session, catalog_id: i64, ids: &[i64]) -> Result<Duration> {
    let head: i64 =
        sqlx::query_scalar("select last_snapshot_id from hog_catalog where catalog_id = $1")
            .bind(catalog_id)
            .fetch_one(&mut *session)
            .await?;
    session.execute("BEGIN").await?;
    let clock = Instant::now();
    let ended = sqlx::query(UPDATE)
        .bind(head + 1)
        .bind(catalog_id)
        .bind(ids)
        .execute(&mut *session)
        .await?;
    session.execute("COMMIT").await?;
    let took = clock.elapsed();
    ensure!(ended.rows_affected() == ids.len() as u64, "the bare UPDATE met fewer rows than asked");
    Ok(took)
}

/// Writes what is dirty, so that what follows starts alike.
pub async fn checkpoint(session: &mut Session) -> Result<()> {
    session.execute("CHECKPOINT").await?;
    Ok(())
}

/// How many bytes of WAL the server has written so far.
pub async fn wal(session: &mut Session) -> Result<i64> {
    let query = "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint";
    Ok(sqlx::query_scalar(query).fetch_one(session).await?)
}
