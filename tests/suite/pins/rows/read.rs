//! Tests that the program reads the pinned rows, and continues with them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::Settings;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::Table;

use super::pass::{one_commit, pass, refuse, small_pieces};
use super::pinned;
use super::written::{DROPS, named, path};
use crate::http::address;
use crate::http::client::Client;
use crate::pins::golden;
use crate::support::TestDatabase;
use crate::support::governed::live_ids;
use crate::support::program::settings;

/// So many minutes after the last pass that wrote them.
async fn later(database: &TestDatabase, minutes: u64) -> Result<UtcInstant> {
    let last =
        "SELECT to_char(max(accepted_now) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')
                FROM tailrace.clock_memory";
    let last: UtcInstant = database.text(last).await?.context("a pass")?.parse()?;
    Ok(last.plus(Duration::from_secs(60 * minutes)))
}

async fn table(database: &TestDatabase, name: &str) -> Result<Table> {
    let catalog = database.lake.open_catalog("lake").await?;
    Ok(catalog.open_table("events", name).await?)
}

/// What is remembered of a table that waits: (tuple, reason, since).
async fn remembered(database: &TestDatabase, name: &str) -> Result<Vec<Value>> {
    let of = format!("table_uuid = '{}'", table(database, name).await?.table_uuid);
    let waiting = crate::sweep::waiting::remembered(database, &of).await?;
    let known =
        waiting.iter().map(|one| json!([one["tuple"]["values"], one["reason"], one["since"]]));
    Ok(known.collect())
}

/// Cursors of before the calendar are not read: the first pass over each table is a full one, and counts all.
#[tokio::test]
async fn the_first_pass_over_each_table_is_a_full_one() -> Result<()> {
    let database = pinned().await?;
    let as_of = Some(later(&database, 5).await?);
    let report = pass(&database, "raw", &Settings { as_of, ..settings() }, None).await?;
    assert_eq!((report.outcome, report.full), (Outcome::NothingToDo, Some(true)));
    let report = pass(&database, "read", &Settings { as_of, ..small_pieces() }, None).await?;
    let counted = report.counted.map(|counted| counted.undatable_files);
    assert_eq!((report.full, counted), (Some(true), Some(4)), "{report:?}");
    Ok(())
}

#[tokio::test]
async fn what_waits_is_known() -> Result<()> {
    let database = pinned().await?;
    let before = remembered(&database, "refused").await?;
    assert_eq!(before.len(), 1, "{before:?}");
    // By now nothing refuses it, and the first pass after the upgrade is a full one, which heeds no pause.
    let at = async |minutes| -> Result<Settings> {
        Ok(Settings { as_of: Some(later(&database, minutes).await?), ..settings() })
    };
    let report = pass(&database, "refused", &at(5).await?, None).await?;
    assert_eq!((report.outcome, report.snapshots.len()), (Outcome::Dropped, 1));

    // What was refused together is refused once more, and is not what the next pass begins with.
    let halved = table(&database, "halved").await?;
    let live = live_ids(&halved).await?;
    refuse(&database, live[0]).await?;
    for (minutes, snapshots) in [(5, 0), (6, 1)] {
        let one_commit = Settings { as_of: at(minutes).await?.as_of, ..one_commit() };
        let report = pass(&database, "halved", &one_commit, None).await?;
        assert_eq!((report.outcome, report.snapshots.len()), (Outcome::Partial, snapshots));
    }
    assert_eq!(live_ids(&halved).await?, [&live[..2], &live[4..]].concat());

    // What is kept by its evidence or for its size stays, and since when.
    let mut skipping = at(5).await?;
    (skipping.batch.files_per_commit, skipping.batch.files_per_tuple) = (2, 2);
    skipping.batch.split_oversize = false;
    for name in ["doubt", "large"] {
        let before = remembered(&database, name).await?;
        assert!(!before.is_empty());
        assert_eq!(pass(&database, name, &skipping, None).await?.snapshots, []);
        assert_eq!(remembered(&database, name).await?, before);
    }
    Ok(())
}

