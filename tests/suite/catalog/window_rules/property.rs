//! Tests of the drop window of a table's property: the window applies only while the text of the
//! property is the mirrored one.

use anyhow::Result;
use tailrace::catalog::window_rules::keep_window_rules;
use tailrace::claims::renew;
use tailrace::policy::Mode;
use tailrace_kit::lake::{Field, Table};

use crate::support::TestDatabase;

const PROPERTY: &str = "partition_retention";
const WEEK: &str = r#"{"field": "at", "keep": "7d"}"#;

/// A table whose property a pass has mirrored.
async fn scene() -> Result<(TestDatabase, Table)> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.set_property(PROPERTY, Some(WEEK)).await?;
    database.sweep().await?;
    Ok((database, table))
}

/// What the function says of a day of 1970, and how many rows the view has.
async fn window(database: &TestDatabase, table: &Table) -> Result<(bool, i64)> {
    let asked = format!(
        "SELECT tailrace.in_drop_window({}, {}, 1, array['1']),
                (SELECT count(*) FROM tailrace.drop_window)",
        table.catalog.catalog_id, table.table_id
    );
    Ok(sqlx::query_as(sqlx::AssertSqlSafe(asked)).fetch_one(database.lake.pool()).await?)
}

/// Keeps the rules of the time, or none.
async fn with_rules(database: &TestDatabase, table: &Table, kept: bool) -> Result<()> {
    database.sql("DELETE FROM tailrace.window_rule").await?;
    if kept {
        let mut session = database.plain_session().await?;
        keep_window_rules(&mut session, table.catalog.catalog_id).await?;
    }
    Ok(())
}

