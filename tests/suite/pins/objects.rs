//! Pins the SQL objects of the schema `tailrace`. `installation/objects.rs` tests that there are no
//! triggers, no rules, no references to the server's tables, and nothing outside of the schema.
//! `installation/roles.rs` tests which rights a role needs.

use anyhow::Result;
use sqlx::AssertSqlSafe;

use super::golden;
use crate::support::TestDatabase;

#[tokio::test]
async fn the_schema_is_made_of_these() -> Result<()> {
    let database = TestDatabase::new().await?;
    let lines: Vec<String> = sqlx::query_scalar(AssertSqlSafe(include_str!("objects.sql")))
        .fetch_all(database.lake.pool())
        .await?;
    golden::holds("objects.txt", &(lines.join("\n") + "\n"));
    Ok(())
}
