//! Tests of a renamed column. A policy is bound to its column by id. After a rename the text of the
//! policy may be another column's name, and all output shows the column by its present name.

use anyhow::Result;
use serde_json::json;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Column, Field, NewFile, Table};

use super::properties::{PROPERTY, with_property};
use crate::support::TestDatabase;
use crate::support::governed::{live_values, values};

const SHOWN: &str = r#"at_old (the policy says "at", which is another column now)"#;

/// A table with an old day and a young one and a policy on `at`, which is called `at_old` by now, and
/// another column has its name.
async fn renamed(database: &TestDatabase) -> Result<Table> {
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["18000"]), NewFile::of(["99999"])]).await?;
    database.policy("lake", "events.raw", "at", "7d").await?;
    table.rename_column("at", "at_old").await?;
    table.add_column(None, Column::new("at", "timestamptz")).await?;
    Ok(table)
}

#[tokio::test]
async fn listings_and_plans_show_the_columns_present_name() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = renamed(&database).await?;
    for (list, words) in [
        (&["policy", "get", "lake", "events.raw"][..], format!("events.raw: {SHOWN} keep 7d")),
        (&["policy", "list"], format!("events.raw  {SHOWN}  7d")),
    ] {
        let text = database.ran(list).await?.out;
        assert!(text.contains(&words), "{text}");
        let listed = database.policies(&[list, &["--output", "json"]].concat()).await?;
        let (field, column) = (&listed[0]["field"], &listed[0]["column"]);
        assert_eq!((field, column), (&json!("at"), &json!("at_old")));
    }
    let plan = database.ran(&["plan"]).await?.out;
    assert!(
        plan.contains(&format!("events.raw: {SHOWN} keep 7d, enforce (stored policy)")),
        "{plan}"
    );
    let plan = database.plan_json("2026-09-25T00:00:00Z").await?;
    assert_eq!((&plan["field"], &plan["column"]), (&json!("at"), &json!("at_old")));
    assert_eq!(plan.get("shown_field"), None);

    // To set it anew is to mean the other column, which gives no date here.
    let set = ["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "8d"];
    let refused = database.ran(&set).await?;
    assert!(refused.err.contains("is not what the table is partitioned by"), "{refused:?}");
    let set = ["policy", "set", "lake", "events.raw", "--field", "at_old", "--keep", "8d"];
    let told = database.ran(&set).await?.out;
    assert!(told.contains(&format!("\nBefore: {SHOWN} keep 7d, enforce\n")), "{told}");
    assert_eq!(table.live_files().await?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn passes_tell_and_note_the_columns_present_name() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = renamed(&database).await?;
    let ran = database.ran(&["sweep", "--output", "json"]).await?;
    let report: serde_json::Value = serde_json::from_str(&ran.out)?;
    let swept = &report["tables"][0];
    assert_eq!((&swept["field"], &swept["column"]), (&json!("at"), &json!("at_old")));
    let finished = &ran.events("table_finished")[0];
    assert_eq!((&finished["field"], &finished["column"]), (&json!("at"), &json!("at_old")));
    // Which column is meant has not changed: its old day goes.
    assert_eq!(live_values(&table).await?, [values(["99999"])]);
    let message = "SELECT commit_message FROM hog_snapshot ORDER BY snapshot_id DESC LIMIT 1";
    let message = database.text(message).await?.unwrap_or_default();
    assert!(message.starts_with(&format!("partition retention: {SHOWN} keep 7d, ")), "{message}");

    // A policy that dates nothing says so of the column by the same name.
    table.append(vec![NewFile::of(["x"])]).await?;
    let undated =
        "UPDATE hog_file_partition_value SET value = 'x'; DELETE FROM tailrace.table_state";
    database.sql(undated).await?;
    let unhealthy = database.sweep_one().await?;
    assert_eq!(unhealthy.outcome, Outcome::Unhealthy);
    let error = unhealthy.error.unwrap_or_default();
    assert!(error.starts_with(&format!("the policy's field {SHOWN} dates none of ")), "{error}");
    let said = database.doctor().await?;
    let what = format!("the policy's field {SHOWN} dates none of the newest live files");
    assert_eq!(said.of("policies"), [("problem", what.as_str())]);
    Ok(())
}

#[tokio::test]
async fn doctor_and_verify_name_a_column_no_longer_partitioned_by() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = renamed(&database).await?;
    table.evolve_spec(&[Field::day("at")]).await?;
    for (shown, gone) in
        [(SHOWN, false), ("at (that column is gone, and \"at\" is another column now)", true)]
    {
        if gone {
            table.drop_column("at_old").await?;
        }
        let said = database.doctor().await?;
        let what = format!("the live partition spec has no time field on {shown}");
        assert_eq!(said.of("policies"), [("problem", what.as_str())]);
        let ran = database.ran(&["verify"]).await?;
        let sample = format!(
            "events.raw: the policy's field {shown} is no time field of the live partition spec: new \
             files are not covered\n"
        );
        assert!(ran.out.contains(&sample), "{ran:?}");
    }
    let listed = database.policies(&["policy", "list", "--output", "json"]).await?;
    assert_eq!((&listed[0]["field"], &listed[0]["column"]), (&json!("at"), &json!(null)));
    Ok(())
}

/// A property goes on to mean the column that it meant, as long as no other has its name.
#[tokio::test]
async fn a_property_shows_the_columns_present_name_too() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = with_property(&database, r#"{"field": "day(at)", "keep": "30000d"}"#).await?;
    database.sweep().await?;
    table.rename_column("at", "at_old").await?;
    let shown = r#"at_old (the policy says "day(at)", and "at" is no column now)"#;
    let listed = database.ran(&["policy", "list"]).await?.out;
    assert!(listed.contains(&format!("events.raw  {shown}  30000d")), "{listed}");
    database.policy("lake", "events.raw", "at_old", "7d").await?;
    let ran = database.ran(&["policy", "unset", "lake", "events.raw"]).await?;
    let takes_over = format!(
        "The table's property partition_retention takes over: {shown} keep 30000d, enforce\n"
    );
    assert!(ran.out.starts_with(&takes_over), "{ran:?}");
    // What a pass mirrors anew, it tells by both names.
    table.set_property(PROPERTY, Some(r#"{"field": "day(at)", "keep": "30001d"}"#)).await?;
    let ran = database.ran(&["sweep"]).await?;
    let mirrored = &ran.events("property_mirrored")[0];
    assert_eq!((&mirrored["field"], &mirrored["column"]), (&json!("day(at)"), &json!("at_old")));
    Ok(())
}
