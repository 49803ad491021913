//! Tests of `tailrace explain` and of the same over HTTP.

use anyhow::Result;
use serde_json::{Value, json};
use tailrace::guards::hold::{self, NewHold};
use tailrace::guards::pause::{self, PauseScope};
use tailrace::rules::hold::{HeldPartition, HoldScope};
use tailrace_kit::lake::{Field, NewFile};
use tailrace_kit::simulated_loops::Compaction;

use crate::explicit::{Scene, days, file};
use crate::http::TABLE;
use crate::support::program::{days_ago, proven_18000};

impl Scene {
    /// The explanation of a partition by its one value, as JSON.
    async fn explained(&self, value: Option<&str>) -> Result<Value> {
        let values = json!([value]).to_string();
        let args = ["explain", "lake", "events.raw", "--partition", &values, "--output", "json"];
        self.database.done(&args).await
    }

    async fn govern(&self, rest: &[&str]) -> Result<()> {
        let set = ["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "7d"];
        let ran = self.database.ran(&[&set[..], rest].concat()).await?;
        anyhow::ensure!(ran.code == 0, "{ran:?}");
        Ok(())
    }
}

/// The outlook and what blocks.
fn told(explained: &Value) -> (String, Vec<String>) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let blocks = explained["blocked_by"].as_array().into_iter().flatten();
    (text(&explained["outlook"]), blocks.map(|block| text(&block["by"])).collect())
}

#[tokio::test]
async fn a_partition_that_is_here_is_explained() -> Result<()> {
    let scene = Scene::new().await?;
    let [old, young] = [9, 1].map(days_ago);
    scene.table.append(vec![file(&old), file(&old), file(&young), file("x")]).await?;
    scene.table.append(vec![NewFile::new(vec![None])]).await?;
    assert_eq!(told(&scene.explained(Some(&old)).await?), ("no_policy".to_owned(), vec![]));
    scene.govern(&[]).await?;
    for (value, outlook, blocks) in [
        (Some(old.as_str()), "next_pass", vec![]),
        (Some(young.as_str()), "not_expired", vec![]),
        (Some("1"), "no_files", vec![]),
        (None, "never", vec!["null"]),
        (Some("x"), "never", vec!["malformed"]),
    ] {
        let explained = scene.explained(value).await?;
        assert_eq!(
            told(&explained),
            (outlook.to_owned(), blocks.iter().map(|by| (*by).to_owned()).collect()),
            "{value:?}"
        );
    }
    let explained = scene.explained(Some(&old)).await?;
    for (key, value) in [
        ("catalog", json!("lake")),
        ("table", json!("raw")),
        ("spec_id", json!(1)),
        ("partition_values", json!([old])),
        ("endings", json!([])),
        ("drops", json!([])),
    ] {
        assert_eq!(explained[key], value, "{key}");
    }
    assert_eq!(
        (&explained["live"]["files"], &explained["live"]["records"]),
        (&json!(2), &json!(20))
    );
    assert_eq!(explained["spec"]["fields"], json!(["day(at)"]));
    assert_eq!(explained["spec"]["state"], "live");
    assert_eq!(
        explained["readings"],
        json!([format!("day {}", explained["display"].as_str().unwrap_or_default())])
    );
    let rule = &explained["rule"];
    assert_eq!(
        (&rule["keep"], &rule["mode"], &rule["source"]),
        (&json!("7d"), &json!("enforce"), &json!("stored"))
    );
    // The day 9 days ago ended 8 days ago, at midnight.
    let end: tailrace::rules::instant::UtcInstant =
        explained["range_end"].as_str().unwrap_or_default().parse()?;
    let expires: tailrace::rules::instant::UtcInstant =
        explained["expires_at"].as_str().unwrap_or_default().parse()?;
    assert_eq!(end.plus(std::time::Duration::from_secs(7 * 86_400)), expires);
    assert_eq!(end, tailrace::rules::instant::UtcInstant::from_days(old.parse::<i128>()? + 1));
    Ok(())
}

/// Every block is named, not the first alone.
#[tokio::test]
async fn each_block_is_named() -> Result<()> {
    let scene = Scene::new().await?;
    let old = days_ago(9);
    scene.table.append(vec![file(&old)]).await?;
    scene.govern(&["--mode", "observe"]).await?;
    assert_eq!(
        told(&scene.explained(Some(&old)).await?),
        ("blocked".to_owned(), vec!["mode".to_owned()])
    );
    let mut session = scene.session().await?;
    let live = scene.database.live(&scene.table).await?.identity;
    let partition = HeldPartition { spec_id: 1, values: vec![Some(old.clone())] };
    let new = NewHold {
        scope: HoldScope::Partitions(vec![partition]),
        column: None,
        reason: "case 7",
        by: "anna",
        until: None,
    };
    hold::add(&mut session, &live, new).await?;
    pause::pause(&mut session, PauseScope::All, "ben", "audit").await?;
    let explained = scene.explained(Some(&old)).await?;
    let expected = ["pause", "hold"].map(str::to_owned).to_vec();
    assert_eq!(told(&explained), ("blocked".to_owned(), expected));
    let what = explained["blocked_by"][1]["what"].as_str().unwrap_or_default();
    assert!(what.contains("by anna since") && what.ends_with(": case 7"), "{what}");
    let values = format!("[\"{old}\"]");
    let args = ["explain", "lake", "events.raw", "--partition", &values];
    let text = scene.database.ran(&args).await?;
    assert_eq!(text.code, 0, "{text:?}");
    for part in [
        "  spec         day(at); live\n",
        "  live         1 file, 100 B\n",
        "  outlook      it has expired, and is kept\n",
        "  blocked by   pause: every catalog is paused by ben since ",
        "  blocked by   hold: hold 1 by anna since ",
    ] {
        assert!(text.out.contains(part), "{part} {text:?}");
    }
    Ok(())
}