#[tokio::test]
async fn another_text_than_the_mirrored_one_is_in_no_window() -> Result<()> {
    let (database, table) = scene().await?;
    let as_value = |value: &str| {
        format!(
            "UPDATE hog_table_version SET properties =
               jsonb_build_object('partition_retention', {value}) WHERE end_snapshot IS NULL"
        )
    };
    for kept in [false, true] {
        with_rules(&database, &table, kept).await?;
        assert_eq!(window(&database, &table).await?, (true, 1), "{kept}");
        for text in [
            None,
            Some(r#"{"field": "at", "keep": "30000d"}"#),
            Some(r#"{"field": "at", "keep": "6d"}"#),
            Some(r#"{"field": "at", "keep": "7d", "mode": "paused"}"#),
            Some(r#"{"keep": "7d", "field": "at"}"#),
            Some(r#"{"field": "at", "keep": "7d"} "#),
            Some("{"),
            Some(""),
        ] {
            table.set_property(PROPERTY, text).await?;
            assert_eq!(window(&database, &table).await?, (false, 0), "{kept}: {text:?}");
            // As where the catalog's schema_version shows no change.
            with_rules(&database, &table, kept).await?;
            assert_eq!(window(&database, &table).await?, (false, 0), "{kept}: {text:?}");
            table.set_property(PROPERTY, Some(WEEK)).await?;
            with_rules(&database, &table, kept).await?;
            assert_eq!(window(&database, &table).await?, (true, 1), "{kept}: {text:?}");
        }
        // Without DDL: the kept rule is of this time.
        let object = format!("'{WEEK}'::jsonb");
        for value in [object.as_str(), "'7'::jsonb", "'null'::jsonb", "'[]'::jsonb", "'x'::text"] {
            database.sql(&as_value(value)).await?;
            assert_eq!(window(&database, &table).await?, (false, 0), "{kept}: {value}");
            database.sql(&as_value(&format!("'{WEEK}'::text"))).await?;
            assert_eq!(window(&database, &table).await?, (true, 1), "{kept}: {value}");
        }
    }
    Ok(())
}

/// A renewal brings the new text in.
#[tokio::test]
async fn the_new_text_counts_from_the_next_renewal_on() -> Result<()> {
    let (database, table) = scene().await?;
    let settings = crate::claims::settings();
    for (text, expected) in [
        (r#"{"field": "at", "keep": "8d"}"#, (true, 1)),
        (r#"{"field": "at", "keep": "30000d"}"#, (false, 1)),
        (r#"{"field": "at", "keep": "8d", "mode": "observe"}"#, (false, 0)),
        (r#"{"field": "at", "keep": "9d", "mode": "enforce"}"#, (true, 1)),
        ("{", (false, 0)),
    ] {
        table.set_property(PROPERTY, Some(text)).await?;
        assert_eq!(window(&database, &table).await?, (false, 0), "{text}");
        assert_eq!(renew(&database.tailrace(), &settings, None).await?.failed, []);
        assert_eq!(window(&database, &table).await?, expected, "{text}");
    }
    Ok(())
}

/// A policy that was set by a command has no property to follow.
#[tokio::test]
async fn a_stored_policy_goes_by_itself() -> Result<()> {
    let (database, table) = scene().await?;
    database.govern(&table, "at", "8d").await?;
    for text in [Some(WEEK), Some("{"), None] {
        table.set_property(PROPERTY, text).await?;
        for kept in [false, true] {
            with_rules(&database, &table, kept).await?;
            assert_eq!(window(&database, &table).await?, (true, 1), "{text:?}");
        }
    }
    // And where it does not drop, no property does.
    table.set_property(PROPERTY, Some(WEEK)).await?;
    database.sweep().await?;
    database.govern_as(&table, "at", "8d", Mode::Paused).await?;
    assert_eq!(window(&database, &table).await?, (false, 0));
    Ok(())
}

/// Servers before V11 have no properties. All of it is there, and goes on when they come.
#[tokio::test]
async fn without_properties_the_window_is_of_stored_policies() -> Result<()> {
    let database = TestDatabase::in_schema("public").await?;
    database.lake.downgrade(10).await?;
    let ran = database.ran(&["migrate"]).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    database.govern(&table, "at", "7d").await?;
    // One session, so that the plans of before are met by what comes.
    let mut session = database.lake.pool().acquire().await?;
    let asked = format!(
        "SELECT tailrace.in_drop_window({}, {}, 1, array['1']),
                (SELECT count(*) FROM tailrace.drop_window)",
        catalog.catalog_id, table.table_id
    );
    for kept in [false, true] {
        with_rules(&database, &table, kept).await?;
        for _ in 0..7 {
            let answer: (bool, i64) =
                sqlx::query_as(sqlx::AssertSqlSafe(asked.clone())).fetch_one(&mut *session).await?;
            assert_eq!(answer, (true, 1), "{kept}");
        }
    }
    let upgrade = format!(
        "ALTER TABLE hog_table_version ADD COLUMN comment text,
           ADD COLUMN properties jsonb NOT NULL DEFAULT '{{}}';
         UPDATE hog_table_version SET properties = jsonb_build_object('{PROPERTY}', '{WEEK}'::text);
         UPDATE tailrace.policy SET source = 'property', property_text = '{WEEK}'"
    );
    database.sql(&upgrade).await?;
    for (text, expected) in [(WEEK, (true, 1)), ("x", (false, 0)), (WEEK, (true, 1))] {
        database
            .sql(&format!(
                "UPDATE hog_table_version SET properties =
                   jsonb_build_object('{PROPERTY}', '{text}'::text)"
            ))
            .await?;
        let answer: (bool, i64) =
            sqlx::query_as(sqlx::AssertSqlSafe(asked.clone())).fetch_one(&mut *session).await?;
        assert_eq!(answer, expected, "{text}");
    }
    Ok(())
}

/// The function says of a table that is dropped what the view says.
#[tokio::test]
async fn a_table_that_is_dropped_is_in_no_window() -> Result<()> {
    let (database, table) = scene().await?;
    with_rules(&database, &table, true).await?;
    assert_eq!(window(&database, &table).await?, (true, 1));
    database.sql("UPDATE hog_table SET dropped_snapshot = 1").await?;
    assert_eq!(window(&database, &table).await?, (false, 0));
    Ok(())
}

/// A query that asks for one table's policy is planned as one, and finds the table's row by its key.
#[tokio::test]
async fn policies_in_force_are_part_of_the_plan_of_who_asks() -> Result<()> {
    let (database, table) = scene().await?;
    let asked = format!(
        "EXPLAIN (COSTS OFF) SELECT * FROM tailrace.enforcing_policies() p
         WHERE p.catalog_id = {} AND p.table_id = {}",
        table.catalog.catalog_id, table.table_id
    );
    let mut session = database.lake.pool().begin().await?;
    sqlx::raw_sql("SET LOCAL enable_seqscan = off").execute(&mut *session).await?;
    let plan: Vec<String> =
        sqlx::query_scalar(sqlx::AssertSqlSafe(asked)).fetch_all(&mut *session).await?;
    session.rollback().await?;
    let plan = plan.join("\n");
    assert!(!plan.contains("Function Scan"), "{plan}");
    assert!(plan.contains("hog_table_version_live"), "{plan}");
    let condition = format!("(table_id = {})", table.table_id);
    assert!(plan.matches(&condition).count() >= 2, "{plan}");
    Ok(())
}
