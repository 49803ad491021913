//! Tests of what is not taken for a restore, and of what a restore leaves unchanged.

use std::time::Duration;

use anyhow::Result;
use tailrace_kit::simulated_loops::Cleanup;

use super::Scene;

const HEADS: &str = "SELECT string_agg(snapshot_id::text, ' ' ORDER BY snapshot_id)
                       FROM tailrace.noted_head";

/// The daemon was away for longer than snapshots are kept: the floor has passed all that it noted.
#[tokio::test]
async fn expiry_is_no_restore() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([9]).await?;
    let dropped = scene.dropping(1).await?;
    scene.append([0]).await?;
    scene.sweep().await?;
    let noted = scene.catalog.head().await?;
    for floor in [dropped, noted, noted + 3] {
        while scene.catalog.head().await? < floor {
            scene.append([0]).await?;
        }
        scene.floor_to(floor).await?.purge().await?;
        assert!(scene.stages().await?.iter().all(|(_, stage, _)| *stage == "queued"));
        let ran = scene.database.ran(&["sweep"]).await?;
        assert_eq!((ran.code, ran.events("catalog_restored").len()), (0, 0), "{ran:?}");
    }
    Cleanup::new(&scene.catalog).run(10).await?;
    scene.sweep().await?;
    assert_eq!(scene.stages().await?, [(dropped, "gone", false)]);
    Ok(())
}

/// Nothing was committed since the head that a pass noted.
#[tokio::test]
async fn a_restore_to_a_noted_head_takes_nothing_back() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([9, 0]).await?;
    let dropped = scene.dropping(1).await?;
    scene.sweep().await?;
    let memory = "SELECT to_jsonb(c) FROM tailrace.table_state c";
    let before = scene.database.text(memory).await?;
    assert!(before.is_some());
    let backup = scene.database.back_up("before").await?;
    scene.database.restore(&backup).await?;
    let ran = scene.database.ran(&["sweep"]).await?;
    assert_eq!((ran.code, ran.events("catalog_restored").len()), (0, 0), "{ran:?}");
    assert_eq!(scene.stages().await?, [(dropped, "retained", false)]);
    Ok(())
}

/// One head for each pass that found a new one, the newest that it looked at.
#[tokio::test]
async fn heads_are_noted_once_and_thinned() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0]).await?;
    let first = scene.catalog.head().await?;
    for _ in 0..3 {
        scene.sweep().await?;
    }
    assert_eq!(scene.database.text(HEADS).await?, Some(first.to_string()));
    scene.append([9]).await?;
    let dropped = scene.dropping(1).await?;
    assert_eq!(scene.database.text(HEADS).await?, Some(format!("{first} {}", dropped - 1)));
    scene.sweep().await?;
    scene
        .database
        .sql(&format!(
            "INSERT INTO tailrace.noted_head
             SELECT catalog_id, snapshot_id - {first}, snapshot_time, noted_at - interval '1 day'
               FROM tailrace.noted_head WHERE snapshot_id = {first};
             INSERT INTO tailrace.noted_head
             SELECT catalog_id, snapshot_id, now(), now() FROM hog_catalog, generate_series(-1100, -1) AS snapshot_id;
             UPDATE hog_catalog SET earliest_snapshot_id = {first}"
        ))
        .await?;
    scene.append([0]).await?;
    scene.sweep().await?;
    let count = scene.database.text("SELECT count(*) FROM tailrace.noted_head").await?;
    let kept = scene.database.text("SELECT min(snapshot_id) FROM tailrace.noted_head").await?;
    // The many are of one moment, and of one pass so.
    assert_eq!((count.as_deref(), kept.as_deref()), (Some("6"), Some("-1")));
    Ok(())
}

/// Those of a catalog go when it is gone for `history.keep`, like its drops.
#[tokio::test]
async fn heads_of_a_catalog_that_is_gone_go_like_its_drops() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0]).await?;
    scene.sweep().await?;
    scene
        .database
        .sql(
            "INSERT INTO tailrace.noted_head VALUES
                (4711, 1, now(), now() - interval '1 year'), (4712, 2, now(), now());
             INSERT INTO tailrace.clock_memory (catalog_id, gone_seen_at) VALUES
                (4711, now() - interval '89 days'), (4712, now() - interval '90 days 1 s')",
        )
        .await?;
    scene.sweep().await?;
    let left = "SELECT string_agg(snapshot_id::text, ' ') FROM tailrace.noted_head
                 WHERE catalog_id > 4710";
    assert_eq!(scene.database.text(left).await?.as_deref(), Some("1"));
    let settings = crate::support::program::settings();
    assert_eq!(settings.history_keep, Duration::from_secs(90 * 86_400));
    Ok(())
}
