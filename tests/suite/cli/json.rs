//! Tests of the JSON of `plan` and `sweep`: the keys that are documented for programs, one by one.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::{Value, json};
use tailrace::rules::instant::UtcInstant;
use tailrace_kit::lake::{Column, Field, NewFile, Table};

use crate::support::TestDatabase;

async fn a_table(database: &TestDatabase) -> Result<Table> {
    let catalog = database.catalog("lake").await?;
    let columns = [Column::new("team_id", "long"), Column::new("at", "timestamptz")];
    let spec = [Field::identity("team_id"), Field::day("at")];
    let table = database.table_of(&catalog, "raw", &columns, &spec).await?;
    let ids = table
        .append(vec![
            NewFile::of(["7", "20713"]).records(10).bytes(100),
            NewFile::of(["7", "20713"]).records(20).bytes(200),
            NewFile::new(vec![None, Some("20714".into())]).records(1).bytes(10),
            NewFile::of(["7", "x"]),
            NewFile::new(vec![Some("7".into()), None]),
            NewFile::of(["7", "20720"]),
            NewFile::of(["7", "99999"]),
        ])
        .await?
        .file_ids;
    table.register_vector(ids[0], 3, None).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    Ok(table)
}

/// The value without the keys that are not named; and that all named ones are there.
fn only(value: &Value, keys: &[&str]) -> Value {
    let found: BTreeSet<&str> =
        value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    let missing: Vec<_> = keys.iter().filter(|key| !found.contains(**key)).collect();
    assert!(missing.is_empty(), "{missing:?} in {value}");
    keys.iter().map(|key| ((*key).to_owned(), value[*key].clone())).collect()
}

#[tokio::test]
async fn a_plan_has_these_keys_and_values() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = a_table(&database).await?;
    let at = "2026-09-26T01:00:00.5+01:00";
    let plan = database.done(&["plan", "--at", at, "--output", "json"]).await?;
    assert_eq!(plan["as_of"], "2026-09-26T00:00:00.5Z");
    let tables = plan["tables"].as_array().cloned().unwrap_or_default();
    assert_eq!(tables.len(), 1);
    let promised = only(
        &tables[0],
        &[
            "catalog",
            "namespace",
            "table",
            "table_uuid",
            "field",
            "keep",
            "mode",
            "cutoff",
            "expired",
            "kept_files",
            "uncovered_files",
            "next_expiry",
        ],
    );
    assert_eq!(
        promised,
        json!({
            "catalog": "lake", "namespace": "events", "table": "raw",
            "table_uuid": table.table_uuid.to_string(),
            "field": "day(at)", "keep": "7d", "mode": "enforce", "cutoff": "2026-09-19T00:00:00.5Z",
            "expired": [
                {"spec_id": 1, "partition_values": ["7", "20713"], "display": "7 / 2026-09-17",
                 "range_end": "2026-09-18T00:00:00Z", "files": 2, "delete_files": 1, "records": 30,
                 "bytes": 300},
                {"spec_id": 1, "partition_values": [null, "20714"], "display": "null / 2026-09-18",
                 "range_end": "2026-09-19T00:00:00Z", "files": 1, "delete_files": 0, "records": 1,
                 "bytes": 10},
            ],
            "kept_files": 4, "uncovered_files": 0, "next_expiry": "2026-10-02T00:00:00Z",
        })
    );
    let undatable: Vec<_> = tables[0]["undatable"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|sample| only(sample, &["spec_id", "partition_values", "reason", "files"]))
        .collect();
    assert_eq!(
        undatable,
        [
            json!({"spec_id": 1, "partition_values": ["7", null], "reason": "null", "files": 1}),
            json!({"spec_id": 1, "partition_values": ["7", "x"], "reason": "malformed", "files": 1}),
        ]
    );
    // Without --at it is the database's time, and nothing is written: the same a moment later.
    let now = database.done(&["plan", "--output", "json"]).await?;
    let as_of: UtcInstant = now["as_of"].as_str().unwrap_or_default().parse()?;
    assert!(as_of.distance(chrono::Utc::now().into()) < std::time::Duration::from_secs(60));
    Ok(())
}

