//! Runs DDL beside a test: a table is locked, or a session waits for a lock on it.

use anyhow::Result;
use sqlx::{AssertSqlSafe, Postgres, Transaction};
use tokio::task::JoinHandle;

use super::TestDatabase;
use super::wait::until;

/// A transaction that keeps a table from others, until [`end`](Self::end).
pub struct Ddl {
    /// Reads the table, or has locked it.
    first: Transaction<'static, Postgres>,
    /// Waits for the reader, and lets nobody past.
    queued: Option<JoinHandle<sqlx::Result<()>>>,
}

impl Ddl {
    /// Has done this to a table, and does not commit.
    pub async fn done(database: &TestDatabase, statement: &str) -> Result<Self> {
        let mut first = database.pool.begin().await?;
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut *first).await?;
        Ok(Ddl { first, queued: None })
    }

    /// Waits for somebody who reads the table for long.
    pub async fn queued(database: &TestDatabase, table: &str) -> Result<Self> {
        let reading = Self::done(database, &format!("SELECT FROM {table} LIMIT 1")).await?;
        let (pool, lock) = (database.pool.clone(), format!("LOCK TABLE {table}"));
        let queued = tokio::spawn(async move {
            let mut session = pool.begin().await?;
            sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut *session).await?;
            session.rollback().await
        });
        until("DDL waits for a reader", async || {
            let waiting: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM pg_locks
                  WHERE relation = $1::regclass AND mode = 'AccessExclusiveLock' AND NOT granted
                    AND database = (SELECT oid FROM pg_database
                                     WHERE datname = current_database())",
            )
            .bind(table)
            .fetch_one(&database.pool)
            .await?;
            Ok(waiting == 1)
        })
        .await?;
        Ok(Ddl { queued: Some(queued), ..reading })
    }

    /// Ends it; nothing of it stays.
    pub async fn end(self) -> Result<()> {
        self.first.rollback().await?;
        match self.queued {
            Some(queued) => Ok(queued.await??),
            None => Ok(()),
        }
    }
}
