//! Uses the commit lock as an instrument: who waits for it, and in which order it is granted.
//!
//! Postgres grants a lock in the order of the requests. The planning of a drop has ended when the
//! drop waits for the lock. So a writer that waits in front of a drop commits between the drop's
//! planning and its commit.

use anyhow::Result;
use tailrace::catalog::commit_lock::{commit_key, lease_key};
use tailrace_kit::lake::{Catalog, Commit};

use super::wait::until;

/// The commit lock of a catalog, held by a commit that writes nothing.
pub struct Gate(Commit);

impl Gate {
    /// Takes the lock.
    pub async fn shut(catalog: &Catalog) -> Result<Self> {
        Ok(Gate(Commit::begin(catalog).await?))
    }

    /// Lets go of it; the first in the queue has it when this returns.
    pub async fn open(self) -> Result<()> {
        Ok(self.0.tx.rollback().await?)
    }
}

/// Whether nobody has the commit lock.
pub async fn is_free(catalog: &Catalog) -> Result<bool> {
    Ok(sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1)")
        .bind(commit_key(catalog.catalog_id))
        .fetch_one(catalog.pool())
        .await?)
}

/// Returns once so many sessions wait for the commit lock.
pub async fn queue(catalog: &Catalog, length: i64) -> Result<()> {
    until(&format!("{length} wait for the commit lock"), async || {
        let waiting: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM pg_locks
              WHERE locktype = 'advisory' AND NOT granted AND objsubid = 1
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                AND (classid::bigint << 32) | objid::bigint = $1",
        )
        .bind(commit_key(catalog.catalog_id))
        .fetch_one(catalog.pool())
        .await?;
        Ok(waiting == length)
    })
    .await
}

/// Lets both queue for the commit lock, the first one first, and runs them to their ends.
pub async fn in_order<A, B, E, F>(
    catalog: &Catalog,
    first: impl Future<Output = Result<A, E>>,
    second: impl Future<Output = Result<B, F>>,
) -> Result<(A, B)>
where
    anyhow::Error: From<E> + From<F>,
{
    let gate = Gate::shut(catalog).await?;
    let (a, b, ()) = tokio::try_join!(
        async { Ok::<A, anyhow::Error>(first.await?) },
        async {
            queue(catalog, 1).await?;
            Ok(second.await?)
        },
        async {
            queue(catalog, 2).await?;
            gate.open().await
        }
    )?;
    Ok((a, b))
}

/// Lets one queue for the commit lock, does something meanwhile that does not take it, and runs
/// the first to its end.
pub async fn while_it_waits<A, B>(
    catalog: &Catalog,
    waiting: impl Future<Output = Result<A>>,
    meanwhile: impl Future<Output = Result<B>>,
) -> Result<(A, B)> {
    let gate = Gate::shut(catalog).await?;
    tokio::try_join!(waiting, async {
        queue(catalog, 1).await?;
        let done = meanwhile.await?;
        gate.open().await?;
        Ok(done)
    })
}

/// The session that holds the commit lock, if it waits for a row lock of somebody else.
pub async fn holder_at_a_row(catalog: &Catalog) -> Result<Option<i32>> {
    Ok(sqlx::query_scalar(
        "SELECT l.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid)
          WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
            AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND (l.classid::bigint << 32) | l.objid::bigint = $1
            AND a.wait_event_type = 'Lock' AND a.wait_event IN ('transactionid', 'tuple')",
    )
    .bind(commit_key(catalog.catalog_id))
    .fetch_optional(catalog.pool())
    .await?)
}

/// Returns once the holder of the commit lock waits for a row, and says which session that is.
pub async fn caught_at_a_row(catalog: &Catalog) -> Result<i32> {
    let mut caught = None;
    until("the holder of the commit lock waits for a row", async || {
        caught = holder_at_a_row(catalog).await?;
        Ok(caught.is_some())
    })
    .await?;
    caught.ok_or_else(|| anyhow::anyhow!("nobody"))
}

/// How many sessions hold the lease on the catalog.
pub async fn leases(catalog: &Catalog) -> Result<i64> {
    Ok(sqlx::query_scalar(
        "SELECT count(*) FROM pg_locks
          WHERE locktype = 'advisory' AND granted AND objsubid = 1
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND (classid::bigint << 32) | objid::bigint = $1",
    )
    .bind(lease_key(catalog.catalog_id))
    .fetch_one(catalog.pool())
    .await?)
}
