//! Tests of other commits between plan and commit.

use anyhow::{Context, Result};
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::Field;
use tailrace_kit::simulated_loops::{Compacted, Compaction, truncate};

use crate::support::gate::in_order;
use crate::support::program::days_ago;

use super::{Scene, file, only, texts, whole};

#[tokio::test]
async fn the_output_of_compaction_of_planned_files_is_dropped_too() -> Result<()> {
    let scene = Scene::new(&[0, 8, 8, 8, 9]).await?;
    scene.table.register_vector(scene.files[1], 4, None).await?;
    let compaction = Compaction::new(&scene.catalog, 1000);
    let group = compaction.plan(&scene.table).await?.pop().context("three small files")?;
    assert_eq!(group.inputs, scene.files[1..4]);
    let (compacted, report) =
        in_order(&scene.catalog, compaction.commit(group), scene.sweep()).await?;
    let Compacted::Done { snapshot_id, output } = compacted else { panic!("{compacted:?}") };
    let snapshot = only(&report);
    assert_eq!(snapshot.snapshot_id, snapshot_id + 1);
    assert_eq!(texts(snapshot), [(days_ago(9), 1), (days_ago(8), 1)]);
    assert_eq!((snapshot.records, snapshot.delete_files_ended), (26 + 10, 0));
    assert_eq!(scene.end_of(output).await?, Some(snapshot.snapshot_id));
    for merged in &scene.files[1..4] {
        assert_eq!(scene.end_of(*merged).await?, Some(snapshot_id), "ended once, not again");
    }
    assert_eq!(scene.live().await?, [scene.files[0]]);
    whole::drops(&scene.catalog, scene.table.table_id).await?;
    Ok(())
}

#[tokio::test]
async fn a_compaction_after_the_drop_has_lost() -> Result<()> {
    let scene = Scene::new(&[0, 8, 8]).await?;
    let compaction = Compaction::new(&scene.catalog, 1000);
    let group = compaction.plan(&scene.table).await?.pop().context("two small files")?;
    let (report, compacted) =
        in_order(&scene.catalog, scene.sweep(), compaction.commit(group)).await?;
    assert_eq!(compacted, Compacted::Lost);
    assert_eq!(only(&report).files_ended, 2);
    assert_eq!(scene.live().await?, [scene.files[0]]);
    Ok(())
}

#[tokio::test]
async fn a_vector_that_is_registered_in_between_ends_with_its_file() -> Result<()> {
    let scene = Scene::new(&[0, 8, 9]).await?;
    let first = scene.table.register_vector(scene.files[1], 1, None).await?;
    let again = scene.table.register_vector(scene.files[1], 3, None);
    let (second, report) = in_order(&scene.catalog, again, scene.sweep()).await?;
    let snapshot = only(&report);
    assert_eq!((snapshot.files_ended, snapshot.delete_files_ended), (2, 1));
    let vectors = scene.table.all_vectors().await?;
    let ends: Vec<_> = vectors.iter().map(|v| (v.delete_file_id, v.end_snapshot)).collect();
    let drop = snapshot.snapshot_id;
    assert_eq!(ends, [(first, Some(drop - 1)), (second, Some(drop))]);
    whole::drops(&scene.catalog, scene.table.table_id).await?;
    Ok(())
}

#[tokio::test]
async fn a_vector_after_the_drop_is_a_conflict() -> Result<()> {
    let scene = Scene::new(&[0, 8]).await?;
    let read = scene.catalog.head().await?;
    let vector = async {
        let registered = scene.table.register_vector(scene.files[1], 1, Some(read)).await;
        anyhow::Ok(registered.expect_err("the file has ended").to_string())
    };
    let (report, refusal) = in_order(&scene.catalog, scene.sweep(), vector).await?;
    let drop = only(&report).snapshot_id;
    assert!(refusal.contains(&format!("ended in the snapshot {drop}")), "{refusal}");
    assert_eq!(scene.catalog.head().await?, drop);
    assert_eq!(scene.table.all_vectors().await?, []);
    Ok(())
}

#[tokio::test]
async fn after_a_truncate_nothing_is_left_to_drop() -> Result<()> {
    let scene = Scene::new(&[0, 8, 9]).await?;
    let (truncated, report) =
        in_order(&scene.catalog, truncate(&scene.table), scene.sweep()).await?;
    assert_eq!((report.outcome, report.snapshots.len()), (Outcome::NothingToDo, 0));
    assert_eq!(report.error, None);
    assert_eq!(scene.catalog.head().await?, truncated);
    assert_eq!(whole::drops(&scene.catalog, scene.table.table_id).await?, []);
    Ok(())
}

#[tokio::test]
async fn a_spec_that_evolves_meanwhile_changes_nothing_for_old_files() -> Result<()> {
    let scene = Scene::new(&[0, 8, 9]).await?;
    let evolved = async {
        let spec = scene.table.evolve_spec(&[Field::month("at")]).await?;
        anyhow::Ok(spec)
    };
    let (spec, report) = in_order(&scene.catalog, evolved, scene.sweep()).await?;
    assert_eq!(spec, 2);
    assert_eq!(report.outcome, Outcome::Dropped);
    assert_eq!(only(&report).files_ended, 2);
    assert_eq!(scene.live().await?, [scene.files[0]]);
    // A blind writer's day under the month's spec is not what was planned, and is kept as
    // ambiguous from now on.
    let stale = scene.table.append(vec![file(8)]).await?;
    let next = scene.sweep().await?;
    assert_eq!(next.outcome, Outcome::NothingToDo);
    assert_eq!(scene.live().await?, [scene.files[0], stale.file_ids[0]]);
    Ok(())
}

#[tokio::test]
async fn an_ended_partitioning_changes_nothing_for_its_files() -> Result<()> {
    let scene = Scene::new(&[0, 8]).await?;
    let (_, report) = in_order(&scene.catalog, scene.table.drop_spec(), scene.sweep()).await?;
    assert_eq!(only(&report).files_ended, 1);
    assert_eq!(scene.live().await?, [scene.files[0]]);
    Ok(())
}
