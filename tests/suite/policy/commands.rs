//! Tests of `policy set`, `get` and `list`.

use anyhow::Result;
use serde_json::{Value, json};
use tailrace_kit::lake::{Field, NewFile};

use crate::support::TestDatabase;
use crate::support::program::days_ago;

#[tokio::test]
async fn what_was_set_is_shown() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let raw = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    database.table(&catalog, "silver", &[Field::month("at")]).await?;
    let none = database.ran(&["policy", "list"]).await?;
    assert_eq!(none.out, "No table has a policy: see `tailrace policy set --help`\n");
    assert_eq!(
        database.ran(&["policy", "list", "--output", "json"]).await?.out,
        "{\"policies\":[]}\n"
    );
    let none = database.ran(&["policy", "get", "lake", "events.raw"]).await?;
    assert_eq!((none.code, none.err.as_str()), (1, "tailrace: table events.raw has no policy\n"));

    let set = ["policy", "set", "lake", "events.raw", "--field", " day(at) ", "--keep", "1w 2d"];
    let ran = database.ran(&set).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    let got =
        database.policies(&["policy", "get", "lake", "events.raw", "--output", "json"]).await?;
    let (revision, since) = (got[0]["revision"].clone(), got[0]["updated_at"].clone());
    assert!(revision.is_i64() && since.is_string());
    assert_eq!(
        got,
        json!([{
            "catalog": "lake", "namespace": "events", "table": "raw",
            "table_uuid": raw.table_uuid.to_string(), "source": "stored", "in_force": true,
            "field": "day(at)", "column": "at", "source_field_id": raw.field_id("at")?, "keep": "1w 2d",
            "keep_seconds": 777_600, "keep_last": null, "mode": "enforce", "fence": false, "revision": revision,
            "updated_at": since, "updated_by": "tester", "problem": null,
        }])
    );
    assert_eq!(
        ran.out,
        format!(
            "lake events.raw: day(at) keep 1w 2d, enforce (revision {revision})\n\
             Keeps each partition for 1 week 2 days after its last instant\n\
             The next pass drops 0 partitions, 0 files; to list them:\n  \
             tailrace plan --catalog lake --table events.raw\n"
        )
    );
    let set = [
        "policy",
        "set",
        "lake",
        "events.silver",
        "--field",
        "at",
        "--keep",
        "36h",
        "--mode",
        "observe",
        "--by",
        "somebody else",
    ];
    assert_eq!(database.ran(&set).await?.code, 0);
    let listed = database.policies(&["policy", "list", "--output", "json"]).await?;
    let shown: Vec<_> = listed
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| [&row["table"], &row["field"], &row["mode"], &row["updated_by"]])
        .collect();
    assert_eq!(
        shown,
        [
            [&json!("raw"), &json!("day(at)"), &json!("enforce"), &json!("tester")],
            [&json!("silver"), &json!("at"), &json!("observe"), &json!("somebody else")],
        ]
    );
    let text = database.ran(&["policy", "list", "--catalog", "lake"]).await?.out;
    let lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert_eq!(lines[0][..4], ["CATALOG", "TABLE", "FIELD", "KEEP"]);
    assert_eq!(lines[2][..6], ["lake", "events.silver", "at", "36h", "observe", "stored"]);
    Ok(())
}

/// Setting a longer keep on a paused policy must not arm it.
#[tokio::test]
async fn a_mode_that_is_not_given_stays_and_what_changed_is_said() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let raw = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    raw.append(vec![NewFile::of(["1"]), NewFile::of(["1"]), NewFile::of(["2"])]).await?;
    let set = |more: &[&'static str]| {
        let fixed = ["policy", "set", "lake", "events.raw", "--field", "at"];
        [&fixed[..], more].concat()
    };
    let see = "to list them:\n  tailrace plan --catalog lake --table events.raw\n";
    for (more, expected) in [
        (
            ["--keep", "7d", "--mode", "paused"].as_slice(),
            "at keep 7d, paused|Keeps each partition for 7 days after its last instant|Expired, but not dropped in mode paused: 2 partitions, 3 files; ",
        ),
        (
            &["--keep", "8d"],
            "at keep 8d, paused|Before: at keep 7d, paused|Keeps each partition for 8 days after its last instant|Expired, but not dropped in mode paused: 2 partitions, 3 files; ",
        ),
        (
            &["--keep", "8d", "--mode", "enforce"],
            "at keep 8d, enforce|Before: at keep 8d, paused|Keeps each partition for 8 days after its last instant|The next pass drops 2 partitions, 3 files; ",
        ),
    ] {
        let ran = database.ran(&set(more)).await?;
        let revision = revision(&database).await?;
        let expected = expected.replacen('|', &format!(" (revision {revision})\n"), 1);
        let expected = expected.replace('|', "\n");
        assert_eq!(ran.out, format!("lake events.raw: {expected}{see}"));
    }
    Ok(())
}

