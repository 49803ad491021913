//! Tests of what tailrace remembers across a restore, or of one catalog in another with the same
//! id, and of what it reports.

use anyhow::Result;
use tailrace_kit::lake::{Field, NewFile};
use tailrace_kit::simulated_loops::Cleanup;

use super::Scene;
use crate::support::TestDatabase;
use crate::support::program::days_ago;

/// Somebody vouched for the values of spec 2, of which nobody knew then that a writer might have another
/// spec in its cache: the restore made one such. Marks are taken back for that; trust is not.
#[tokio::test]
async fn trust_ends_with_a_spec_that_a_restore_took_back() -> Result<()> {
    for is_trusted in [false, true] {
        let database = TestDatabase::new().await?;
        let catalog = database.catalog("lake").await?;
        let table = database.table(&catalog, "raw", &[Field::bucket("kind", 100)]).await?;
        table.evolve_spec(&[Field::day("at")]).await?;
        table.append(vec![NewFile::of([days_ago(0)])]).await?;
        database.policy("lake", "events.raw", "day(at)", "7d").await?;
        database.sweep().await?;
        let trust = ["spec", "trust", "lake", "events.raw", "2", "--reason", "checked", "--yes"];
        if is_trusted {
            assert_eq!(database.ran(&trust).await?.code, 0);
        }
        let backup = database.back_up("before").await?;
        table.evolve_spec(&[Field::identity("kind")]).await?;
        table.append(vec![NewFile::of(["18000"])]).await?;
        database.sweep().await?;
        database.restore(&backup).await?;
        // A writer with identity(kind) in its cache stores the kind 18000 of today under the live spec by day.
        let stale = table.append(vec![NewFile::of(["18000"])]).await?.file_ids;
        let report = database.sweep().await?;
        database.sweep().await?;
        let live = crate::support::governed::live_ids(&table).await?;
        assert!(
            live.contains(&stale[0]),
            "trusted: {is_trusted}; rows of today were ended: {report:#?}"
        );
    }
    Ok(())
}

/// A thousand heads after the backup, the older ones are forgotten; a drop from long before is gone, and
/// so it is in the restored catalog.
#[tokio::test]
async fn a_restore_to_a_thousand_heads_ago_undoes_no_older_drop() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0, 3]).await?;
    let (body, first) = scene.request(3).await?;
    let dropped = first.snapshot_id;
    for _ in 0..3 {
        scene.append([0]).await?;
        scene.sweep().await?;
    }
    scene.floor_to(dropped + 1).await?.purge().await?;
    scene.sweep().await?;
    Cleanup::new(&scene.catalog).run(10).await?;
    scene.sweep().await?;
    assert_eq!(scene.stages().await?, [(dropped, "gone", false)]);
    let backup = scene.database.back_up("before").await?;
    // As a thousand passes do that each found a new head.
    scene
        .database
        .sql(
            "INSERT INTO hog_snapshot (catalog_id, snapshot_id, snapshot_time, schema_version, author,
                                       commit_message)
             SELECT catalog_id, last_snapshot_id + n, now() + n * interval '1 ms', schema_version, 'w', 'w'
               FROM hog_catalog, generate_series(1, 1010) AS n;
             UPDATE hog_catalog SET last_snapshot_id = last_snapshot_id + 1010;
             INSERT INTO tailrace.noted_head
             SELECT catalog_id, snapshot_id, snapshot_time, snapshot_time FROM hog_snapshot
             ON CONFLICT DO NOTHING",
        )
        .await?;
    scene.sweep().await?;
    scene.database.restore(&backup).await?;
    scene.sweep().await?;
    assert_eq!(
        (scene.stages().await?, scene.ask(&body).await?.committed),
        // That it was gone is noted anew by the pass after the one that settles this.
        (vec![(dropped, "queued", false)], true)
    );
    Ok(())
}

