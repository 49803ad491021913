//! The guard revision of a catalog: `tailrace.guard_state`.

use crate::catalog::session::Session;
use crate::catalog::tables::TableIdentity;
use crate::rules::instant::UtcInstant;

/// The revision of a catalog; 0 where it has no row.
pub async fn find(connection: &mut Session, catalog_id: i64) -> sqlx::Result<i64> {
    Ok(row(connection, catalog_id).await?.unwrap_or_default())
}

/// The revision of a catalog, which gets its row first where it has none: without a row no drop commits.
pub async fn ensure(connection: &mut Session, catalog_id: i64) -> sqlx::Result<i64> {
    if let Some(revision) = row(connection, catalog_id).await? {
        return Ok(revision);
    }
    // Waits for a writer that has locked the table: see `raise_all`.
    sqlx::query!(
        "insert into tailrace.guard_state (catalog_id) values ($1) on conflict do nothing",
        catalog_id
    )
    .execute(&mut *connection)
    .await?;
    find(connection, catalog_id).await
}

async fn row(connection: &mut Session, catalog_id: i64) -> sqlx::Result<Option<i64>> {
    sqlx::query_scalar!(
        "select revision from tailrace.guard_state where catalog_id = $1",
        catalog_id
    )
    .fetch_optional(connection)
    .await
}

/// What a change of guards does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Keeps more than before.
    Tightens,
    /// Lets go what was kept.
    Loosens,
}

/// Raises the revision of a catalog, in the transaction of what changes its guards. Waits for drops that have read
/// the row under the commit lock, as long as the session's `lock_timeout` allows.
pub async fn raise(transaction: &mut Session, catalog_id: i64, change: Change) -> sqlx::Result<()> {
    sqlx::query!(
        r#"insert into tailrace.guard_state as state (catalog_id, revision, loosened_at)
           values ($1, 1, case when $2 then pg_catalog.clock_timestamp() end)
           on conflict (catalog_id) do update
           set revision = state.revision + 1,
               loosened_at = coalesce(excluded.loosened_at, state.loosened_at)"#,
        catalog_id,
        change == Change::Loosens
    )
    .execute(transaction)
    .await?;
    Ok(())
}

/// Raises the revisions of all catalogs, in the transaction of what changes the guards of all.
///
/// A catalog whose first drop is being planned may have no row yet. The lock keeps its planner from adding the row
/// until this transaction has ended; the planner reads pauses after that, and sees what was changed. Drops only
/// read rows, and do not wait for the lock.
pub async fn raise_all(transaction: &mut Session, change: Change) -> sqlx::Result<()> {
    sqlx::raw_sql("lock table tailrace.guard_state in share row exclusive mode")
        .execute(&mut *transaction)
        .await?;
    sqlx::query!(
        r#"update tailrace.guard_state
           set revision = revision + 1,
               loosened_at = case when $1 then pg_catalog.clock_timestamp() else loosened_at end"#,
        change == Change::Loosens
    )
    .execute(transaction)
    .await?;
    Ok(())
}

/// Whether a pause or a hold that may have kept partitions of the table was over only after this time: then passes
/// may not have come to them yet.
pub async fn loosened_since(
    connection: &mut Session,
    table: &TableIdentity,
    since: UtcInstant,
) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (select from tailrace.guard_state
                          where catalog_id = $1 and loosened_at > $3)
               or exists (select from tailrace.hold
                          where catalog_id = $1 and table_uuid = $2 and until > $3
                            and until <= pg_catalog.clock_timestamp())
               or exists (select from tailrace.pause
                          where until > $3 and until <= pg_catalog.clock_timestamp()) as "is_so!""#,
        table.catalog_id,
        table.table_uuid,
        since.to_chrono()
    )
    .fetch_one(connection)
    .await
}
