//! Tests of `tailrace drop`.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tailrace_kit::lake::{Column, Field, NewFile, Table};

use crate::support::TestDatabase;

/// Teams 1 and 2 on the days 2026-09-17 and 2026-09-18, a file of 10 rows and 100 bytes each.
async fn teams(database: &TestDatabase) -> Result<Table> {
    let catalog = database.catalog("lake").await?;
    let columns = [Column::new("team", "long"), Column::new("at", "timestamptz")];
    let spec = [Field::identity("team"), Field::day("at")];
    let table = database.table_of(&catalog, "raw", &columns, &spec).await?;
    let file = |team: &str, day: &str| NewFile::of([team, day]).records(10).bytes(100);
    table
        .append(vec![
            file("1", "20713"),
            file("1", "20714"),
            file("2", "20713"),
            file("2", "20714"),
        ])
        .await?;
    Ok(table)
}

fn partitions(answer: &Value) -> Vec<(Value, Value)> {
    let partitions = answer["partitions"].as_array().into_iter().flatten();
    partitions.map(|one| (one["partition_values"].clone(), one["files_ended"].clone())).collect()
}

#[tokio::test]
async fn it_shows_what_would_be_dropped_and_drops_it_once() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = teams(&database).await?;
    let key = "0b9f6d0e-6f0e-4a3e-9c83-0d4f6a1f9a10";
    let drop = |more: &[&'static str]| {
        let named = [
            "drop",
            "lake",
            "events.raw",
            "--partition",
            "team=1,day=2026-09-17",
            "--partition",
            r#"["9","20713"]"#,
            "--output",
            "json",
            "--idempotency-key",
            key,
        ];
        [&named[..], more].concat()
    };
    // Nobody to ask, and nobody said yes.
    let ran = database.ran(&drop(&[])).await?;
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("there is no terminal to ask on: say --yes"), "{}", ran.err);

    let (dry, code) = database.json(&drop(&["--dry-run"])).await?;
    let expected = [(json!(["1", "20713"]), json!(1)), (json!(["9", "20713"]), json!(0))];
    assert_eq!((code, &dry["committed"], partitions(&dry)), (0, &json!(false), expected.to_vec()));
    assert_eq!(table.live_files().await?.len(), 4);

    let ran = database.ran(&drop(&["--yes"])).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.starts_with(&format!("idempotency key {key}")), "{}", ran.err);
    let answer: Value = serde_json::from_str(&ran.out)?;
    assert_eq!((&answer["committed"], partitions(&answer)), (&json!(true), expected.to_vec()));
    assert_eq!((&answer["records"], &answer["bytes"]), (&json!(10), &json!(100)));
    let author = database.text("select author from hog_snapshot order by snapshot_id desc limit 1");
    assert_eq!(author.await?.as_deref(), Some("tester"));

    let (again, _) = database.json(&drop(&["--yes"])).await?;
    assert_eq!((&again["replayed"], &again["snapshot_id"]), (&json!(true), &answer["snapshot_id"]));
    assert_eq!(table.live_files().await?.len(), 3);
    Ok(())
}

#[tokio::test]
async fn files_of_json_lines_and_csv_are_read() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = teams(&database).await?;
    let folder = tempfile::tempdir()?;
    for (name, text, left) in [
        ("list.jsonl", "[\"1\",\"20713\"]\n[\"1\",\"20714\"]\n", 2),
        ("list.csv", "day,team\n2026-09-17,2\n", 1),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, text)?;
        let path = path.to_str().context("a path")?;
        let args = ["drop", "lake", "events.raw", "--yes", "--from-file", path];
        let ran = database.ran(&args).await?;
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(table.live_files().await?.len(), left, "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn what_is_wrong_is_said_and_nothing_goes() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = teams(&database).await?;
    for (more, code, words) in [
        (vec!["--partition", "day=2026-09-17"], 2, "no value for identity(team)"),
        (vec!["--partition", r#"["1"]"#], 2, "has 1 values, and spec 1 has 2 keys"),
        (vec!["--partition", r#"["1","*"]"#], 2, "wildcard"),
        (vec![], 2, "--partition <PARTITION>"),
        (vec!["--from-file", "/nowhere/list"], 2, "reading /nowhere/list"),
        (vec!["--partition", r#"["1","1"]"#, "--idempotency-key", "x"], 2, "--idempotency-key"),
    ] {
        let args = [&["drop", "lake", "events.raw", "--yes"][..], &more].concat();
        let ran = database.ran(&args).await?;
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(ran.err.contains(words), "{words}: {}", ran.err);
    }
    assert_eq!(table.live_files().await?.len(), 4);
    Ok(())
}

/// Names and sentences that are recorded have a limit, wherever they come in.
#[tokio::test]
async fn a_name_or_a_reason_that_is_too_long_is_a_usage_error() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = teams(&database).await?;
    let drop = ["drop", "lake", "events.raw", "--yes", "--partition", r#"["1","20713"]"#];
    let set = ["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "7d"];
    let accept = ["clock", "accept", "lake", "--yes"];
    let trust = ["spec", "trust", "lake", "events.raw", "1", "--yes"];
    let (name, sentence) = ("a".repeat(1025), "a".repeat(8193));
    for (command, option, text) in [
        (&drop[..], "--author", &name),
        (&drop, "--message", &sentence),
        (&set, "--by", &name),
        (&accept, "--by", &name),
        (&accept, "--reason", &sentence),
        (&trust, "--by", &name),
        (&trust, "--reason", &sentence),
    ] {
        let ran = database.ran(&[command, &[option, text.as_str()]].concat()).await?;
        let says = format!("has {} bytes, and at most {} are allowed", text.len(), text.len() - 1);
        assert_eq!((ran.code, ran.err.contains(&says)), (2, true), "{command:?} {option}: {ran:?}");
    }
    assert_eq!(table.live_files().await?.len(), 4);
    let (author, message) = (&name[1..], &sentence[1..]);
    let ran =
        database.ran(&[&drop[..], &["--author", author, "--message", message]].concat()).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    Ok(())
}

/// A fenced policy's drops carry the server's pair.
#[tokio::test]
async fn a_fenced_policy_tells_consumers_to_reconcile() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = teams(&database).await?;
    let set = ["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "7d", "--fence"];
    assert_eq!(database.ran(&set).await?.code, 0);
    let version = table.catalog.schema_version().await?;
    let report = database.sweep_one().await?;
    assert_eq!(report.snapshots.len(), 1);
    assert_eq!(table.catalog.schema_version().await?, version + 1);
    let kinds = database
        .rows("select kind from hog_snapshot_change where snapshot_id = (select max(snapshot_id) from hog_snapshot) order by kind")
        .await?;
    assert_eq!(kinds, [r#"{"kind": "table_altered"}"#, r#"{"kind": "table_deleted_from"}"#]);
    // Setting anything else leaves the fence; taking it back is said.
    let keep = ["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "8d"];
    assert_eq!(database.ran(&keep).await?.code, 0);
    let fence = async || -> Result<Value> {
        let get = ["policy", "get", "lake", "events.raw", "--output", "json"];
        Ok(database.policies(&get).await?[0]["fence"].clone())
    };
    assert_eq!(fence().await?, json!(true));
    let back = [&keep[..], &["--fence=false"]].concat();
    assert_eq!(database.ran(&back).await?.code, 0);
    assert_eq!(fence().await?, json!(false));
    Ok(())
}
