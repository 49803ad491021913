//! Tests of the rows of the view `tailrace.drop_window`, and of which policies count.

use anyhow::Result;
use tailrace::policy::Mode;
use tailrace_kit::lake::{Column, Field};

use crate::support::TestDatabase;

const ROWS: &str = "SELECT t.name, w.spec_id, w.key_index, w.transform,
                           extract(epoch from w.window_before - w.expired_before)::int AS lead,
                           w.expired_before BETWEEN now() - interval '169 hours'
                                                AND now() - interval '167 hours' AS week
                      FROM tailrace.drop_window w
                      JOIN hog_table_version t USING (catalog_id, table_id)
                     WHERE t.end_snapshot IS NULL ORDER BY 1, 2, 3";

#[tokio::test]
async fn the_view_has_a_row_for_each_time_field_of_a_spec_that_drops() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let columns = [Column::new("at", "timestamp"), Column::new("kind", "string")];
    let two = [Field::identity("kind"), Field::month("at"), Field::day("at")];
    let raw = database.table_of(&catalog, "raw", &columns, &[Field::identity("at")]).await?;
    raw.evolve_spec(&two).await?;
    database.govern(&raw, "at", "7d").await?;
    for (name, mode) in [("observed", Mode::Observe), ("paused", Mode::Paused)] {
        let table = database.table(&catalog, name, &[Field::day("at")]).await?;
        database.govern_as(&table, "at", "7d", mode).await?;
    }
    database.table(&catalog, "free", &[Field::day("at")]).await?;
    let short = database.table(&catalog, "short", &[Field::day("at")]).await?;
    database.govern(&short, "at", "30m").await?;
    // By its property; and one whose stored policy keeps the property from counting.
    let property = r#"{"field": "at", "keep": "7d"}"#;
    let own = database.table(&catalog, "own", &[Field::day("at")]).await?;
    own.set_property("partition_retention", Some(property)).await?;
    let both = database.table(&catalog, "own_paused", &[Field::day("at")]).await?;
    both.set_property("partition_retention", Some(property)).await?;
    database.sweep().await?;
    database.govern_as(&both, "at", "7d", Mode::Paused).await?;

    let row = |name: &str, spec: i64, key: i32, transform: &str| {
        format!(
            r#"{{"lead": 86400, "name": "{name}", "week": true, "spec_id": {spec}, "key_index": {key}, "transform": "{transform}"}}"#
        )
    };
    let expected = [
        row("own", 1, 0, "day"),
        row("raw", 1, 0, "identity"),
        row("raw", 2, 1, "month"),
        row("raw", 2, 2, "day"),
    ];
    assert_eq!(database.rows(ROWS).await?, expected);

    // Neither a table that is gone nor a bad property counts.
    raw.drop_table().await?;
    own.set_property("partition_retention", Some("{")).await?;
    database.sweep().await?;
    assert_eq!(database.rows(ROWS).await?, Vec::<String>::new());
    let asked = format!(
        "tailrace.in_drop_window({}, {}, 1, array['1'])",
        own.catalog.catalog_id, own.table_id
    );
    assert_eq!(database.text(&asked).await?.as_deref(), Some("false"));
    Ok(())
}

/// A policy that is paused by hand counts no more, whatever rules are kept.
#[tokio::test]
async fn what_the_policy_says_now_counts() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    database.govern(&table, "at", "7d").await?;
    let (catalog_id, id) = (catalog.catalog_id, table.table_id);
    database.sql(&format!("SELECT tailrace.keep_window_rules({catalog_id})")).await?;
    let asked = format!("tailrace.in_drop_window({catalog_id}, {id}, 1, array['1'])");
    for (change, expected) in [
        ("SELECT", "true"),
        ("UPDATE tailrace.policy SET mode = 'paused'", "false"),
        ("UPDATE tailrace.policy SET mode = 'enforce'", "true"),
        ("UPDATE tailrace.policy SET keep_seconds = 3153600000", "false"),
        ("UPDATE tailrace.policy SET keep_seconds = 60", "false"),
        ("DELETE FROM tailrace.policy", "false"),
    ] {
        database.sql(change).await?;
        assert_eq!(database.text(&asked).await?.as_deref(), Some(expected), "{change}");
    }
    Ok(())
}

/// The server may alter and drop what is its own.
#[tokio::test]
async fn nothing_of_it_holds_the_servers_tables() -> Result<()> {
    let database = TestDatabase::new().await?;
    database
        .sql(
            "ALTER TABLE hog_partition_field ALTER COLUMN transform TYPE varchar(20);
             ALTER TABLE hog_catalog RENAME COLUMN schema_version TO version_of_schema;
             DROP TABLE hog_partition_field, hog_partition_spec",
        )
        .await
}
