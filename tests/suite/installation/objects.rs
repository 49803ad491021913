//! Tests that all objects of tailrace are in its own schema, and that none of them refers to
//! hoglake's.

use anyhow::Result;
use tailrace_kit::lake::{Field, NewFile};

use crate::support::TestDatabase;

/// Every relation, constraint, trigger, rule, policy, function and type outside of the system's
/// schemas, with its schema.
const OBJECTS: &str = "
    SELECT n.nspname || '.' || c.relname || ' ' || c.relkind::text AS o
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
    UNION ALL
    SELECT 'constraint ' || conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid)
      FROM pg_constraint WHERE conrelid <> 0
    UNION ALL SELECT 'trigger ' || tgrelid::regclass || ' ' || tgname FROM pg_trigger
    UNION ALL SELECT 'rule ' || ev_class::regclass || ' ' || rulename FROM pg_rewrite
               WHERE ev_class >= 16384
    UNION ALL SELECT 'policy ' || polrelid::regclass || ' ' || polname FROM pg_policy
    UNION ALL SELECT 'column ' || attrelid::regclass || ' ' || attname FROM pg_attribute
               WHERE attrelid >= 16384 AND attnum > 0 AND attrelid::regclass::text NOT LIKE 'pg\\_%'
    UNION ALL SELECT 'function ' || p.oid::regprocedure FROM pg_proc p WHERE p.oid >= 16384
    UNION ALL SELECT 'event trigger ' || evtname FROM pg_event_trigger
    UNION ALL SELECT 'statistics ' || stxname FROM pg_statistic_ext
    UNION ALL SELECT 'publication ' || pubname FROM pg_publication
    UNION ALL SELECT 'extension ' || extname FROM pg_extension
    UNION ALL SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%'
    ORDER BY 1";

#[tokio::test]
async fn all_that_is_added_is_in_our_own_schema() -> Result<()> {
    let database = TestDatabase::in_schema("public").await?;
    let before = database.rows(OBJECTS).await?;
    assert_eq!(database.ran(&["migrate"]).await?.code, 0);
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["18000"])]).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    assert_eq!(database.sweep_one().await?.counts().files, 1);

    let after = database.rows(OBJECTS).await?;
    let gone: Vec<_> = before.iter().filter(|object| !after.contains(object)).collect();
    assert_eq!(gone, Vec::<&String>::new());
    let new: Vec<_> = after.iter().filter(|object| !before.contains(object)).collect();
    let elsewhere: Vec<_> = new
        .iter()
        .filter(|object| !object.contains("tailrace.") && **object != r#"{"o": "schema tailrace"}"#)
        .collect();
    assert_eq!(elsewhere, Vec::<&&String>::new());
    let tables: Vec<_> = new
        .iter()
        .filter(|object| object.ends_with(" r\"}"))
        .map(|object| object.trim_start_matches("{\"o\": \"tailrace.").trim_end_matches(" r\"}"))
        .collect();
    assert_eq!(
        tables,
        [
            "approval",
            "approved_partition",
            "calendar",
            "catalog_state",
            "claimant",
            "clock_memory",
            "drop_history",
            "drop_receipt",
            "guard_state",
            "hold",
            "installation",
            "noted_head",
            "pause",
            "policy",
            "policy_change",
            "schema_migration",
            "source_column_type",
            "spec_copy",
            "sweep_cursor",
            "sweep_state",
            "table_state",
            "waiting",
            "window_rule",
            "window_setting",
        ]
    );
    assert_eq!(new.iter().filter(|object| object.contains("trigger ")).count(), 0);
    assert_eq!(new.iter().filter(|object| object.contains("FOREIGN KEY")).count(), 0);
    Ok(())
}

/// Nor does any row of ours keep hoglake from dropping what is its own.
#[tokio::test]
async fn nothing_of_ours_holds_a_table_or_a_catalog() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["18000"])]).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    database.sweep().await?;
    let ours = database
        .text(
            "SELECT count(*) FROM pg_constraint
              WHERE contype = 'f' AND (conrelid::regclass::text LIKE 'tailrace.%'
                                       OR confrelid::regclass::text LIKE 'tailrace.%')",
        )
        .await?;
    assert_eq!(ours.as_deref(), Some("0"));
    database.sql("DELETE FROM hog_catalog; DROP SCHEMA tailrace CASCADE").await?;
    assert_eq!(database.text("SELECT count(*) FROM hog_table").await?.as_deref(), Some("0"));
    Ok(())
}