/// A retry meets the receipt of the first request, whose text is hashed as it was then.
#[tokio::test]
async fn receipts_are_replayed() -> Result<()> {
    let database = pinned().await?;
    // As if the first request had been a moment ago.
    database.sql("UPDATE tailrace.drop_receipt SET created_at = clock_timestamp()").await?;
    let receipts = "SELECT idempotency_key, snapshot_id, schema_version, committed, files_ended,
        delete_files_ended, records, bytes FROM tailrace.drop_receipt ORDER BY 1";
    let before = database.rows(receipts).await?;
    let mut daemon = database.start(&["run"], &[("TAILRACE__SCHEDULE__EVERY", "1d")])?;
    let client = Client { address: address(&mut daemon).await?, headers: Vec::new() };
    let catalog = database.lake.open_catalog("lake").await?;
    for ((of, body), receipt) in DROPS.into_iter().zip(&before) {
        // Truncates named no UUID when these receipts were written; now they have to.
        let mut answer = client.json("POST", &path(of), body).await?;
        if answer.status != 200 && of.ends_with("truncate") {
            answer = client.json("POST", &named(&catalog, of).await?, body).await?;
        }
        assert_eq!(answer.status, 200, "{of}: {answer:?}");
        let (answer, receipt): (_, Value) = (answer.json()?, serde_json::from_str(receipt)?);
        for field in ["snapshot_id", "schema_version"] {
            assert_eq!(answer[field], receipt[field], "{of}: {answer}");
        }
        if of.ends_with("drop") {
            assert_eq!(answer["replayed"], true, "{answer}");
            for field in ["committed", "files_ended", "delete_files_ended", "records", "bytes"] {
                assert_eq!(answer[field], receipt[field], "{field} of {answer}");
            }
            let ended = answer["partitions"].as_array().context("a list")?.iter();
            let ended: i64 = ended.filter_map(|one| one["files_ended"].as_i64()).sum();
            assert_eq!(answer["files_ended"], ended, "{answer}");
        }
        let other = body.replacen(['x', '7'], "8", 1).replace("3\"}", "3\", \"read_snapshot\": 9}");
        if other != body {
            let refused = client.json("POST", &path(of), &other).await?;
            assert_eq!((refused.status, &refused.json()?["error"]), (422, &json!("validation")));
        }
    }
    assert_eq!(database.rows(receipts).await?, before);
    daemon.signal("TERM").await?;
    ensure!(daemon.end().await?.code == Some(0));
    Ok(())
}

/// What the commands show of them, which no pass has touched since.
#[tokio::test]
async fn commands_report_them() -> Result<()> {
    let database = pinned().await?;
    let policies = database.policies(&["policy", "list", "--all", "--output", "json"]).await?;
    let specs =
        database.done(&["spec", "list", "lake", "events.tenants", "--output", "json"]).await?;
    let mut drops = Vec::new();
    for catalog in ["lake", "sea"] {
        let trace = database.done(&["trace", catalog, "--all", "--output", "json"]).await?;
        for mut drop in trace["catalogs"][0]["drops"].as_array().context("drops")?.clone() {
            // What holds it back is a matter of the present.
            drop["held_by"].take();
            drops.push(drop);
        }
    }
    let at = later(&database, 5).await?.to_string();
    let args = ["plan", "--at", &at, "--catalog", "lake", "--output", "json"];
    let plan = database.done(&args).await?;
    let waiting = plan["tables"].as_array().context("tables")?.iter();
    let waiting: Vec<_> = waiting.flat_map(|table| table["waiting"].as_array().cloned()).collect();
    let told = json!({"policies": policies, "specs": specs, "drops": drops, "waiting": waiting});
    golden::holds("rows-told.json", &(serde_json::to_string_pretty(&told)? + "\n"));
    Ok(())
}

/// After a pass of the real present that the invariants hold, and a clock that is refused stays so.
#[tokio::test]
async fn a_pass_of_today_leaves_all_well() -> Result<()> {
    let database = pinned().await?;
    let unset = database.ran(&["policy", "unset", "lake", "events.anew"]).await?;
    assert_eq!(unset.code, 0, "{unset:?}");
    // Somebody asks for it, so it heeds no pause.
    let swept = database.ran(&["sweep", "--output", "json"]).await?;
    assert_eq!(swept.code, 3, "{swept:?}");
    let report: Value = serde_json::from_str(&swept.out)?;
    let tables = report["tables"].as_array().context("tables")?;
    let bad = |table: &&Value| {
        !matches!(table["outcome"].as_str(), Some("dropped" | "nothing_to_do" | "observed"))
    };
    let bad: Vec<_> =
        tables.iter().filter(bad).map(|table| [&table["table"], &table["outcome"]]).collect();
    assert_eq!(json!(bad), json!([["broken", "clock_skew"]]));
    assert_eq!(swept.events("catalog_restored").len(), 0, "{swept:?}");
    let verified = database.ran(&["verify", "--catalog", "lake"]).await?;
    assert_eq!(verified.code, 0, "{verified:?}");
    Ok(())
}
