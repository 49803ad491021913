//! Tests of the report on live tables without a policy, where several earlier tables had their
//! name.

use anyhow::Result;
use tailrace_kit::lake::{Field, Table};

use crate::support::TestDatabase;

async fn orphaned(database: &TestDatabase) -> Result<usize> {
    let ran = database.ran(&["sweep"]).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    Ok(ran.events("policy_orphaned").len())
}

async fn violated(database: &TestDatabase) -> Result<bool> {
    let (report, _) = database.json(&["verify", "--output", "json"]).await?;
    Ok(report.to_string().contains("which is gone and had"))
}

async fn governed(database: &TestDatabase, catalog: &tailrace_kit::lake::Catalog) -> Result<Table> {
    let table = database.table(catalog, "raw", &[Field::day("at")]).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    Ok(table)
}

/// Dropped and made anew twice, each time under a policy but the last: one table is without a policy, and
/// that is logged once.
#[tokio::test]
async fn a_table_whose_name_two_had_is_reported_once() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    for _ in 0..2 {
        let table = governed(&database, &catalog).await?;
        assert_eq!(orphaned(&database).await?, 0);
        table.drop_table().await?;
    }
    database.table(&catalog, "raw", &[Field::day("at")]).await?;
    assert_eq!(orphaned(&database).await?, 1);
    assert_eq!(orphaned(&database).await?, 0);
    Ok(())
}

/// The table of the tombstone is dropped and made anew as well: another live table has the
/// name and no policy.
#[tokio::test]
async fn the_next_table_of_the_name_is_told_too() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = governed(&database, &catalog).await?;
    assert_eq!(orphaned(&database).await?, 0);
    table.drop_table().await?;
    let second = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    assert_eq!(orphaned(&database).await?, 1);
    second.drop_table().await?;
    assert_eq!(orphaned(&database).await?, 0);
    assert!(!violated(&database).await?);
    database.table(&catalog, "raw", &[Field::day("at")]).await?;
    assert!(violated(&database).await?);
    Ok(())
}

/// The namespace is dropped and made anew with the table; a table is renamed into the name; a property's
/// policy is one.
#[tokio::test]
async fn other_ways_to_the_name_are_reported() -> Result<()> {
    for way in ["namespace", "rename", "property", "move"] {
        let database = TestDatabase::new().await?;
        let catalog = database.catalog("lake").await?;
        let table = match way {
            "property" => {
                let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
                let property = r#"{"field": "day(at)", "keep": "7d"}"#;
                table.set_property("partition_retention", Some(property)).await?;
                table
            }
            _ => governed(&database, &catalog).await?,
        };
        assert_eq!(orphaned(&database).await?, 0, "{way}");
        table.drop_table().await?;
        match way {
            "namespace" => {
                catalog.namespace("events").await?.drop_namespace().await?;
                database.table(&catalog, "raw", &[Field::day("at")]).await?;
            }
            "rename" => {
                let other = database.table(&catalog, "fresh", &[Field::day("at")]).await?;
                other.rename("raw").await?;
            }
            "move" => {
                let elsewhere = catalog.namespace("elsewhere").await?;
                let columns = [tailrace_kit::lake::Column::new("at", "timestamptz")];
                let other =
                    catalog.create_table(&elsewhere, "raw", &columns, &[Field::day("at")]).await?;
                other.move_to(&catalog.namespace("events").await?).await?;
            }
            _ => {
                database.table(&catalog, "raw", &[Field::day("at")]).await?;
            }
        }
        assert!(violated(&database).await?, "{way}");
        assert_eq!(orphaned(&database).await?, 1, "{way}");
        assert_eq!(orphaned(&database).await?, 0, "{way}");
        assert!(violated(&database).await?, "{way}");
    }
    Ok(())
}

/// Two daemons at once tell it once.
#[tokio::test]
async fn two_passes_at_once_tell_it_once() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = governed(&database, &catalog).await?;
    database.sweep().await?;
    table.drop_table().await?;
    database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let (one, two) = tokio::try_join!(database.ran(&["sweep"]), database.ran(&["sweep"]))?;
    let told = one.events("policy_orphaned").len() + two.events("policy_orphaned").len();
    assert_eq!(told, 1);
    Ok(())
}
