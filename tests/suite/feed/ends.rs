//! Tests of files that a drop or truncate ended, and of windows that can only be answered with
//! these files.

use anyhow::{Context, Result};
use serde_json::json;
use tailrace_kit::simulated_loops::{Compaction, truncate};

use super::{NOTHING, Scene, all_ids, ids, window, with_ends};

const RECONCILE: (u16, &str) = (409, "reconciliation_required");

#[tokio::test]
async fn a_file_that_began_and_ended_in_the_window_is_in_both_lists() -> Result<()> {
    let scene = Scene::new().await?;
    let start = scene.append(&["1", "2"]).await?;
    scene.append(&["1", "2"]).await?;
    let end = scene.drop_day("1").await?.context("a drop")?;
    let told = scene.told(&with_ends(start, end)).await?;
    assert_eq!(all_ids(&told), [vec![3, 4], vec![], vec![1, 3]]);
    let ends: Vec<_> = (0..2).map(|at| told["ended_files"][at]["end_snapshot"].clone()).collect();
    assert_eq!(ends, [json!(end), json!(end)]);
    assert_eq!(scene.refused(&window(start, end)).await?, RECONCILE);
    // Up to the drop, and from it on, there is nothing to reconcile.
    assert_eq!(all_ids(&scene.told(&window(start, end - 1)).await?), [vec![3, 4], vec![], vec![]]);
    let after = scene.append(&["1"]).await?;
    assert_eq!(all_ids(&scene.told(&window(end, after)).await?), [vec![5], vec![], vec![]]);
    assert_eq!(scene.refused(&window(end - 1, after)).await?, RECONCILE);
    Ok(())
}

#[tokio::test]
async fn ends_are_in_the_order_of_their_snapshots_then_of_the_ids() -> Result<()> {
    let scene = Scene::new().await?;
    let start = scene.append(&["3", "1", "2", "1", "3"]).await?;
    scene.drop_day("2").await?;
    scene.drop_day("3").await?;
    let end = scene.drop_day("1").await?.context("a drop")?;
    let told = scene.told(&with_ends(start, end)).await?;
    assert_eq!(ids(&told, "ended_files"), [3, 1, 5, 2, 4]);
    Ok(())
}

#[tokio::test]
async fn a_truncate_needs_its_ends_told() -> Result<()> {
    let scene = Scene::new().await?;
    let start = scene.append(&["1", "2"]).await?;
    let vector = scene.table.register_vector(2, 4, None).await?;
    let end = truncate(&scene.table).await?;
    assert_eq!(scene.refused(&window(start, end)).await?, RECONCILE);
    let told = scene.told(&with_ends(start, end)).await?;
    assert_eq!(all_ids(&told), [vec![], vec![vector], vec![1, 2]]);
    // Of an empty table too: as the server has it, it is the pair that counts.
    let again = truncate(&scene.table).await?;
    assert_eq!(scene.refused(&window(end, again)).await?, RECONCILE);
    assert_eq!(all_ids(&scene.told(&with_ends(end, again)).await?), NOTHING);
    Ok(())
}

#[tokio::test]
async fn a_drop_with_a_fence_is_told_as_one_without() -> Result<()> {
    let scene = Scene::new().await?;
    let start = scene.append(&["1", "2"]).await?;
    let end = scene.drop_day("2").await?.context("a drop")?;
    let fence = format!(
        "INSERT INTO hog_snapshot_change (catalog_id, snapshot_id, kind, object_id)
         VALUES ({}, {end}, 'table_altered', {})",
        scene.catalog.catalog_id, scene.table.table_id
    );
    scene.database.sql(&fence).await?;
    assert_eq!(scene.refused(&window(start, end)).await?, RECONCILE);
    assert_eq!(all_ids(&scene.told(&with_ends(start, end)).await?), [vec![], vec![], vec![2]]);
    Ok(())
}

#[tokio::test]
async fn vectors_alterations_and_compaction_need_no_reconciliation() -> Result<()> {
    let scene = Scene::new().await?;
    let start = scene.append(&["1", "1"]).await?;
    scene.table.register_vector(1, 2, None).await?;
    scene.table.rename("other").await?;
    scene.table.rename("raw").await?;
    scene.table.register_vector(2, 2, None).await?;
    assert_eq!(Compaction::new(&scene.catalog, 1 << 40).run(&scene.table).await?, 1);
    let head = scene.catalog.head().await?;
    assert_eq!(all_ids(&scene.told(&window(start, head)).await?), [vec![], vec![3, 4], vec![]]);
    Ok(())
}

#[tokio::test]
async fn a_rewrite_ends_what_it_replaced() -> Result<()> {
    let scene = Scene::new().await?;
    let start = scene.append(&["1", "2"]).await?;
    let added = vec![tailrace_kit::lake::NewFile::of(["1"])];
    let end = scene.table.overwrite(start, &[1], added).await?.snapshot_id;
    assert_eq!(scene.refused(&window(start, end)).await?, RECONCILE);
    assert_eq!(all_ids(&scene.told(&with_ends(start, end)).await?), [vec![3], vec![], vec![1]]);
    Ok(())
}

#[tokio::test]
async fn a_snapshot_that_also_compacted_tells_neither_ends_nor_begins() -> Result<()> {
    let scene = Scene::new().await?;
    let start = scene.append(&["1", "2"]).await?;
    let added = vec![tailrace_kit::lake::NewFile::of(["1"])];
    let end = scene.table.overwrite(start, &[1], added).await?.snapshot_id;
    let compacted = format!(
        "INSERT INTO hog_snapshot_change (catalog_id, snapshot_id, kind, object_id)
         VALUES ({}, {end}, 'table_compacted', {})",
        scene.catalog.catalog_id, scene.table.table_id
    );
    scene.database.sql(&compacted).await?;
    for query in [window(start, end), with_ends(start, end)] {
        assert_eq!(all_ids(&scene.told(&query).await?), NOTHING);
    }
    Ok(())
}
