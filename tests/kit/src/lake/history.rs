//! Changes the times in a catalog, for tests that cannot wait.

use chrono::{DateTime, Utc};
use sqlx::AssertSqlSafe;

use super::catalog::Catalog;
use super::error::Result;
use super::table::Table;

impl Catalog {
    /// Gives a snapshot another time, as if it had been made then: what is remembered of it in the schema
    /// `tailrace` is given that time, too. Keep times in the order of ids: they are so in a lake.
    pub async fn backdate_snapshot(&self, snapshot_id: i64, time: DateTime<Utc>) -> Result<()> {
        self.set_times(snapshot_id, snapshot_id, time).await
    }

    /// Gives all snapshots up to this one the same time.
    pub async fn backdate_through(&self, snapshot_id: i64, time: DateTime<Utc>) -> Result<()> {
        self.set_times(i64::MIN, snapshot_id, time).await
    }

    async fn set_times(&self, from: i64, through: i64, time: DateTime<Utc>) -> Result<()> {
        sqlx::query(
            "UPDATE hog_snapshot SET snapshot_time = $4
              WHERE catalog_id = $1 AND snapshot_id BETWEEN $2 AND $3",
        )
        .bind(self.catalog_id)
        .bind(from)
        .bind(through)
        .bind(time)
        .execute(self.pool())
        .await?;
        for (table, column) in [("noted_head", "snapshot_time"), ("drop_history", "dropped_at")] {
            let is_there: bool = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL")
                .bind(format!("tailrace.{table}"))
                .fetch_one(self.pool())
                .await?;
            if !is_there {
                continue;
            }
            let statement = format!(
                "UPDATE tailrace.{table} SET {column} = $4
                  WHERE catalog_id = $1 AND snapshot_id BETWEEN $2 AND $3"
            );
            sqlx::query(AssertSqlSafe(statement))
                .bind(self.catalog_id)
                .bind(from)
                .bind(through)
                .bind(time)
                .execute(self.pool())
                .await?;
        }
        Ok(())
    }
}

impl Table {
    /// Deletes the ended specs and columns of the table, as expiry does when the floor
    /// passes them, and leaves the floor where it is. Returns how many specs and columns.
    pub async fn delete_vanished_specs(&self) -> Result<(u64, u64)> {
        let mut gone = [0, 0];
        let statements = [
            "DELETE FROM hog_partition_spec
              WHERE catalog_id = $1 AND table_id = $2 AND end_snapshot IS NOT NULL",
            "DELETE FROM hog_column
              WHERE catalog_id = $1 AND table_id = $2 AND end_snapshot IS NOT NULL",
        ];
        for (count, statement) in gone.iter_mut().zip(statements) {
            *count = sqlx::query(statement)
                .bind(self.catalog.catalog_id)
                .bind(self.table_id)
                .execute(self.catalog.pool())
                .await?
                .rows_affected();
        }
        Ok((gone[0], gone[1]))
    }
}