/// Newer rows by column statistics, and a value that may be of another field.
#[tokio::test]
async fn what_evidence_keeps_says_why() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![proven_18000("at")]).await?;
    scene.govern(&[]).await?;
    let explained = scene.explained(Some("18000")).await?;
    let newer = told(&explained);
    assert_eq!(newer.0, "next_pass", "{explained}");
    let other = Scene::of(&[Field::identity("kind")]).await?;
    other.table.evolve_spec(&[Field::day("at")]).await?;
    other.table.append(vec![file("18000")]).await?;
    other.govern(&[]).await?;
    let explained = other.explained(Some("18000")).await?;
    assert_eq!(told(&explained), ("blocked".to_owned(), vec!["ambiguous_spec".to_owned()]));
    assert_eq!(explained["readings"].as_array().map(Vec::len), Some(2), "{explained}");
    Ok(())
}

#[tokio::test]
async fn what_ended_a_partition_is_shown() -> Result<()> {
    let scene = Scene::new().await?;
    let [older, old, young] = [10, 9, 1].map(days_ago);
    scene
        .table
        .append(vec![file(&older), file(&old), file(&old), file(&young), file(&young)])
        .await?;
    scene.govern(&[]).await?;
    Compaction::new(&scene.catalog, 1000).run(&scene.table).await?;
    let explained = scene.explained(Some(&young)).await?;
    let ending = &explained["endings"][0];
    assert_eq!((&ending["kind"], &ending["files"]), (&json!("compaction"), &json!(2)));
    assert_eq!(
        (told(&explained).0.as_str(), &explained["live"]["files"]),
        ("not_expired", &json!(1))
    );
    let by_hand = scene.done(&days([older.as_str()])).await?;
    scene.database.sweep().await?;
    let explained = scene.explained(Some(&old)).await?;
    assert_eq!(told(&explained).0, "no_files");
    let ending = &explained["endings"][0];
    assert_eq!((&ending["author"], &ending["kind"]), (&json!("tailrace"), &json!("drop")));
    assert!(
        ending["message"].as_str().unwrap_or_default().starts_with("partition retention: "),
        "{ending}"
    );
    let drop = &explained["drops"][0];
    assert_eq!(
        (&drop["stage"], &drop["snapshot_id"]),
        (&json!("retained"), &ending["snapshot_id"])
    );
    assert!(drop["policy_revision"].is_number());
    let explained = scene.explained(Some(&older)).await?;
    let ending = &explained["endings"][0];
    assert_eq!(
        (&ending["author"], &ending["snapshot_id"]),
        (&json!("me"), &json!(by_hand.snapshot_id))
    );
    assert_eq!(explained["drops"][0]["policy_revision"], json!(null));
    let args = ["explain", "lake", "events.raw", "--partition", &format!("[\"{older}\"]")];
    let text = scene.database.ran(&args).await?.out;
    assert!(text.contains(&format!("1 file in snapshot {} at ", by_hand.snapshot_id)), "{text}");
    assert!(text.contains("drops of tailrace that ended files of it"), "{text}");
    Ok(())
}

#[tokio::test]
async fn what_is_no_partition_is_refused() -> Result<()> {
    let scene = Scene::new().await?;
    for (partition, code, says) in [
        ("[\"1\", \"2\"]", 2, "has 2 values, and spec 1 has 1 keys"),
        (
            "{\"partition_values\": [\"1\"], \"spec_id\": 7}",
            2,
            "names spec 7, which the table does not have",
        ),
        ("month=2026-09", 2, "names no partition field"),
    ] {
        let ran = scene
            .database
            .ran(&["explain", "lake", "events.raw", "--partition", partition])
            .await?;
        assert_eq!(ran.code, code, "{partition} {ran:?}");
        assert!(ran.err.contains(says), "{partition} {ran:?}");
    }
    let ran =
        scene.database.ran(&["explain", "lake", "events.calm", "--partition", "[\"1\"]"]).await?;
    assert_eq!(ran.code, 1, "{ran:?}");
    Ok(())
}

#[tokio::test]
async fn the_same_is_answered_over_http() -> Result<()> {
    let scene = crate::http::Scene::new().await?;
    let day = days_ago(9);
    let path = format!("{TABLE}/partitions/explain?partition_values=%5B%22{day}%22%5D");
    let answer = scene.client.get(&path).await?;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = answer.json()?;
    assert_eq!((&answer["outlook"], &answer["live"]["files"]), (&json!("no_policy"), &json!(1)));
    for (query, status) in [
        ("?partition_values=x", 400),
        ("?partition_values=%5B%5D", 422),
        ("?partition_values=%5B%221%22%5D&spec_id=9", 422),
        ("", 400),
    ] {
        let answer = scene.client.get(&format!("{TABLE}/partitions/explain{query}")).await?;
        assert_eq!(answer.status, status, "{query} {answer:?}");
    }
    Ok(())
}
