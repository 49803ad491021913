//! Tests with a database that this program must not work on: its ledger of migrations is newer, or
//! it was set up for the catalog in another schema. Every request is answered 503 with the reason,
//! and nothing is written.

use anyhow::Result;
use serde_json::json;
use tailrace_kit::lake::{Catalog, CatalogOptions, Column, Field, Lake, NewFile, Table};

use super::client::Client;
use super::{Scene, TABLE, address};
use crate::drop::races::file;
use crate::support::TestDatabase;

const PASS: &str = "/v1/catalogs/lake/maintenance/partition-retention";
const DROP: &str = r#"{"idempotency_key": "11111111-2222-4333-8444-555555555555", "partitions": [{"partition_values": ["1"]}]}"#;
const DRY_RUN: &str = r#"{"idempotency_key": "11111111-2222-4333-8444-555555555555", "partitions": [{"partition_values": ["1"]}], "dry_run": true}"#;
const POLICY: &str = r#"{"field": "day(at)", "keep": "7d"}"#;

/// Every request that works on a catalog, as (method, path, body).
fn requests() -> Vec<(&'static str, String, &'static str)> {
    let of_table = |rest: &str| format!("{TABLE}{rest}");
    vec![
        ("GET", of_table("/partition-retention"), ""),
        ("PUT", of_table("/partition-retention"), POLICY),
        ("DELETE", of_table("/partition-retention"), ""),
        ("DELETE", of_table("/partition-retention?accept_property=true"), ""),
        ("GET", of_table("/partition-retention/plan"), ""),
        ("GET", of_table("/partition-retention/drops"), ""),
        ("GET", of_table("/changes?from_snapshot=0&ended_files=true"), ""),
        ("GET", of_table("/changes?from_snapshot=0&limit=10"), ""),
        ("POST", of_table("/partitions/drop"), DRY_RUN),
        ("POST", of_table("/partitions/drop"), DROP),
        ("POST", of_table("/truncate"), "{}"),
        ("POST", of_table("/truncate"), ""),
        ("POST", PASS.to_owned(), ""),
        ("POST", format!("{PASS}/verify"), ""),
    ]
}

