//! Tests that undatable files are kept, counted by kind, and shown by samples.

use anyhow::Result;
use serde_json::{Value, json};
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Column, Field, NewFile};

use crate::support::TestDatabase;
use crate::support::governed::{expired, kept, live_values, outcomes, values};
use crate::support::program::proven_18000;

#[tokio::test]
async fn only_the_canonical_decimal_counts() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let malformed = [
        "__HIVE_DEFAULT_PARTITION__",
        "",
        " 18000",
        "18000 ",
        "+18000",
        "018000",
        "-0",
        "1e3",
        "18000.0",
        "0x10",
        "--1",
        "-",
        "1_8",
        "1,8",
        "null",
        "NULL",
        "2019-04-14",
        "\u{661}8000",
        "18000\n",
        "18000\u{0}a",
    ];
    let malformed = malformed.into_iter().filter(|text| !text.contains('\u{0}'));
    let out_of_range =
        ["9223372036854775807", "99999999999999999999999", "-9223372036854775808", "106751992"];
    let mut files: Vec<_> = malformed.clone().map(|text| NewFile::of([text])).collect();
    let count = files.len() as i64;
    files.extend(out_of_range.map(|text| NewFile::of([text])));
    files.extend([NewFile::new(vec![None]), NewFile::new(vec![None])]);
    table.append(files).await?;
    table.append(vec![NewFile::of(["18000"]), NewFile::of(["99999"])]).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;

    let plan = database.plan_one("2026-09-25T00:00:00Z").await?;
    assert_eq!(expired(&plan), [(1, values(["18000"]), 1)]);
    // 106751992 is a day that a timestamptz cannot hold; 99999 is in 2243.
    let expected = [("future", 1), ("null", 2), ("malformed", count), ("out_of_range", 4)];
    assert_eq!(kept(&plan), expected);
    let before = live_values(&table).await?;
    assert_eq!(database.sweep_one().await?.counts().files, 1);
    let after = live_values(&table).await?;
    let expected: Vec<_> = before.into_iter().filter(|v| *v != values(["18000"])).collect();
    assert_eq!(after, expected);
    Ok(())
}

#[tokio::test]
async fn identity_texts_have_one_way_to_be_written_too() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    for (col_type, good, bad) in [
        ("date", "2019-04-14", ["18000", "2019-4-14", "2019-02-29", "2019-04-14T00:00:00"]),
        (
            "timestamp",
            "2019-04-14T00:00:00",
            ["2019-04-14", "2019-04-14 00:00:00", "2019-04-14T00:00:00Z", "2019-04-14T24:00:00"],
        ),
        (
            "timestamptz",
            "2019-04-14T00:00:00+00:00",
            [
                "2019-04-14T00:00:00",
                "2019-04-14T00:00+00:00",
                "1555200000",
                "2019-04-14T00:00:00 UTC",
            ],
        ),
        (
            "timestamp_ns",
            "1555200000000000000",
            ["2019-04-14T00:00:00", "01555200000000000000", "1.5e18", ""],
        ),
    ] {
        let columns = [Column::new("at", col_type)];
        let table =
            database.table_of(&catalog, col_type, &columns, &[Field::identity("at")]).await?;
        table.append(bad.iter().chain([&good]).map(|text| NewFile::of([*text])).collect()).await?;
        database.govern(&table, "at", "7d").await?;
        let plan = database.plan(col_type, "2026-09-25T00:00:00Z").await?;
        assert_eq!(expired(&plan), [(1, values([good]), 1)], "{col_type}");
        assert_eq!(kept(&plan), [("malformed", 4)], "{col_type}");
    }
    Ok(())
}

