//! Tests of what a policy does in each mode (enforce, observe, paused), and that a problem of one
//! table does not affect other tables.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::json;
use tailrace::policy::Mode;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile, differences};

use crate::support::TestDatabase;
use crate::support::governed::{live_ids, of_table, outcomes};

#[tokio::test]
async fn observe_shows_what_would_be_dropped_and_paused_nothing() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    for (name, mode) in [("watched", "observe"), ("stopped", "paused")] {
        let table = database.table(&catalog, name, &[Field::day("at")]).await?;
        let files = vec![NewFile::of(["18001"]), NewFile::of(["18000"]), NewFile::of(["99999"])];
        let ids = table.append(files).await?.file_ids;
        table.register_vector(ids[0], 1, None).await?;
        let name = format!("events.{name}");
        let ran = database
            .ran(&[
                "policy", "set", "lake", &name, "--field", "day(at)", "--keep", "7d", "--mode",
                mode,
            ])
            .await?;
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let before = database.lake.dump().await?;

    let report = database.done(&["sweep", "--output", "json"]).await?;

    assert_eq!(differences(&before, &database.lake.dump().await?), BTreeMap::new());
    let tables = report["tables"].as_array().cloned().unwrap_or_default();
    assert_eq!(tables.len(), 2);
    assert_eq!((&tables[0]["table"], &tables[0]["outcome"]), (&json!("stopped"), &json!("paused")));
    assert_eq!(tables[0]["would_drop"], json!(null));
    assert_eq!(tables[1]["outcome"], "observed");
    assert_eq!(tables[1]["snapshots"], json!([]));
    let would_drop = |day: &str, display: &str, end: &str, delete_files: i64| {
        json!({"spec_id": 1, "partition_values": [day], "display": display, "range_end": end,
               "files": 1, "delete_files": delete_files, "records": 100, "bytes": 1000})
    };
    assert_eq!(
        tables[1]["would_drop"],
        json!([
            would_drop("18000", "2019-04-14", "2019-04-15T00:00:00Z", 0),
            would_drop("18001", "2019-04-15", "2019-04-16T00:00:00Z", 1),
        ])
    );
    let history = database.text("SELECT count(*) FROM tailrace.drop_history").await?;
    assert_eq!(history.as_deref(), Some("0"));
    // A plan shows both, with their modes, and writes nothing either.
    let plan = database.done(&["plan", "--output", "json"]).await?;
    let modes: Vec<_> = plan["tables"].as_array().into_iter().flatten().collect();
    assert_eq!((&modes[0]["mode"], &modes[1]["mode"]), (&json!("paused"), &json!("observe")));
    assert_eq!(modes[0]["expired"].as_array().map(Vec::len), Some(2));
    assert_eq!(differences(&before, &database.lake.dump().await?), BTreeMap::new());
    Ok(())
}

#[tokio::test]
async fn one_tables_failure_stops_no_other() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let mut tables = Vec::new();
    for name in ["a_good", "b_bad_property", "c_raised_guard", "d_broken", "e_good"] {
        let table = database.table(&catalog, name, &[Field::day("at")]).await?;
        table.append(vec![NewFile::of(["18000"])]).await?;
        match name {
            "b_bad_property" => {
                table.set_property("partition_retention", Some("{")).await?;
            }
            "c_raised_guard" => {
                database.govern_as(&table, "at", "30m", Mode::Enforce).await?;
            }
            _ => {
                database.govern(&table, "at", "7d").await?;
            }
        }
        tables.push(table);
    }
    // A row that a later version could have written.
    database
        .sql(&format!(
            "ALTER TABLE tailrace.policy DROP CONSTRAINT policy_mode_check;
             UPDATE tailrace.policy SET mode = 'archive' WHERE table_id = {}",
            tables[3].table_id
        ))
        .await?;

    let ran = database.ran(&["plan", "--output", "json"]).await?;
    assert_eq!(ran.code, 3, "{ran:?}");
    let report = database.sweep().await?;

    let expected = [
        ("a_good", Outcome::Dropped),
        ("b_bad_property", Outcome::Failed),
        ("c_raised_guard", Outcome::Failed),
        ("d_broken", Outcome::Failed),
        ("e_good", Outcome::Dropped),
    ];
    assert_eq!(outcomes(&report), expected);
    let error = |table| of_table(&report, table).error.clone().unwrap_or_default();
    assert!(
        error("b_bad_property").starts_with("table property partition_retention is not followed")
    );
    assert_eq!(
        error("c_raised_guard"),
        "keep \"30m\" is less than guard.min_keep (1h): keep more, or lower that guard"
    );
    assert_eq!(error("d_broken"), "mode \"archive\" is not one of enforce, observe, paused");
    for (table, live) in tables.iter().zip([0, 1, 1, 1, 0]) {
        assert_eq!(live_ids(table).await?.len(), live);
    }
    Ok(())
}

/// A database error in the middle of one table's commit is that table's alone.
#[tokio::test]
async fn a_commit_that_the_database_refuses_fails_its_table_only() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let mut tables = Vec::new();
    for name in ["a_refused", "b_good"] {
        let table = database.table(&catalog, name, &[Field::day("at")]).await?;
        table.append(vec![NewFile::of(["18000"])]).await?;
        database.govern(&table, "at", "7d").await?;
        tables.push(table);
    }
    database
        .sql(&format!(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
               $$ BEGIN RAISE EXCEPTION 'not this one'; END $$;
             CREATE TRIGGER refuse BEFORE UPDATE ON hog_data_file FOR EACH ROW
               WHEN (old.table_id = {}) EXECUTE FUNCTION refuse()",
            tables[0].table_id
        ))
        .await?;
    let head = catalog.head().await?;
    let report = database.sweep().await?;
    assert_eq!(outcomes(&report), [("a_refused", Outcome::Failed), ("b_good", Outcome::Dropped)]);
    let error = report.tables[0].error.clone().unwrap_or_default();
    assert!(error.contains("not this one"), "{error}");
    assert_eq!(catalog.head().await?, head + 1);
    assert_eq!((live_ids(&tables[0]).await?.len(), live_ids(&tables[1]).await?.len()), (1, 0));
    Ok(())
}