/// Sends every request; each must be answered alike. The probes tell what they always tell: that
/// the process lives, and that the database answers.
async fn all_are_refused(client: &Client, reason: &str) -> Result<()> {
    let expected = json!({"detail": format!("{reason}; nothing was done"), "error": "unavailable"});
    let expected = expected.to_string();
    for (method, path, body) in requests() {
        let answer = match body {
            "" => client.send(method, &path, b"").await?,
            body => client.json(method, &path, body).await?,
        };
        assert_eq!(answer.told(), (503, expected.as_str()), "{method} {path}");
        assert_eq!(answer.header("retry-after"), Some("1"), "{method} {path}");
    }
    assert_eq!(client.get("/livez").await?.told(), (200, r#"{"status":"ok"}"#));
    assert_eq!(client.get("/healthz").await?.told(), (200, r#"{"status":"ok"}"#));
    assert_eq!(client.get("/metrics").await?.status, 200);
    Ok(())
}

/// Every row of every table of ours.
async fn ours(database: &TestDatabase) -> Result<Vec<Vec<String>>> {
    let tables = "SELECT relname AS name FROM pg_class
        WHERE relnamespace = 'tailrace'::regnamespace AND relkind = 'r' ORDER BY 1";
    let mut all = Vec::new();
    for row in database.rows(tables).await? {
        let row: serde_json::Value = serde_json::from_str(&row)?;
        let name = row["name"].as_str().unwrap_or_default();
        all.push(database.rows(&format!("SELECT * FROM tailrace.{name} t ORDER BY t")).await?);
    }
    Ok(all)
}

const NEWER: &str = "the database's schema tailrace is newer than this program (migration 999): \
                     upgrade tailrace here too";

/// Another replica brings the schema up to date while this one runs.
async fn upgrade(database: &TestDatabase) -> Result<()> {
    let newer = "INSERT INTO tailrace.schema_migration
           (version, description, success, checksum, execution_time)
         VALUES (999, 'the future', true, '\\x00', 1)";
    database.sql(newer).await
}

#[tokio::test]
async fn under_a_newer_ledger_nothing_is_carried_out() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.table.append(vec![NewFile::of(["1"])]).await?;
    scene.database.policy("lake", "events.raw", "day(at)", "30000d").await?;
    upgrade(&scene.database).await?;
    let before = (scene.database.lake.dump().await?, ours(&scene.database).await?);

    all_are_refused(&scene.client, NEWER).await?;

    let failed = scene.daemon.told("request_failed").await?;
    assert_eq!((&failed["code"], &failed["error"]), (&json!("unavailable"), &json!(NEWER)));
    assert!((scene.database.lake.dump().await?, ours(&scene.database).await?) == before);
    // Once the ledger is known again, all goes on.
    scene.database.sql("DELETE FROM tailrace.schema_migration WHERE version = 999").await?;
    let dropped = scene.client.json("POST", &format!("{TABLE}/partitions/drop"), DROP).await?;
    assert_eq!((dropped.status, &dropped.json()?["files_ended"]), (200, &json!(1)));
    Ok(())
}

/// A migration of the same number that is another one: what passes refuse is refused here too.
#[tokio::test]
async fn under_the_ledger_of_another_build_nothing_is_carried_out() -> Result<()> {
    let scene = Scene::new().await?;
    let other = "UPDATE tailrace.schema_migration SET checksum = '\\x00' WHERE version = 2";
    scene.database.sql(other).await?;
    let before = (scene.database.lake.dump().await?, ours(&scene.database).await?);
    let reason = "migration 2 was applied by another build of tailrace and differs from this \
                  one's: use a released version";
    all_are_refused(&scene.client, reason).await?;
    assert!((scene.database.lake.dump().await?, ours(&scene.database).await?) == before);
    Ok(())
}

/// A table `events.raw` by day of a catalog `lake`, with three files.
async fn fill(lake: &Lake) -> Result<(Catalog, Table)> {
    let catalog = lake.catalog("lake", CatalogOptions::default()).await?;
    let namespace = catalog.namespace("events").await?;
    let columns = [Column::new("at", "timestamptz")];
    let table = catalog.create_table(&namespace, "raw", &columns, &[Field::day("at")]).await?;
    table.append(vec![file(9), file(8), NewFile::of(["1"])]).await?;
    Ok((catalog, table))
}

#[tokio::test]
async fn with_another_schema_than_recorded_nothing_is_carried_out() -> Result<()> {
    let database = TestDatabase::in_schema("hog").await?;
    assert_eq!(database.ran(&["migrate"]).await?.code, 0);
    fill(&database.lake).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    // The same names and ids elsewhere, so that it is not for want of them.
    let elsewhere = Lake::install(&database.pool, "public").await?;
    fill(&elsewhere).await?;
    let all = async || {
        anyhow::Ok((database.lake.dump().await?, elsewhere.dump().await?, ours(&database).await?))
    };
    let before = all().await?;

    let mut daemon = database.start(
        &["run"],
        &[("TAILRACE__DATABASE__SCHEMA", "public"), ("TAILRACE__SCHEDULE__EVERY", "1d")],
    )?;
    let client = Client { address: address(&mut daemon).await?, headers: Vec::new() };
    let reason = "tailrace was set up in this database for the catalog in schema \"hog\", and \
                  database.schema says \"public\": set it back, for policies and history belong \
                  to that catalog";
    assert_eq!(daemon.told("pass_failed").await?["error"], reason);
    all_are_refused(&client, reason).await?;
    daemon.event("shield_failed", 1).await?;
    assert!(all().await? == before);
    daemon.signal("TERM").await?;
    assert_eq!(daemon.end().await?.code, Some(0));
    Ok(())
}

/// The daemon's own work: the pass after the upgrade refuses, and so does a renewal of compaction claims.
#[tokio::test]
async fn after_an_upgrade_the_next_pass_refuses() -> Result<()> {
    let mut scene = Scene::with(&[
        ("TAILRACE__SCHEDULE__EVERY", "1s"),
        ("TAILRACE__SCHEDULE__JITTER", "0s"),
        ("TAILRACE__COMPACTION__RENEW_EVERY", "1s"),
    ])
    .await?;
    scene.daemon.event("shield_renewed", 1).await?;
    upgrade(&scene.database).await?;
    // A pass that had begun by then is over, and had nothing to do.
    assert_eq!(scene.daemon.told("pass_failed").await?["error"], NEWER);
    scene
        .database
        .sql(
            "INSERT INTO tailrace.policy (catalog_id, table_id, source, table_uuid, field,
           source_field_id, keep, keep_seconds, mode, revision, updated_by)
         SELECT t.catalog_id, t.table_id, 'stored', t.table_uuid, 'at', 1, '7d', 604800, 'enforce',
           nextval('tailrace.policy_revision'), 'tester' FROM hog_table t",
        )
        .await?;
    assert_eq!(scene.daemon.told("shield_failed").await?["error"], NEWER);
    let started = scene.daemon.so_far("pass_started").len();
    let failed = scene.daemon.so_far("pass_failed").len();
    scene.daemon.event("pass_failed", failed + 2).await?;
    assert_eq!(scene.daemon.so_far("pass_started").len(), started);
    assert_eq!(scene.table.live_files().await?.len(), 3, "all expired ones are there");
    // A pass that is asked for is refused as the schedule's.
    assert_eq!(scene.client.send("POST", PASS, b"").await?.status, 503);
    scene.daemon.signal("TERM").await?;
    let Scene { daemon, .. } = scene;
    assert_eq!(daemon.end().await?.code, Some(0));
    Ok(())
}
