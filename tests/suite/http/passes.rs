//! Tests of passes that are started over HTTP.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::Scene;
use crate::support::gate::{Gate, queue};
use crate::support::wait::until;

const PASS: &str = "/v1/catalogs/lake/maintenance/partition-retention";

async fn ended(scene: &Scene, id: &str) -> Result<Value> {
    let mut last = Value::Null;
    until("the pass ends", async || {
        let answer = scene.client.get(&format!("{PASS}/{id}")).await?;
        last = answer.json()?;
        Ok(last["state"] != "running")
    })
    .await?;
    Ok(last)
}

#[tokio::test]
async fn a_pass_is_started_and_asked_about() -> Result<()> {
    let scene = Scene::new().await?;
    scene.database.policy("lake", "events.raw", "at", "7d").await?;
    let other = scene.database.catalog("pond").await?;
    let started = scene.client.send("POST", PASS, b"").await?;
    assert_eq!(started.status, 202, "{started:?}");
    let started = started.json()?;
    assert_eq!((&started["state"], &started["catalog"]), (&json!("running"), &json!("lake")));
    assert_eq!((&started["report"], &started["ended_at"]), (&json!(null), &json!(null)));
    let id = started["id"].as_str().context("an id")?;

    let done = ended(&scene, id).await?;
    assert_eq!(done["state"], "done", "{done}");
    assert_eq!(done["report"]["tables"][0]["outcome"], "dropped");
    assert_eq!(done["report"]["tables"][0]["snapshots"][0]["files_ended"], 2);
    assert_eq!(scene.table.live_files().await?.len(), 1);
    let elsewhere = format!("/v1/catalogs/{}/maintenance/partition-retention/{id}", "pond");
    let unknown = scene.client.get(&elsewhere).await?;
    let expected = format!(
        r#"{{"detail":"no pass {id} over catalog \"pond\" is known","error":"not_found"}}"#
    );
    assert_eq!(unknown.told(), (404, expected.as_str()), "{}", other.catalog_id);
    Ok(())
}

#[tokio::test]
async fn a_second_one_is_refused_while_one_runs() -> Result<()> {
    let scene = Scene::with(&[("TAILRACE__SWEEP__LOCK_TIMEOUT", "60s")]).await?;
    scene.database.policy("lake", "events.raw", "at", "7d").await?;
    let gate = Gate::shut(&scene.catalog).await?;
    let started = scene.client.send("POST", PASS, b"").await?.json()?;
    let id = started["id"].as_str().context("an id")?;
    queue(&scene.catalog, 1).await?;
    let expected = r#"{"detail":"a pass is running","error":"pass_running"}"#;
    assert_eq!(scene.client.send("POST", PASS, b"").await?.told(), (409, expected));
    let running = scene.client.get(&format!("{PASS}/{id}")).await?.json()?;
    assert_eq!(running, started);
    gate.open().await?;
    assert_eq!(ended(&scene, id).await?["report"]["tables"][0]["outcome"], "dropped");
    let again = scene.client.send("POST", PASS, b"").await?;
    assert_eq!(again.status, 202);
    Ok(())
}

/// The schedule's pass and a pass that was asked for are never two at once.
#[tokio::test]
async fn one_is_refused_while_the_schedule_runs_and_awaited_by_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("health.json");
    let mut scene = Scene::with(&[
        ("TAILRACE__SWEEP__LOCK_TIMEOUT", "60s"),
        ("TAILRACE__SCHEDULE__EVERY", "1s"),
        ("TAILRACE__SCHEDULE__JITTER", "0s"),
        ("TAILRACE__HEALTH__FILE", &file.display().to_string()),
    ])
    .await?;
    let gate = Gate::shut(&scene.catalog).await?;
    scene.database.policy("lake", "events.raw", "at", "7d").await?;
    queue(&scene.catalog, 1).await?;
    let expected = r#"{"detail":"a pass is running","error":"pass_running"}"#;
    assert_eq!(scene.client.send("POST", PASS, b"").await?.told(), (409, expected));
    gate.open().await?;

    // Now one that was asked for is first, and stands still in the middle.
    let mut holder = scene.database.connection().await?;
    loop {
        sqlx::raw_sql("begin; lock table hog_snapshot").execute(&mut holder).await?;
        if scene.client.send("POST", PASS, b"").await?.status == 202 {
            break;
        }
        sqlx::raw_sql("rollback").execute(&mut holder).await?;
    }
    // Two heartbeats from now on: one of before may show the schedule's last pass, and between
    // two a pass that does not wait would have come to its end.
    let mut beats = BTreeSet::from([Utc::now()]);
    until("the schedule's next pass is due", async || {
        let beat: Value = serde_json::from_slice(&std::fs::read(&file)?)?;
        let written: DateTime<Utc> = beat["written_at"].as_str().context("a time")?.parse()?;
        if beat["state"] == "pass" && beats.last().is_some_and(|last| written > *last) {
            beats.insert(written);
        }
        Ok(beats.len() == 3)
    })
    .await?;
    let waiting = "SELECT count(*) FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND datname = current_database()";
    assert_eq!(scene.database.text(waiting).await?.as_deref(), Some("1"), "one pass only");
    let finished = scene.daemon.so_far("pass_finished").len();
    sqlx::raw_sql("rollback").execute(&mut holder).await?;
    scene.daemon.event("pass_finished", finished + 2).await?;
    scene.daemon.signal("TERM").await?;
    let Scene { daemon, .. } = scene;
    let ended = daemon.end().await?;
    let passes = ended.events().into_iter().filter(|name| name.starts_with("pass_"));
    let passes: Vec<_> = passes.collect();
    for pair in passes.chunks(2) {
        assert_eq!(pair, ["pass_started", "pass_finished"], "{passes:?}");
    }
    Ok(())
}

/// What a database says is for the log, not for whoever asks.
#[tokio::test]
async fn a_report_tells_no_insides() -> Result<()> {
    let scene = Scene::new().await?;
    scene.database.policy("lake", "events.raw", "at", "7d").await?;
    scene
        .database
        .sql(
            "CREATE FUNCTION hog_hidden() RETURNS bigint LANGUAGE plpgsql AS
               $$ BEGIN RAISE EXCEPTION 'hog_hidden'; END $$;
             ALTER TABLE hog_partition_spec RENAME TO hog_hidden_spec;
             CREATE VIEW hog_partition_spec AS
               SELECT catalog_id, table_id, hog_hidden() AS spec_id, begin_snapshot, end_snapshot
               FROM hog_hidden_spec",
        )
        .await?;
    let started = scene.client.send("POST", PASS, b"").await?.json()?;
    let done = ended(&scene, started["id"].as_str().context("an id")?).await?;
    assert!(!done.to_string().contains("hog_"), "{done}");
    assert!(done.to_string().contains("the server's log says why"), "{done}");
    let plan = scene.client.get(&scene.policy("/plan")).await?;
    let expected = r#"{"detail":"the request could not be carried out; the server's log says why","error":"internal_error"}"#;
    assert_eq!(plan.told(), (500, expected));
    Ok(())
}
