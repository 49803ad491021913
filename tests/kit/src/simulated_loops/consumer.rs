//! A simulated consumer of the server's changefeed, with its offset.

use crate::lake::{Changes, Result, Table};

/// A consumer of one table.
#[derive(Clone, Debug)]
pub struct Consumer {
    table: Table,
    consumer_id: String,
}

impl Consumer {
    /// A consumer that has read everything up to the head. If the catalog has one of this
    /// name for the table, its offset stays where it is.
    pub async fn register(table: &Table, consumer_id: &str) -> Result<Self> {
        sqlx::query(
            "INSERT INTO hog_consumer_offset (catalog_id, consumer_id, table_uuid, committed_snapshot)
             SELECT catalog_id, $2, $3, last_snapshot_id FROM hog_catalog WHERE catalog_id = $1
             ON CONFLICT DO NOTHING",
        )
        .bind(table.catalog.catalog_id)
        .bind(consumer_id)
        .bind(table.table_uuid)
        .execute(table.catalog.pool())
        .await?;
        Ok(Self { table: table.clone(), consumer_id: consumer_id.to_owned() })
    }

    /// The last snapshot that it has applied.
    pub async fn committed(&self) -> Result<i64> {
        Ok(sqlx::query_scalar(
            "SELECT committed_snapshot FROM hog_consumer_offset
              WHERE catalog_id = $1 AND consumer_id = $2 AND table_uuid = $3",
        )
        .bind(self.table.catalog.catalog_id)
        .bind(&self.consumer_id)
        .bind(self.table.table_uuid)
        .fetch_one(self.table.catalog.pool())
        .await?)
    }

    /// Reads the changes after its offset up to the head. Apply them, then
    /// [`advance`](Self::advance) to their `to_snapshot`.
    pub async fn read(&self) -> Result<Changes> {
        let head = self.table.catalog.head().await?;
        self.table.changes(self.committed().await?, head).await
    }

    /// Moves the offset forward. A snapshot at or before it changes nothing.
    pub async fn advance(&self, snapshot_id: i64) -> Result<()> {
        sqlx::query(
            "UPDATE hog_consumer_offset SET committed_snapshot = $4, updated_at = clock_timestamp()
              WHERE catalog_id = $1 AND consumer_id = $2 AND table_uuid = $3
                AND committed_snapshot < $4",
        )
        .bind(self.table.catalog.catalog_id)
        .bind(&self.consumer_id)
        .bind(self.table.table_uuid)
        .bind(snapshot_id)
        .execute(self.table.catalog.pool())
        .await?;
        Ok(())
    }
}