#[tokio::test]
async fn a_sweep_has_these_keys_and_values() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = a_table(&database).await?;
    // By whatever clock this runs, these are long gone.
    table
        .append(vec![NewFile::of(["7", "0"]).records(5).bytes(50), NewFile::of(["8", "-1"])])
        .await?;
    database
        .sql("UPDATE tailrace.policy SET keep = '18000d', keep_seconds = 18000 * 86400")
        .await?;
    let swept = database.done(&["sweep", "--output", "json"]).await?;
    let head = table.catalog.head().await?;
    let promised = only(&swept, &["as_of", "tables"]);
    assert!(promised["as_of"].as_str().is_some_and(|at| at.parse::<UtcInstant>().is_ok()));
    let tables = promised["tables"].as_array().cloned().unwrap_or_default();
    assert_eq!(tables.len(), 1);
    let keys = ["catalog", "namespace", "table", "outcome", "snapshots", "error"];
    let mut reported = only(&tables[0], &keys);
    let snapshots = reported["snapshots"].take();
    assert_eq!(
        reported,
        json!({"catalog": "lake", "namespace": "events", "table": "raw", "outcome": "dropped",
               "snapshots": null, "error": null})
    );
    assert_eq!(snapshots.as_array().map(Vec::len), Some(1));
    let mut snapshot = only(
        &snapshots[0],
        &[
            "snapshot_id",
            "partitions",
            "files_ended",
            "delete_files_ended",
            "records",
            "bytes",
            "lock_wait_ms",
            "lock_hold_ms",
        ],
    );
    for time in ["lock_wait_ms", "lock_hold_ms"] {
        let taken = snapshot[time].take();
        assert!(taken.as_f64().is_some_and(|ms| ms > 0.0 && ms < 10_000.0), "{time}: {taken}");
    }
    assert_eq!(
        snapshot,
        json!({
            "snapshot_id": head,
            "partitions": [
                {"spec_id": 1, "partition_values": ["8", "-1"], "display": "8 / 1969-12-31",
                 "range_end": "1970-01-01T00:00:00Z", "files": 1, "delete_files": 0, "records": 100,
                 "bytes": 1000},
                {"spec_id": 1, "partition_values": ["7", "0"], "display": "7 / 1970-01-01",
                 "range_end": "1970-01-02T00:00:00Z", "files": 1, "delete_files": 0, "records": 5,
                 "bytes": 50},
            ],
            "files_ended": 2, "delete_files_ended": 0, "records": 105, "bytes": 1050,
            "lock_wait_ms": null, "lock_hold_ms": null,
        })
    );
    let again = database.done(&["sweep", "--output", "json"]).await?;
    assert_eq!(
        only(&again["tables"][0], &keys),
        json!({"catalog": "lake", "namespace": "events", "table": "raw",
               "outcome": "nothing_to_do", "snapshots": [], "error": null})
    );
    Ok(())
}

#[tokio::test]
async fn a_scope_is_what_is_shown_and_done() -> Result<()> {
    let database = TestDatabase::new().await?;
    for name in ["one", "two"] {
        let catalog = database.catalog(name).await?;
        for table in ["raw", "silver"] {
            let table = database.table(&catalog, table, &[Field::day("at")]).await?;
            table.append(vec![NewFile::of(["18000"])]).await?;
            database.govern(&table, "at", "7d").await?;
        }
    }
    let shown = |report: &Value| -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let tables = report["tables"].as_array().into_iter().flatten();
        tables.map(|table| (text(&table["catalog"]), text(&table["table"]))).collect()
    };
    for command in ["plan", "sweep"] {
        for (scope, expected) in [
            (vec!["--catalog", "one", "--table", "events.raw"], vec![("one", "raw")]),
            (vec!["--table", "events.raw"], vec![("one", "raw"), ("two", "raw")]),
            (vec!["--catalog", "two"], vec![("two", "raw"), ("two", "silver")]),
            (vec![], vec![("one", "raw"), ("one", "silver"), ("two", "raw"), ("two", "silver")]),
        ] {
            let args = [vec![command, "--output", "json"], scope].concat();
            let expected: Vec<_> =
                expected.into_iter().map(|(c, t)| (c.to_owned(), t.to_owned())).collect();
            assert_eq!(shown(&database.done(&args).await?), expected, "{args:?}");
        }
        for scope in [["--catalog", "three"], ["--table", "events.bronze"]] {
            let args = [&[command, "--output", "json"][..], &scope].concat();
            let ran = database.ran(&args).await?;
            assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{args:?}");
            let why = match scope[0] {
                "--catalog" => "there is no catalog \"three\"; there are: \"one\", \"two\"",
                _ => "there is no live table events.bronze in any catalog",
            };
            assert!(ran.err.contains(why), "{ran:?}");
        }
    }
    Ok(())
}