/// A restore to before a catalog was made; another one gets its id, and has a table of that name.
#[tokio::test]
async fn a_policy_of_a_catalog_is_not_missed_in_one_that_got_its_id() -> Result<()> {
    let database = TestDatabase::new().await?;
    let other = database.catalog("other").await?;
    database.table(&other, "raw", &[Field::day("at")]).await?;
    let backup = database.back_up("before").await?;
    let catalog = database.catalog("lake").await?;
    database.table(&catalog, "raw", &[Field::day("at")]).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    database.sweep().await?;
    database.restore(&backup).await?;
    let sequence = format!(
        "SELECT setval(pg_get_serial_sequence('hog_catalog', 'catalog_id'), {}, false)",
        catalog.catalog_id
    );
    let reset = database.sql(&sequence).await;
    let pond = database.catalog("pond").await?;
    if pond.catalog_id != catalog.catalog_id {
        anyhow::bail!("the id is not given out again: {reset:?}");
    }
    let table = database.table(&pond, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of([days_ago(9)])]).await?;
    let (report, _) = database.json(&["verify", "--output", "json"]).await?;
    let violated =
        |report: &serde_json::Value| report.to_string().contains("which is gone and had");
    assert!(!violated(&report), "verify, before a pass: {report}");
    database.sweep().await?;
    let ran = database.ran(&["sweep"]).await?;
    assert_eq!(
        ran.events("policy_orphaned").len(),
        0,
        "pond.events.raw never had one: {}",
        ran.err
    );
    Ok(())
}

/// The history of a catalog that is gone for history.keep is forgotten, and its receipts are not. A receipt
/// whose drop nobody remembers is of a snapshot, and that is above the head.
#[tokio::test]
async fn a_receipt_of_a_forgotten_drop_is_told_by_its_snapshot() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([3, 0]).await?;
    let (body, _) = scene.request(3).await?;
    scene.sweep().await?;
    // As a pass does when the catalog is away for history.keep.
    scene
        .database
        .while_empty("hog_catalog", async || {
            scene.database.ran(&["sweep"]).await?;
            scene
                .database
                .sql("UPDATE tailrace.clock_memory SET gone_seen_at = gone_seen_at - interval '91 days'")
                .await?;
            scene.database.ran(&["sweep"]).await?;
            Ok(())
        })
        .await?;
    assert_eq!(
        scene.database.text("SELECT count(*) FROM tailrace.drop_history").await?.as_deref(),
        Some("1"),
        "while a receipt names it"
    );
    // What comes back is of before the drop.
    scene
        .database
        .sql(
            "UPDATE hog_data_file SET end_snapshot = NULL;
             DELETE FROM hog_snapshot_change WHERE snapshot_id >= 4;
             DELETE FROM hog_snapshot WHERE snapshot_id >= 4;
             UPDATE hog_catalog SET last_snapshot_id = 3",
        )
        .await?;
    assert_eq!(scene.live().await?.len(), 2);
    let replayed = scene.ask(&body).await?;
    assert!(replayed.undone, "snapshot {} is above the head 3: {replayed:?}", replayed.snapshot_id);
    Ok(())
}

/// A drop of a time at which the database's clock was ahead: drops by request go by no clock. What was
/// learned after it, and after the time to which the catalog is restored, bears earlier stamps.
#[tokio::test]
async fn a_drop_dated_ahead_does_not_keep_what_was_learned_after_it() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0, 3, 4]).await?;
    let (_, first) = scene.request(3).await?;
    let (_, second) = scene.request(4).await?;
    scene
        .database
        .sql(&format!(
            "UPDATE hog_snapshot SET snapshot_time = snapshot_time + interval '30 days'
              WHERE snapshot_id = {0};
             UPDATE tailrace.drop_history SET dropped_at = dropped_at + interval '30 days'
              WHERE snapshot_id = {0}",
            second.snapshot_id
        ))
        .await?;
    scene.append([0]).await?;
    let backup = scene.database.back_up("before").await?;
    scene.append([0]).await?;
    scene.floor_to(first.snapshot_id).await?.purge().await?;
    let ran = scene.database.ran(&["clock", "accept", "lake", "--reason", "ntp", "--yes"]).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    scene.sweep().await?;
    Cleanup::new(&scene.catalog).run(10).await?;
    scene.sweep().await?;
    scene.append([0]).await?;
    scene.sweep().await?;
    let stage = |stages: Vec<(i64, &'static str, bool)>| stages.last().map(|last| last.1);
    assert_eq!(stage(scene.stages().await?), Some("gone"));
    scene.database.restore(&backup).await?;
    let ran = scene.database.ran(&["sweep"]).await?;
    scene.sweep().await?;
    assert_eq!(
        stage(scene.stages().await?),
        Some("retained"),
        "its rows are there: {:?}",
        ran.events("catalog_restored")
    );
    Ok(())
}