/// Every kind in the JSON of a plan, with its count and no more than five samples.
#[tokio::test]
async fn each_kind_is_counted_and_shown_by_up_to_five_samples() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[]).await?;
    table.append(vec![NewFile::new(vec![]), NewFile::new(vec![])]).await?;
    table.evolve_spec(&[Field::identity("kind")]).await?;
    table.append((0..7).map(|kind| NewFile::of([kind.to_string()])).collect()).await?;
    table.evolve_spec(&[Field::day("at")]).await?;
    let mut files = Vec::new();
    for n in 0..7 {
        files.push(NewFile::of([format!("m{n}")]));
        files.push(NewFile::of([(99_000 + n).to_string()]));
        files.push(NewFile::of([format!("9999999999999{n}")]));
        files.push(NewFile::new(vec![None]));
        files.push(NewFile::of(["18000"]).missing(0));
        files.push(NewFile::of(["18000"]).spec(77));
    }
    table.append(files).await?;
    table.append(vec![proven_18000("at")]).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;

    let at = "2019-04-21T12:00:00Z";
    let plan = database.plan_json(at).await?;
    assert_eq!(
        plan["kept"],
        json!({"not_expired": 1, "future": 7, "null": 7, "malformed": 7, "out_of_range": 7,
               "incomplete": 7, "unknown_spec": 7, "uncovered": 9})
    );
    assert_eq!(plan["kept_files"], 52);
    assert_eq!(plan["uncovered_files"], 9);
    assert_eq!(plan["next_expiry"], "2019-04-22T00:00:00Z");
    let samples = |list: &Value, reason: &str| -> Vec<Value> {
        let list = list.as_array().into_iter().flatten();
        list.filter(|sample| sample["reason"] == reason).cloned().collect()
    };
    for (reason, count) in
        [("null", 1), ("malformed", 5), ("out_of_range", 5), ("incomplete", 1), ("unknown_spec", 1)]
    {
        assert_eq!(samples(&plan["undatable"], reason).len(), count, "{reason}");
    }
    assert_eq!(plan["undatable"].as_array().map(Vec::len), Some(13));
    assert_eq!(samples(&plan["future"], "future").len(), 5);
    assert_eq!(samples(&plan["uncovered"], "uncovered").len(), 5);
    assert_eq!(
        samples(&plan["undatable"], "null"),
        [json!({"spec_id": 3 - 1, "partition_values": [null], "display": "null",
                "reason": "null", "files": 7})]
    );
    // The same in the log of a pass and in the text of a plan.
    let text = database.ran(&["plan", "--at", at]).await?.out;
    for line in ["not_expired     1 file", "malformed       7 files", "uncovered       9 files"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let told = database.ran(&["sweep"]).await?.events("kept_undatable");
    let told: Vec<(String, i64, usize)> = told
        .iter()
        .filter_map(|line| {
            let samples: Vec<Value> = serde_json::from_str(line["samples"].as_str()?).ok()?;
            Some((line["reason"].as_str()?.to_owned(), line["files"].as_i64()?, samples.len()))
        })
        .collect();
    let expected = [
        ("future", 7, 5),
        ("null", 7, 1),
        ("malformed", 7, 5),
        ("out_of_range", 7, 5),
        ("incomplete", 7, 1),
        ("unknown_spec", 7, 1),
        ("uncovered", 9, 5),
    ];
    assert_eq!(told, expected.map(|(reason, files, samples)| (reason.into(), files, samples)));
    Ok(())
}

#[tokio::test]
async fn a_policy_that_dates_nothing_is_unhealthy_if_files_are_there() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    for (name, files) in [
        ("empty", vec![]),
        ("nulls", vec![NewFile::new(vec![None]), NewFile::of(["x"])]),
        ("one_good", vec![NewFile::new(vec![None]), NewFile::of(["99999"])]),
    ] {
        let table = database.table(&catalog, name, &[Field::day("at")]).await?;
        if !files.is_empty() {
            table.append(files).await?;
        }
        database.govern(&table, "day(at)", "7d").await?;
    }
    let report = database.sweep().await?;
    let expected = [
        ("empty", Outcome::NothingToDo),
        ("nulls", Outcome::Unhealthy),
        ("one_good", Outcome::NothingToDo),
    ];
    assert_eq!(outcomes(&report), expected);
    assert_eq!(
        report.tables[1].error.as_deref(),
        Some(
            "the policy's field day(at) dates none of the table's live files: see `tailrace plan`"
        )
    );
    for command in ["plan", "sweep"] {
        let ran = database.ran(&[command, "--output", "json"]).await?;
        assert_eq!(ran.code, 3, "{ran:?}");
    }
    let ran = database.ran(&["plan", "--table", "events.empty"]).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    // A policy that observes logs it too.
    database.sql("UPDATE tailrace.policy SET mode = 'observe'").await?;
    assert_eq!(database.ran(&["sweep", "--table", "events.nulls"]).await?.code, 3);
    Ok(())
}
