//! Servers with packed MergeTree tables, which tailrace leaves alone.

use super::Lake;
use super::error::Result;
use super::table::Table;

impl Lake {
    /// Turns a fresh lake into that of a server with packed tables, in the variant that
    /// raises when a file of one is ended.
    pub async fn add_packed_tables(&self) -> Result<()> {
        sqlx::raw_sql(
            "ALTER TABLE hog_table ADD COLUMN file_format text NOT NULL DEFAULT 'parquet';
             ALTER TABLE hog_data_file DROP CONSTRAINT hog_data_file_file_format_check;
             CREATE FUNCTION hog_packed_file_guard() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
               RAISE EXCEPTION 'the file % is packed and may not be ended', old.data_file_id;
             END $$;
             CREATE TRIGGER hog_packed_file_guard BEFORE UPDATE OF end_snapshot ON hog_data_file
               FOR EACH ROW WHEN (old.file_format <> 'parquet' AND new.end_snapshot IS NOT NULL)
               EXECUTE FUNCTION hog_packed_file_guard()",
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}

impl Table {
    /// Makes this a packed table, and its files packed ones.
    pub async fn pack(&self) -> Result<()> {
        for statement in [
            "UPDATE hog_table SET file_format = 'mergetree' WHERE catalog_id = $1 AND table_id = $2",
            "UPDATE hog_data_file SET file_format = 'mergetree'
              WHERE catalog_id = $1 AND table_id = $2",
        ] {
            sqlx::query(statement)
                .bind(self.catalog.catalog_id)
                .bind(self.table_id)
                .execute(self.catalog.pool())
                .await?;
        }
        Ok(())
    }
}
