//! Tests of tables that were renamed, dropped or retired, and of catalogs that were recreated or
//! restored.

use anyhow::Result;
use tailrace::trace::state::{Hold, Stage};
use tailrace_kit::lake::{Field, NewFile};
use tailrace_kit::simulated_loops::Cleanup;

use super::{Scene, at};

const FIRST: &str = "2031-01-01T00:00:00Z";

#[tokio::test]
async fn a_renamed_table_is_found_by_either_name() -> Result<()> {
    let scene = Scene::new().await?;
    let dropped = scene.drop(8, 1).await?;
    scene.note(FIRST).await?;
    scene.table.rename("renamed").await?;
    for name in ["raw", "renamed"] {
        let drops = scene.asked(Some(("events", name)), i64::MAX, 10).await?.drops;
        assert_eq!(drops.len(), 1, "{name}");
        assert_eq!(drops[0].snapshot_id, dropped);
        assert_eq!(drops[0].table.as_deref(), Some("events.renamed"));
    }
    let error = scene.asked(Some(("events", "never")), i64::MAX, 10).await.expect_err("no such");
    assert_eq!(
        error.to_string(),
        r#"there is no table events.never in catalog "lake", and no drop of one that was"#
    );
    Ok(())
}

/// A table is dropped and another one takes its name: both have that name, and differ by the UUID.
#[tokio::test]
async fn a_dropped_table_is_told_to_its_end_also_after_it_was_retired() -> Result<()> {
    let mut scene = Scene::new().await?;
    let dropped = scene.drop(8, 2).await?;
    // No pass has looked since the drop: the catalog still knows the name.
    scene.table.drop_table().await?;
    scene.note(FIRST).await?;
    let again = scene.database.table(&scene.catalog, "raw", &[Field::day("at")]).await?;
    assert_ne!(again.table_uuid, scene.table.table_uuid);
    scene.floor_to(dropped).await?;
    scene.expiry.purge().await?;
    scene
        .database
        .sql(&format!("DELETE FROM hog_table WHERE table_id = {}", scene.table.table_id))
        .await?;
    scene.note(FIRST).await?;
    let told = scene.only().await?;
    assert_eq!((told.table.as_deref(), told.stage), (Some("events.raw"), Stage::Queued));
    assert_eq!(told.table_uuid, scene.table.table_uuid);
    Cleanup::new(&scene.catalog).run(10).await?;
    scene.note("2031-01-02T00:00:00Z").await?;
    let all = scene.asked(None, i64::MAX, 10).await?.drops;
    assert_eq!((all.len(), all[0].gone_seen_at), (1, at("2031-01-02T00:00:00Z")));
    Ok(())
}

/// A catalog of the same name is another one; the history of the first says nothing of it, and is
/// purged when that catalog is gone for as long as history is kept.
#[tokio::test]
async fn a_recreated_catalog_has_no_drops() -> Result<()> {
    let scene = Scene::new().await?;
    scene.drop(8, 1).await?;
    scene.database.sql("DELETE FROM hog_catalog").await?;
    scene.database.catalog("lake").await?;
    let report = scene.asked(None, i64::MAX, 10).await?;
    assert_eq!((report.drops.len(), report.not_gone), (0, 0));
    scene.database.sweep().await?;
    let rows = "SELECT count(*) FROM tailrace.drop_history";
    assert_eq!(scene.database.text(rows).await?.as_deref(), Some("1"));
    scene
        .database
        .sql("UPDATE tailrace.drop_history SET dropped_at = dropped_at - interval '90 days 1 s'")
        .await?;
    scene.database.sweep().await?;
    assert_eq!(scene.database.text(rows).await?.as_deref(), Some("1"), "gone since a moment");
    scene
        .database
        .sql(
            "UPDATE tailrace.clock_memory SET gone_seen_at = gone_seen_at - interval '90 days 1 s'",
        )
        .await?;
    scene.database.sweep().await?;
    assert_eq!(scene.database.text(rows).await?.as_deref(), Some("0"));
    Ok(())
}

/// The catalog alone was restored to the time before a drop: its files are live again, and nothing
/// may say that they are gone, though the snapshot's id is used again and the floor passes it.
#[tokio::test]
async fn a_drop_that_a_restore_took_back_is_undone_for_good() -> Result<()> {
    for noted_before_the_id_is_used_again in [true, false] {
        let mut scene = Scene::new().await?;
        let dropped = scene.drop(8, 1).await?;
        scene
            .database
            .sql(&format!(
                "UPDATE hog_data_file SET end_snapshot = NULL WHERE end_snapshot = {dropped};
                 DELETE FROM hog_snapshot WHERE snapshot_id = {dropped};
                 UPDATE hog_catalog SET last_snapshot_id = {dropped} - 1"
            ))
            .await?;
        // A pass is to note it, and not to drop anew.
        scene.database.sql("UPDATE tailrace.policy SET mode = 'paused'").await?;
        let told = scene.only().await?;
        assert_eq!((told.stage, told.held_by), (Stage::Undone, vec![Hold::Pass]));
        if noted_before_the_id_is_used_again {
            scene.note_by_a_pass(FIRST).await?;
        }
        let used = scene.table.append(vec![NewFile::of(["99999"])]).await?.snapshot_id;
        assert_eq!((used, scene.only().await?.stage), (dropped, Stage::Undone));
        scene.note_by_a_pass(FIRST).await?;
        scene.floor_to(dropped).await?;
        scene.note_by_a_pass("2031-01-02T00:00:00Z").await?;
        let report = scene.report().await?;
        assert_eq!((report.drops[0].stage, report.drops[0].files_left), (Stage::Undone, None));
        assert_eq!(report.drops[0].undone_seen_at, at(FIRST));
        assert_eq!((report.not_gone, report.drops[0].gone_seen_at), (0, None));
    }
    Ok(())
}
