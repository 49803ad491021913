//! Tests of a pass or a renewal while one of the server's tables is empty for a moment, as during a
//! restore that is not a single transaction.

use anyhow::Result;
use tailrace::claims::renew;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile};

use super::Scene;
use crate::support::program::days_ago;

/// The head's own snapshot is not there either, which no catalog that is whole can say.
#[tokio::test]
async fn no_drop_is_undone_because_hog_snapshot_is_empty_for_a_moment() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([9, 3, 0]).await?;
    let (body, first) = scene.request(3).await?;
    scene.sweep().await?;
    let before = scene.stages().await?;
    assert_eq!(before.len(), 2);
    scene
        .database
        .while_empty("hog_snapshot", async || {
            scene.database.ran(&["sweep"]).await?;
            Ok(())
        })
        .await?;
    scene.sweep().await?;
    assert_eq!(scene.stages().await?, before);
    let replayed = scene.ask(&body).await?;
    assert_eq!(
        (replayed.snapshot_id, replayed.committed, replayed.undone),
        (first.snapshot_id, true, false)
    );
    Ok(())
}

/// The specs are there, and their fields are not yet.
#[tokio::test]
async fn no_spec_is_disputed_because_a_pass_met_it_without_fields() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0]).await?;
    scene.sweep().await?;
    scene
        .database
        .while_empty("hog_partition_field", async || {
            scene.database.ran(&["sweep"]).await?;
            Ok(())
        })
        .await?;
    scene.append([9]).await?;
    let report = scene.sweep().await?;
    assert_eq!((report.outcome, report.counts().files), (Outcome::Dropped, 1), "{report:#?}");
    Ok(())
}

/// The same with a renewal of claims, which copies too.
#[tokio::test]
async fn no_spec_is_disputed_because_a_renewal_met_it_without_fields() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0]).await?;
    scene.sweep().await?;
    scene
        .database
        .while_empty("hog_partition_field", async || {
            renew(&scene.database.tailrace(), &crate::claims::settings(), None).await?;
            Ok(())
        })
        .await?;
    scene.append([9]).await?;
    let report = scene.sweep().await?;
    assert_eq!((report.outcome, report.counts().files), (Outcome::Dropped, 1), "{report:#?}");
    Ok(())
}

/// A property's policy, its mode and revision are as they were.
#[tokio::test]
async fn a_policy_is_as_it_was_after_a_moment_without_columns() -> Result<()> {
    for source in ["stored", "property"] {
        let scene = Scene::new().await?;
        if source == "property" {
            scene.database.sql("DELETE FROM tailrace.policy").await?;
            let property = r#"{"field": "day(at)", "keep": "7d"}"#;
            scene.table.set_property("partition_retention", Some(property)).await?;
        }
        scene.append([0]).await?;
        scene.sweep().await?;
        let policy =
            "SELECT source || ' ' || mode || ' ' || coalesce(problem, 'none') || ' ' || revision
                        FROM tailrace.policy";
        let before = scene.database.text(policy).await?;
        scene
            .database
            .while_empty("hog_column", async || {
                scene.database.ran(&["sweep"]).await?;
                scene.database.ran(&["policy", "list"]).await?;
                renew(&scene.database.tailrace(), &crate::claims::settings(), None).await?;
                Ok(())
            })
            .await?;
        scene.table.append(vec![NewFile::of([days_ago(9)])]).await?;
        let report = scene.sweep().await?;
        assert_eq!(report.outcome, Outcome::Dropped, "{source}: {report:#?}");
        assert_eq!(scene.database.text(policy).await?, before, "{source}");
    }
    Ok(())
}

/// The catalog is restored table by table: the snapshots are back at the earlier time, and the columns are
/// not there yet. The policy is on a column that the restored catalog has.
#[tokio::test]
async fn no_policy_is_paused_for_columns_away_while_a_restore_settles() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0]).await?;
    scene.sweep().await?;
    let backup = scene.database.back_up("before").await?;
    scene.append([0]).await?;
    scene.sweep().await?;
    // Set since, on the column that was there from the beginning.
    scene.database.govern(&scene.table, "at", "7d").await?;
    scene.database.restore(&backup).await?;
    scene.database.sql("DROP SCHEMA before CASCADE").await?;
    scene
        .database
        .while_empty("hog_column", async || {
            scene.database.ran(&["sweep"]).await?;
            Ok(())
        })
        .await?;
    let mode = scene.database.text("SELECT mode FROM tailrace.policy").await?;
    assert_eq!(mode.as_deref(), Some("enforce"));
    Ok(())
}

/// Rows of the drop's files are away for a moment, and back. Gone is proof of deletion.
#[tokio::test]
async fn no_drop_is_gone_because_files_are_away_for_a_moment() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([3, 0]).await?;
    let (_, first) = scene.request(3).await?;
    scene.append([0]).await?;
    scene.floor_to(first.snapshot_id).await?;
    not_gone(&scene, "hog_data_file", "purging").await
}

async fn not_gone(scene: &Scene, emptied: &str, stage: &str) -> Result<()> {
    let before = scene.stages().await?;
    assert_eq!(before[0].1, stage);
    scene
        .database
        .while_empty(emptied, async || {
            scene.database.ran(&["sweep"]).await?;
            Ok(())
        })
        .await?;
    scene.sweep().await?;
    assert_eq!(scene.stages().await?, before, "without {emptied}");
    Ok(())
}

/// Our copy is all that is left of a spec that the server has deleted; files of it go on ageing.
#[tokio::test]
async fn the_only_copy_of_a_spec_outlives_an_empty_hog_snapshot() -> Result<()> {
    for is_emptied in [false, true] {
        let scene = Scene::new().await?;
        scene.database.sql("UPDATE tailrace.policy SET mode = 'paused'").await?;
        let old = scene.append([9]).await?;
        scene.sweep().await?;
        scene.table.evolve_spec(&[Field::identity("kind"), Field::day("at")]).await?;
        scene.sweep().await?;
        scene.table.delete_vanished_specs().await?;
        scene.sweep().await?;
        if is_emptied {
            scene
                .database
                .while_empty("hog_snapshot", async || {
                    scene.database.ran(&["sweep"]).await?;
                    Ok(())
                })
                .await?;
        }
        let enforce = "UPDATE tailrace.policy SET mode = 'enforce',
                              revision = nextval('tailrace.policy_revision')";
        scene.database.sql(enforce).await?;
        let report = scene.sweep().await?;
        let is_live = scene.live().await?.contains(&old[0]);
        assert!(!is_live, "emptied: {is_emptied}: {report:#?}");
    }
    Ok(())
}
