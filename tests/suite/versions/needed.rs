//! Tests of which columns of the server's tables are required: exactly those that passes and drops
//! need.

use anyhow::Result;
use serde_json::Value;
use tailrace::catalog::connect::{Access, close};
use tailrace::catalog::server::{Misfit, server_tables};
use tailrace_kit::lake::{Field, NewFile};

use super::filled;
use crate::support::TestDatabase;
use crate::support::program::days_ago;

/// Every column of a server's table, as `table.column`.
const COLUMNS: &str = "SELECT c.relname AS t, a.attname AS c FROM pg_attribute a
    JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname LIKE 'hog\\_%'
      AND a.attnum > 0 AND NOT a.attisdropped";

async fn columns(database: &TestDatabase) -> Result<Vec<(String, String)>> {
    let mut columns = Vec::new();
    for row in database.rows(COLUMNS).await? {
        let row: Value = serde_json::from_str(&row)?;
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        columns.push((text("t"), text("c")));
    }
    Ok(columns)
}

/// Why this program cannot work with the lake, without any check of ours.
async fn misfit(database: &TestDatabase) -> Result<Option<Misfit>> {
    let mut session = database.tailrace().unchecked(Access::ReadOnly).await?;
    let tables = server_tables(&mut session).await?;
    close(session).await;
    Ok(tables.fits().err())
}

/// Known is exactly what the newest server has: a further column of any table is reported.
#[tokio::test]
async fn every_column_of_the_newest_server_is_known_and_no_other() -> Result<()> {
    let database = TestDatabase::new().await?;
    let mut session = database.tailrace().unchecked(Access::ReadOnly).await?;
    assert_eq!(server_tables(&mut session).await?.unknown(), Vec::<String>::new());
    let mut tables: Vec<String> = columns(&database).await?.into_iter().map(|(t, _)| t).collect();
    tables.sort_unstable();
    tables.dedup();
    for table in &tables {
        database.sql(&format!("ALTER TABLE {table} ADD COLUMN zz_new text")).await?;
    }
    let mut unknown = server_tables(&mut session).await?.unknown();
    close(session).await;
    unknown.sort_unstable();
    let expected: Vec<String> = tables.iter().map(|table| format!("{table}.zz_new")).collect();
    assert_eq!(unknown, expected);
    // Servers with packed tables are known too.
    let database = TestDatabase::new().await?;
    database.lake.add_packed_tables().await?;
    let mut session = database.tailrace().unchecked(Access::ReadOnly).await?;
    assert_eq!(server_tables(&mut session).await?.unknown(), Vec::<String>::new());
    close(session).await;
    Ok(())
}

/// With all columns gone that are not asked for, passes and drops still work.
#[tokio::test]
async fn what_is_not_needed_may_be_missing() -> Result<()> {
    let database = TestDatabase::new().await?;
    let (_, table) = filled(&database, true).await?;
    let other = database.table(&table.catalog, "other", &[Field::day("at")]).await?;
    other.append(vec![NewFile::of(["18000"]), NewFile::of([days_ago(1)])]).await?;
    let mut kept = 0;
    for (table, column) in columns(&database).await? {
        let away = format!("ALTER TABLE {table} RENAME COLUMN {column} TO zz_away");
        database.sql(&away).await?;
        match misfit(&database).await? {
            Some(_) => {
                database.sql(&format!("ALTER TABLE {table} RENAME zz_away TO {column}")).await?;
                kept += 1;
            }
            // Where only claims, the debt, receipts or the evidence want it, it comes back: their
            // tables may be missing, but not half of them.
            None if optional(&table) => {
                database.sql(&format!("ALTER TABLE {table} RENAME zz_away TO {column}")).await?;
            }
            None => {
                database.sql(&format!("ALTER TABLE {table} DROP zz_away CASCADE")).await?;
            }
        }
    }
    assert_eq!(kept, 79);
    assert_eq!(misfit(&database).await?, None);
    let plan = database.done(&["plan", "--output", "json"]).await?;
    assert_eq!(plan["tables"][0]["expired"].as_array().map(Vec::len), Some(2), "{plan}");
    let drop =
        ["drop", "lake", "events.other", "--partition", "[\"18000\"]", "--yes", "--output", "json"];
    assert_eq!(database.done(&drop).await?["files_ended"], 1);
    for _ in 0..2 {
        let ran = database.ran(&["sweep", "--output", "json"]).await?;
        assert_eq!(ran.code, 0, "{ran:?}");
        let warned = ran.err.lines().filter(|line| line.contains("\"WARN\"")).count();
        assert_eq!(warned, 0, "{ran:?}");
    }
    assert_eq!(database.ran(&["policy", "list"]).await?.code, 0);
    assert_eq!(database.ran(&["spec", "list", "lake", "events.raw"]).await?.code, 0);
    let live = "SELECT count(*) FROM hog_data_file WHERE end_snapshot IS NULL";
    assert_eq!(database.text(live).await?.as_deref(), Some("1"));
    Ok(())
}

fn optional(table: &str) -> bool {
    ["hog_table_stats", "hog_file_column_stats", "hog_consumer_offset", "hog_commit_receipt"]
        .contains(&table)
        || table == "hog_compaction_claim"
        || table.starts_with("hog_maintenance")
}
