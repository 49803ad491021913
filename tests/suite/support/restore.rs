//! Restores the catalog, and not the schema `tailrace`, to an earlier time.

use anyhow::Result;
use sqlx::AssertSqlSafe;

use super::TestDatabase;

/// The rows of the server's tables at a moment.
pub struct Backup {
    /// The schema that they are kept in.
    schema: String,
    tables: Vec<String>,
}

impl TestDatabase {
    /// Keeps all rows of the server's tables as they are, under a name of its own.
    pub async fn back_up(&self, name: &str) -> Result<Backup> {
        let tables: Vec<String> = sqlx::query_scalar(
            "SELECT relname::text FROM pg_class
              WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
                AND relname LIKE 'hog\\_%' ORDER BY 1",
        )
        .fetch_all(self.lake.pool())
        .await?;
        let mut statements = format!("BEGIN; CREATE SCHEMA {name};");
        for table in &tables {
            statements.push_str(&format!("CREATE TABLE {name}.{table} AS TABLE {table};"));
        }
        self.sql(&(statements + "COMMIT")).await?;
        Ok(Backup { schema: name.to_owned(), tables })
    }

    /// Puts them back in one transaction, and the counters of ids with them.
    pub async fn restore(&self, backup: &Backup) -> Result<()> {
        let mut transaction = self.lake.pool().begin().await?;
        let mut statements = "SET LOCAL session_replication_role = replica;".to_owned();
        for table in &backup.tables {
            statements.push_str(&format!(
                "DELETE FROM {table};
                 INSERT INTO {table} OVERRIDING SYSTEM VALUE TABLE {}.{table};",
                backup.schema
            ));
        }
        statements.push_str(
            "SELECT setval(pg_get_serial_sequence('hog_file_removal', 'removal_id'),
                           coalesce(max(removal_id), 0) + 1, false) FROM hog_file_removal",
        );
        sqlx::raw_sql(AssertSqlSafe(statements)).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(())
    }
}
