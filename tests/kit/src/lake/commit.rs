//! The commit tail of a writer: one transaction with one snapshot, under the catalog's commit lock.

use sqlx::{AssertSqlSafe, Postgres, Transaction};

use super::catalog::Catalog;
use super::error::{LakeError, Result};

/// The lock class of commits. The whole key is `(class << 32) | catalog_id`.
pub const COMMIT_LOCK_CLASS: i64 = 4_740_871;

/// Takes a lock of a class for a catalog, until the transaction ends. As a statement of its
/// own it reads nothing, so what the next statement reads is as new as the lock.
pub(crate) const TAKE_LOCK: &str =
    "SELECT pg_advisory_xact_lock(($1::bigint << 32) | ($2::bigint & 4294967295))";

/// What a snapshot says about an object.
pub(crate) mod kind {
    pub const NAMESPACE_CREATED: &str = "namespace_created";
    pub const NAMESPACE_DROPPED: &str = "namespace_dropped";
    pub const TABLE_CREATED: &str = "table_created";
    pub const TABLE_DROPPED: &str = "table_dropped";
    pub const TABLE_ALTERED: &str = "table_altered";
    pub const INSERTED: &str = "table_inserted_into";
    pub const DELETED: &str = "table_deleted_from";
    pub const COMPACTED: &str = "table_compacted";
}

/// A commit that holds the commit lock. Dropped without [`finish`](Self::finish) it rolls
/// back, and the lock is free when its connection has noticed.
pub struct Commit {
    /// The transaction, READ COMMITTED, for the statements of the commit's body.
    pub tx: Transaction<'static, Postgres>,
    catalog_id: i64,
}

impl Commit {
    /// Waits for the commit lock, at most as long as
    /// [`Lake::with_commit_wait`](super::Lake::with_commit_wait) says.
    pub async fn begin(catalog: &Catalog) -> Result<Self> {
        let pool = catalog.pool();
        let mut tx = pool.begin_with("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
        // Zero would be for ever.
        let wait = catalog.lake.commit_wait.as_millis().max(1);
        sqlx::query(AssertSqlSafe(format!("SET LOCAL lock_timeout = {wait}")))
            .execute(&mut *tx)
            .await?;
        sqlx::query(TAKE_LOCK)
            .bind(COMMIT_LOCK_CLASS)
            .bind(catalog.catalog_id)
            .execute(&mut *tx)
            .await
            .map_err(lock_refusal)?;
        Ok(Self { tx, catalog_id: catalog.catalog_id })
    }

    /// The head and the floor as of now; nobody moves them while we hold the lock.
    pub async fn head_and_floor(&mut self) -> Result<(i64, i64)> {
        Ok(sqlx::query_as(
            "SELECT last_snapshot_id, earliest_snapshot_id FROM hog_catalog WHERE catalog_id = $1",
        )
        .bind(self.catalog_id)
        .fetch_one(&mut *self.tx)
        .await?)
    }

    /// Refuses a `read_snapshot` that is ahead of the head or below the floor.
    pub async fn check_readable(&mut self, read_snapshot: i64) -> Result<()> {
        let (head, floor) = self.head_and_floor().await?;
        if read_snapshot > head {
            return Err(LakeError::Validation(format!(
                "the snapshot {read_snapshot} is ahead of the head {head}"
            )));
        }
        if read_snapshot < floor {
            return Err(LakeError::Expired { snapshot_id: read_snapshot, floor });
        }
        Ok(())
    }

    /// Whether a snapshot after `since` carries one of these kinds for the object.
    pub async fn changed_since(&mut self, object: i64, kinds: &[&str], since: i64) -> Result<bool> {
        Ok(sqlx::query_scalar(
            "SELECT EXISTS (SELECT FROM hog_snapshot_change
                             WHERE catalog_id = $1 AND object_id = $2
                               AND kind = ANY ($3) AND snapshot_id > $4)",
        )
        .bind(self.catalog_id)
        .bind(object)
        .bind(kinds)
        .bind(since)
        .fetch_one(&mut *self.tx)
        .await?)
    }

