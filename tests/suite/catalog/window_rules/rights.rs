//! Tests that the documented grants are enough for a planner or sampler.

use anyhow::{Context, Result};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tailrace_kit::lake::Field;

use crate::support::TestDatabase;

/// As docs/integration.md has them.
const RIGHTS: [(&str, &str); 12] = [
    ("USAGE", "SCHEMA public"),
    ("SELECT", "hog_catalog"),
    ("SELECT", "hog_namespace"),
    ("SELECT", "hog_table"),
    ("SELECT", "hog_table_version"),
    ("SELECT", "hog_column"),
    ("SELECT", "hog_partition_spec"),
    ("SELECT", "hog_partition_field"),
    ("USAGE", "SCHEMA tailrace"),
    ("SELECT", "tailrace.drop_window"),
    (
        "SELECT",
        "tailrace.policy, tailrace.spec_copy, tailrace.source_column_type, tailrace.window_setting",
    ),
    ("SELECT", "tailrace.window_rule"),
];

#[tokio::test]
async fn the_documented_grants_are_enough() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::identity("at")]).await?;
    database.govern(&table, "at", "7d").await?;
    let own = database.text("SELECT current_database()").await?.context("a name")?;
    let role = format!("planner_{own}");
    database
        .sql(&format!(
            "DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN;
             REVOKE ALL ON SCHEMA public FROM PUBLIC"
        ))
        .await?;
    for (right, object) in RIGHTS {
        database.sql(&format!("GRANT {right} ON {object} TO {role}")).await?;
    }
    let options = database.pool.connect_options().as_ref().clone().username(&role);
    // Its search_path is its own affair.
    let mut planner = options.options([("search_path", "pg_catalog")]).connect().await?;
    let text = "2020-01-01T00:00:00+00:00";
    let asked = format!(
        "SELECT tailrace.in_drop_window({}, {}, 1, array['{text}']),
                (SELECT count(*) FROM tailrace.drop_window)",
        catalog.catalog_id, table.table_id
    );
    let answer: (bool, i64) =
        sqlx::query_as(AssertSqlSafe(asked.clone())).fetch_one(&mut planner).await?;
    assert_eq!(answer, (true, 1));
    planner.close().await?;
    database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await
}