/// `90m` is minutes: whoever meant months sees it, and what would be dropped.
#[tokio::test]
async fn the_policy_is_described_beside_what_would_be_dropped() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let raw = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    raw.append(vec![NewFile::of([days_ago(30)]), NewFile::of([days_ago(60)])]).await?;
    for (keep, words, goes) in [
        ("90m", "1 hour 30 minutes", "2 partitions, 2 files"),
        ("36h", "1 day 12 hours", "2 partitions, 2 files"),
        ("5w", "5 weeks", "1 partition, 1 file"),
        ("90d", "90 days", "0 partitions, 0 files"),
    ] {
        let set = ["policy", "set", "lake", "events.raw", "--field", "at", "--keep", keep];
        let ran = database.ran(&set).await?;
        let told: Vec<_> = ran.out.lines().filter(|line| !line.starts_with("Before")).collect();
        let revision = revision(&database).await?;
        assert_eq!(
            told,
            [
                format!("lake events.raw: at keep {keep}, enforce (revision {revision})"),
                format!("Keeps each partition for {words} after its last instant"),
                format!("The next pass drops {goes}; to list them:"),
                "  tailrace plan --catalog lake --table events.raw".to_owned(),
            ]
        );
        assert_eq!(ran.code, 0);
    }
    assert_eq!(raw.live_files().await?.len(), 2, "to say it drops nothing");
    Ok(())
}

/// A policy that is set is set, whether or not it can be told what it drops.
#[tokio::test]
async fn a_policy_is_set_even_if_its_drops_cannot_be_listed() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let raw = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    raw.append(vec![NewFile::of(["1"])]).await?;
    database
        .sql(
            "ALTER TABLE hog_file_partition_value RENAME TO hog_hidden;
             CREATE VIEW hog_file_partition_value AS
               SELECT catalog_id, data_file_id, key_index, (1 / 0)::text AS value FROM hog_hidden",
        )
        .await?;
    let set = ["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "90m"];
    let ran = database.ran(&set).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    let told: Vec<_> = ran.out.lines().skip(1).collect();
    assert_eq!(
        told,
        [
            "Keeps each partition for 1 hour 30 minutes after its last instant",
            "Not known what has expired: the database says: division by zero \
             (SQLSTATE 22012)",
        ]
    );
    assert!(revision(&database).await? > 0);
    Ok(())
}

async fn revision(database: &TestDatabase) -> Result<i64> {
    let got: Value =
        database.policies(&["policy", "get", "lake", "events.raw", "--output", "json"]).await?;
    assert_eq!(got.as_array().map(Vec::len), Some(1));
    Ok(got[0]["revision"].as_i64().unwrap_or_default())
}

/// Even the same words are a new revision, and one that was unset is never used again.
#[tokio::test]
async fn a_revision_is_never_used_twice() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let mut seen = Vec::new();
    for keep in ["7d", "7d", "8d"] {
        database.policy("lake", "events.raw", "day(at)", keep).await?;
        seen.push(revision(&database).await?);
    }
    assert_eq!(database.ran(&["policy", "unset", "lake", "events.raw"]).await?.code, 0);
    database.policy("lake", "events.raw", "day(at)", "8d").await?;
    seen.push(revision(&database).await?);
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
    Ok(())
}

/// A writer of policies has nothing to do with the commit lock: it is not stopped by one who
/// holds it.
#[tokio::test]
async fn policies_are_written_while_somebody_commits() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.set_property("partition_retention", Some(r#"{"field":"at","keep":"9d"}"#)).await?;
    let commit = tailrace_kit::lake::Commit::begin(&catalog).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    let ran = database.ran(&["policy", "unset", "lake", "events.raw", "--yes"]).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    drop(commit);
    Ok(())
}

/// Whoever says the same again, as a job does every few minutes, keeps nobody from seeing that it is not
/// followed: it is in force since it was said first.
#[tokio::test]
async fn what_is_said_again_is_in_force_since_before() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let since = "2026-09-17T05:00:00Z";
    let set = ["policy", "set", "lake", "events.raw", "--field", "day(at)", "--keep"];
    let get = ["policy", "get", "lake", "events.raw", "--output", "json"];
    for (said, is_same) in [
        (&["7d", "--by", "one"][..], true),
        (&["168h", "--by", "two"], true),
        (&["8d"], false),
        (&["7d", "--mode", "observe"], false),
        (&["7d", "--fence"], false),
    ] {
        assert_eq!(database.ran(&[&set[..], &["7d", "--mode", "enforce"]].concat()).await?.code, 0);
        database.sql(&format!("UPDATE tailrace.policy SET updated_at = '{since}'")).await?;
        let ran = database.ran(&[&set[..], said].concat()).await?;
        assert_eq!(ran.code, 0, "{ran:?}");
        let got = database.policies(&get).await?;
        assert_eq!(got[0]["updated_at"] == json!(since), is_same, "{said:?}: {got}");
        database.policies(&["policy", "list", "--output", "json"]).await?;
        assert_eq!(database.ran(&["policy", "unset", "lake", "events.raw"]).await?.code, 0);
    }
    Ok(())
}