    /// Refuses a writer whose table was altered or dropped after what it had read.
    pub async fn check_no_ddl(&mut self, table_id: i64, read_snapshot: i64) -> Result<()> {
        let ddl = [kind::TABLE_DROPPED, kind::TABLE_ALTERED];
        if self.changed_since(table_id, &ddl, read_snapshot).await? {
            return Err(LakeError::DdlSinceReadSnapshot { read_snapshot });
        }
        Ok(())
    }

    /// Refuses a table that is not live: its version ended, it or its namespace dropped.
    pub async fn check_table_live(&mut self, table_id: i64) -> Result<()> {
        let live: bool = sqlx::query_scalar(
            "SELECT EXISTS (
               SELECT FROM hog_table t
                 JOIN hog_table_version v USING (catalog_id, table_id)
                 JOIN hog_namespace n USING (catalog_id, namespace_id)
                WHERE t.catalog_id = $1 AND t.table_id = $2 AND t.dropped_snapshot IS NULL
                  AND v.end_snapshot IS NULL AND NOT n.dropped)",
        )
        .bind(self.catalog_id)
        .bind(table_id)
        .fetch_one(&mut *self.tx)
        .await?;
        if live { Ok(()) } else { Err(LakeError::TableDropped { table_id }) }
    }

    /// Takes `count` file ids and returns the first.
    pub async fn take_file_ids(&mut self, count: usize) -> Result<i64> {
        Ok(sqlx::query_scalar(
            "UPDATE hog_catalog SET next_file_id = next_file_id + $2
              WHERE catalog_id = $1 RETURNING next_file_id - $2",
        )
        .bind(self.catalog_id)
        .bind(i64::try_from(count).unwrap_or(i64::MAX))
        .fetch_one(&mut *self.tx)
        .await?)
    }

    /// Makes the snapshot that does not change what tables look like.
    pub async fn snapshot(&mut self, message: &str) -> Result<i64> {
        self.make_snapshot(0, message).await
    }

    /// Makes the snapshot of a DDL commit, which moves the schema version.
    pub async fn ddl_snapshot(&mut self, message: &str) -> Result<i64> {
        self.make_snapshot(1, message).await
    }

    async fn make_snapshot(&mut self, schema_step: i64, message: &str) -> Result<i64> {
        let (snapshot_id, schema_version): (i64, i64) = sqlx::query_as(
            "UPDATE hog_catalog
                SET last_snapshot_id = last_snapshot_id + 1, schema_version = schema_version + $2
              WHERE catalog_id = $1 RETURNING last_snapshot_id, schema_version",
        )
        .bind(self.catalog_id)
        .bind(schema_step)
        .fetch_one(&mut *self.tx)
        .await?;
        sqlx::query(
            "INSERT INTO hog_snapshot
                    (catalog_id, snapshot_id, snapshot_time, schema_version, author, commit_message)
             VALUES ($1, $2, clock_timestamp(), $3, 'demo', $4)",
        )
        .bind(self.catalog_id)
        .bind(snapshot_id)
        .bind(schema_version)
        .bind(message)
        .execute(&mut *self.tx)
        .await?;
        Ok(snapshot_id)
    }

    /// Says in the snapshot what happened to an object.
    pub async fn change(&mut self, snapshot_id: i64, kind: &str, object: i64) -> Result<()> {
        sqlx::query(
            "INSERT INTO hog_snapshot_change (catalog_id, snapshot_id, kind, object_id)
             VALUES ($1, $2, $3, $4)",
        )
        .bind(self.catalog_id)
        .bind(snapshot_id)
        .bind(kind)
        .bind(object)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    /// Commits. An error leaves it open whether it was committed.
    pub async fn finish(self) -> Result<()> {
        Ok(self.tx.commit().await?)
    }
}

/// SQLSTATE 55P03 while waiting for the commit lock is the server's 503.
fn lock_refusal(refusal: sqlx::Error) -> LakeError {
    match refusal.as_database_error().and_then(|error| error.code()) {
        Some(code) if code == "55P03" => LakeError::CommitQueueTimeout,
        _ => refusal.into(),
    }
}
