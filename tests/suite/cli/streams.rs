//! Tests that results are on stdout, that the log is on stderr, and that nothing else is on either.

use anyhow::Result;
use tailrace_kit::lake::{Field, NewFile};

use crate::support::TestDatabase;

#[tokio::test]
async fn json_is_one_line_on_stdout_and_the_log_is_on_stderr() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let text = r#"{"field":"at","keep":"7d"}"#;
    table.set_property("partition_retention", Some(text)).await?;
    table.append(vec![NewFile::of(["18000"]), NewFile::new(vec![None])]).await?;
    let loud = [("TAILRACE__LOG__COMMAND_FILTER", "trace")];
    for args in [
        vec!["plan", "--output", "json"],
        vec!["sweep", "--output", "json"],
        vec!["policy", "list", "--output", "json"],
        vec!["policy", "get", "lake", "events.raw", "--output", "json"],
    ] {
        let ran = database.ran_with(&args, &loud).await?;
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.out.ends_with('\n') && ran.out.lines().count() == 1, "{ran:?}");
        serde_json::from_str::<serde_json::Value>(&ran.out)?;
        assert!(args[0] != "sweep" || !ran.err.is_empty());
        for line in ran.err.lines() {
            let line: serde_json::Value = serde_json::from_str(line)?;
            assert!(line["level"].is_string() && line["timestamp"].is_string(), "{line}");
        }
    }
    Ok(())
}

/// At the default level every line that a pass tells is an event with a name.
#[tokio::test]
async fn every_line_of_a_passes_log_has_an_event() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["18000"]), NewFile::new(vec![None])]).await?;
    let set = ["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "7d"];
    let mut seen = Vec::new();
    for args in [&set[..], &["sweep"], &["policy", "unset", "lake", "events.raw"], &["sweep"]] {
        let ran = database.ran(args).await?;
        assert_eq!(ran.code, 0, "{ran:?}");
        for line in ran.err.lines() {
            let line: serde_json::Value = serde_json::from_str(line)?;
            seen.push(line["event"].as_str().unwrap_or("(none)").to_owned());
        }
    }
    assert_eq!(
        seen,
        [
            "policy_set",
            "table_has_work",
            "pass_started",
            "drop_committed",
            "kept_undatable",
            "table_finished",
            "pass_finished",
            "policy_unset",
            "pass_started",
            "pass_finished",
        ]
    );
    Ok(())
}

#[tokio::test]
async fn text_is_for_people() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let files = (0..1_200).map(|_| NewFile::of(["18000"]).records(1_000).bytes(1 << 20));
    table.append(files.chain([NewFile::of(["18008"]), NewFile::of(["x"])]).collect()).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    let plan = database.ran(&["plan", "--at", "2019-04-23T00:00:00Z"]).await?;
    assert_eq!((plan.code, plan.err.as_str()), (0, ""));
    let lines: Vec<String> = plan
        .out
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect();
    assert_eq!(
        lines,
        [
            "As of 2019-04-23T00:00:00Z",
            "lake events.raw: day(at) keep 7d, enforce (stored policy)",
            "cutoff 2019-04-16T00:00:00Z: what ended by then has expired",
            "expired 1 partition: 1,200 files, 0 vectors, 1,200,000 records, 1.17 GiB",
            "2019-04-14 ended 2019-04-15T00:00:00Z 1,200 files 1.17 GiB",
            "kept 2 files",
            "not_expired 1 file",
            "malformed 1 file",
            "spec 1, [\"x\"]: 1 file",
            "next expiry 2019-04-30T00:00:00Z",
        ]
    );
    let swept = database.ran(&["sweep"]).await?;
    let line = swept.out.lines().nth(1).unwrap_or_default();
    assert_eq!(line, "lake events.raw: dropped");
    let nothing = TestDatabase::new().await?;
    let plan = nothing.ran(&["plan"]).await?;
    assert!(plan.out.ends_with("No table has a policy: see `tailrace policy set --help`\n"));
    Ok(())
}
