//! Empties some tables of a catalog for a moment, as in the middle of a restore.

use anyhow::Result;

use super::TestDatabase;

impl TestDatabase {
    /// Empties a table of the server's, and whatever refers to it, while something is done, and puts back
    /// what was there.
    pub async fn while_empty<T>(
        &self,
        table: &str,
        done: impl AsyncFnOnce() -> Result<T>,
    ) -> Result<T> {
        let tables = "SELECT string_agg(relname, ' ') FROM pg_class
                       WHERE relkind = 'r' AND relname LIKE 'hog\\_%'";
        let tables = self.text(tables).await?.unwrap_or_default();
        let each = |statement: &dyn Fn(&str) -> String| -> String {
            tables.split(' ').map(statement).collect()
        };
        // Nothing is checked and nothing follows from anything while rows are put in or taken away.
        let quietly = |statements: String| {
            format!("BEGIN; SET LOCAL session_replication_role = replica; {statements} COMMIT;")
        };
        let aside = each(&|name| format!("CREATE TABLE aside.{name} AS TABLE {name};"));
        self.sql(&format!("CREATE SCHEMA aside; {aside}")).await?;
        self.sql(&format!("TRUNCATE {table} CASCADE")).await?;
        let done = done().await?;
        let back = each(&|name| {
            format!(
                "DELETE FROM {name};
                 INSERT INTO {name} OVERRIDING SYSTEM VALUE SELECT * FROM aside.{name};"
            )
        });
        self.sql(&quietly(back)).await?;
        self.sql("DROP SCHEMA aside CASCADE").await?;
        Ok(done)
    }
}
