//! The bulk statements that fixtures are built by.

use anyhow::Result;
use sqlx::{AssertSqlSafe, PgPool};

/// The name of the column of time by which tables are partitioned.
pub const DAY_COLUMN: &str = "at";

/// Files to write to a catalog.
pub struct Files {
    /// A query for the ids of tables, with when files of a tuple arrive (in days), its values, and the
    /// number of its files.
    pub tuples: String,
    /// How many files one commit adds.
    pub of_a_snapshot: i64,
    /// The number of days up to now over which the commits are spread.
    pub days: i64,
    /// The number of days whose files are mixed with one another.
    pub disorder: i64,
}

/// Writes the files, and one more commit with the vectors of some of them.
pub async fn fill(pool: &PgPool, catalog_id: i64, files: &Files) -> Result<()> {
    let statements = include_str!("fixture.sql")
        .replace(":catalog_id", &catalog_id.to_string())
        .replace(":column", DAY_COLUMN)
        .replace(":files_of_a_snapshot", &files.of_a_snapshot.to_string())
        .replace(":span", &format!("{} days", files.days))
        .replace(":disorder", &files.disorder.to_string())
        .replace(":tuples", &files.tuples);
    run(pool, statements).await
}

/// Copies an empty table until there are `times` tables.
pub async fn more_tables(pool: &PgPool, catalog_id: i64, like: i64, times: i64) -> Result<()> {
    let statements = include_str!("fixture_tables.sql")
        .replace(":catalog_id", &catalog_id.to_string())
        .replace(":table_id", &like.to_string())
        .replace(":times", &times.to_string());
    run(pool, statements).await
}

/// Copies a catalog with its content until there are `times` catalogs.
pub async fn more_catalogs(pool: &PgPool, like: i64, times: i64) -> Result<()> {
    let statements = include_str!("fixture_catalogs.sql")
        .replace(":catalog_id", &like.to_string())
        .replace(":times", &times.to_string());
    run(pool, statements).await
}

async fn run(pool: &PgPool, statements: String) -> Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(pool).await?;
    Ok(())
}
