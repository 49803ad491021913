//! Tests that a property is bound to the column that its text named when a pass first saw it.

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Column, Field};

use super::properties::{PROPERTY, with_property};
use crate::support::TestDatabase;
use crate::support::governed::live_ids;
use crate::support::program::proven_18000;

const WEEK: &str = r#"{"field": "at", "keep": "7d"}"#;

#[tokio::test]
async fn it_follows_the_column_through_a_rename() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = with_property(&database, r#"{"field": "at", "keep": "30000d"}"#).await?;
    assert_eq!(database.sweep_one().await?.outcome, Outcome::NothingToDo);
    table.rename_column("at", "happened").await?;
    table.set_property(PROPERTY, Some(WEEK)).await?;
    assert_eq!(database.sweep_one().await?.outcome, Outcome::Dropped);
    let bound = database.text("SELECT source_field_id FROM tailrace.policy").await?;
    assert_eq!(bound, Some(table.field_id("at")?.to_string()));
    Ok(())
}

#[tokio::test]
async fn a_text_that_means_another_column_by_now_is_refused() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = with_property(&database, r#"{"field": "at", "keep": "30000d"}"#).await?;
    database.sweep().await?;
    let first = table.field_id("at")?;
    table.rename_column("at", "happened").await?;
    let second = table.add_column(None, Column::new("at", "timestamptz")).await?["at"];
    table.evolve_spec(&[Field::day("at")]).await?;
    let reopened = table.catalog.open_table("events", "raw").await?;
    reopened.append(vec![proven_18000("at")]).await?;
    // The keep is shortened too: had it been followed, either column's old day would go.
    table.set_property(PROPERTY, Some(WEEK)).await?;

    for _ in 0..2 {
        let report = database.sweep_one().await?;
        assert_eq!(report.outcome, Outcome::Failed);
        assert_eq!(
            report.error,
            Some(format!(
                "table property partition_retention is not followed: field \"at\" now names \
                 another column (field id {second}) than when it was first seen (field id \
                 {first}, called \"happened\" now): set a policy with `tailrace policy set`, or \
                 remove the property for one pass"
            ))
        );
        let row = database.rows("SELECT source_field_id, keep FROM tailrace.policy").await?;
        assert_eq!(row, [format!(r#"{{"keep": "30000d", "source_field_id": {first}}}"#)]);
    }
    assert_eq!(live_ids(&table).await?.len(), 3);
    // The way out that the message names: without the property for one pass.
    table.set_property(PROPERTY, None).await?;
    database.sweep().await?;
    table.set_property(PROPERTY, Some(WEEK)).await?;
    assert_eq!(database.sweep_one().await?.counts().files, 1);
    let bound = database.text("SELECT source_field_id FROM tailrace.policy").await?;
    assert_eq!(bound, Some(second.to_string()));
    Ok(())
}

/// Another field's text is another binding, which must resolve as a new one does.
#[tokio::test]
async fn another_field_is_bound_anew() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = with_property(&database, r#"{"field": "at", "keep": "30000d"}"#).await?;
    database.sweep().await?;
    table.add_column(None, Column::new("seen", "timestamptz")).await?;
    table.set_property(PROPERTY, Some(r#"{"field": "seen", "keep": "7d"}"#)).await?;
    let report = database.sweep_one().await?;
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(report.error.unwrap_or_default().contains("is not what the table is partitioned by"));
    table.evolve_spec(&[Field::day("seen")]).await?;
    let reopened = table.catalog.open_table("events", "raw").await?;
    reopened.append(vec![proven_18000("seen")]).await?;
    let report = database.sweep_one().await?;
    assert_eq!((report.outcome, report.counts().files), (Outcome::Dropped, 1));
    // The old day of the other column is none of this policy's.
    assert_eq!(live_ids(&table).await?.len(), 2);
    Ok(())
}
