//! Writes rows as statements into a file, and loads them from it.

use anyhow::{Context, Result, ensure};
use sqlx::AssertSqlSafe;

use crate::support::TestDatabase;
use crate::sweep::waiting::copied::COPY;

/// The file: all rows of the server's tables, then ours.
pub const FILE: &str = "rows.sql";

/// Each table with rows of the lake: the server's, and ours but those that a migration writes.
const TABLES: &str = "
    SELECT c.oid::regclass::text FROM pg_class c
     WHERE c.relkind = 'r' AND (
             c.relnamespace = 'public'::regnamespace AND c.relname LIKE 'hog\\_%'
             OR c.relnamespace = 'tailrace'::regnamespace
                AND c.relname NOT IN ('installation', 'schema_migration'))
     ORDER BY c.relnamespace = 'tailrace'::regnamespace, 1";

/// The tables.
pub async fn tables(database: &TestDatabase) -> Result<Vec<String>> {
    Ok(sqlx::query_scalar(TABLES).fetch_all(database.lake.pool()).await?)
}

/// All rows as statements, each table's in the order of their text.
pub async fn statements(database: &TestDatabase) -> Result<String> {
    let mut statements = format!("-- written by tailrace {}\n", env!("CARGO_PKG_VERSION"));
    for table in tables(database).await? {
        let columns: Vec<String> = sqlx::query_scalar(
            "SELECT quote_ident(attname) FROM pg_attribute
              WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped
              ORDER BY attnum",
        )
        .bind(&table)
        .fetch_all(database.lake.pool())
        .await?;
        let values: Vec<_> =
            columns.iter().map(|name| format!("quote_nullable({name}::text)")).collect();
        let rows = format!(
            "SELECT row FROM (SELECT concat_ws(', ', {}) AS row FROM {table}) AS r
              ORDER BY row COLLATE \"C\"",
            values.join(", ")
        );
        let mut session = database.lake.pool().acquire().await?;
        sqlx::raw_sql("SET timezone = 'UTC'").execute(&mut *session).await?;
        let rows: Vec<String> =
            sqlx::query_scalar(AssertSqlSafe(rows)).fetch_all(&mut *session).await?;
        if rows.is_empty() {
            continue;
        }
        statements.push_str(&format!(
            "\nINSERT INTO {table} ({}) OVERRIDING SYSTEM VALUE VALUES\n  ({});\n",
            columns.join(", "),
            rows.join("),\n  (")
        ));
    }
    Ok(statements)
}

/// A fresh installation with the rows of such a file, and the counters of ids behind them.
pub async fn loaded(statements: &str) -> Result<TestDatabase> {
    let database = TestDatabase::new().await?;
    // Tables refer to each other: nothing is checked while they are filled.
    let sql = format!(
        "BEGIN; SET LOCAL session_replication_role = replica;
         DELETE FROM tailrace.window_setting;
         {statements}
         SELECT setval(pg_get_serial_sequence('hog_catalog', 'catalog_id'),
                       (SELECT max(catalog_id) FROM hog_catalog));
         SELECT setval(pg_get_serial_sequence('hog_file_removal', 'removal_id'),
                       (SELECT max(removal_id) FROM hog_file_removal));
         SELECT setval('tailrace.policy_revision', (SELECT max(revision) FROM tailrace.policy));
         COMMIT"
    );
    database.sql(&sql).await.context("the rows go in")?;
    // As if the program had been brought up to date over them.
    database.sql(COPY).await?;
    database.sql("UPDATE tailrace.sweep_state SET waiting = NULL").await?;
    let of_the_future = "SELECT max(accepted_now) > clock_timestamp() FROM tailrace.clock_memory";
    let is_of_the_future = database.text(of_the_future).await?.as_deref() == Some("true");
    ensure!(!is_of_the_future, "the clock is behind the rows, which are of a later day");
    Ok(database)
}
