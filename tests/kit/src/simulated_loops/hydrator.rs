//! Simulates the server's hydrator, which reads missing statistics from the footers of files and
//! holds row locks meanwhile.

use sqlx::{Postgres, Transaction};

use crate::lake::{Catalog, Result};

/// Pending files whose rows are locked, as by a hydrator that is at their footers. Dropped
/// it rolls back, and the locks are released when its connection has noticed; to know when, call
/// [`release`](Self::release).
pub struct HeldFiles {
    tx: Transaction<'static, Postgres>,
    catalog_id: i64,
    /// The files that are held.
    pub file_ids: Vec<i64>,
}

impl HeldFiles {
    /// Locks up to `limit` live pending files that nobody else has locked, the lowest ids
    /// first. Takes no commit lock.
    pub async fn hold(catalog: &Catalog, limit: i64) -> Result<Self> {
        let mut tx = catalog.pool().begin().await?;
        let file_ids = sqlx::query_scalar(
            "SELECT data_file_id FROM hog_data_file
              WHERE catalog_id = $1 AND stats_state = 'pending' AND end_snapshot IS NULL
              ORDER BY data_file_id LIMIT $2
                FOR UPDATE SKIP LOCKED",
        )
        .bind(catalog.catalog_id)
        .bind(limit)
        .fetch_all(&mut *tx)
        .await?;
        Ok(Self { tx, catalog_id: catalog.catalog_id, file_ids })
    }

    /// Gives up: the files are pending still.
    pub async fn release(self) -> Result<()> {
        Ok(self.tx.rollback().await?)
    }

    /// The statistics are there. No column statistics are written: there are none to read.
    pub async fn finish(mut self) -> Result<()> {
        sqlx::query(
            "UPDATE hog_data_file SET stats_state = 'provided'
              WHERE catalog_id = $1 AND data_file_id = ANY ($2)",
        )
        .bind(self.catalog_id)
        .bind(&self.file_ids)
        .execute(&mut *self.tx)
        .await?;
        Ok(self.tx.commit().await?)
    }
}
