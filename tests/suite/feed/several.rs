//! Tests of commits that change several tables: what they did to another table does not count for
//! this one.

use anyhow::{Context, Result};
use tailrace::explicit::call::DropBody;
use tailrace::explicit::problem::Problem;
use tailrace_kit::lake::{Field, NewFile, Table};
use tailrace_kit::simulated_loops::Compaction;

use super::{NOTHING, Scene, all_ids, window, with_ends};
use crate::explicit;

/// Makes these changes of another table part of a snapshot that is there.
async fn also(table: &Table, snapshot_id: i64, kinds: &[&str]) -> Result<()> {
    for kind in kinds {
        sqlx::query(
            "INSERT INTO hog_snapshot_change (catalog_id, snapshot_id, kind, object_id)
             VALUES ($1, $2, $3, $4)",
        )
        .bind(table.catalog.catalog_id)
        .bind(snapshot_id)
        .bind(kind)
        .bind(table.table_id)
        .execute(table.catalog.pool())
        .await?;
    }
    Ok(())
}

const ALL: [&str; 4] =
    ["table_compacted", "table_altered", "table_deleted_from", "table_inserted_into"];

/// An append, a vector, an overwrite and a drop of this table, each with all that can happen to another one.
#[tokio::test]
async fn the_feed_reports_this_table_alone() -> Result<()> {
    let scene = Scene::new().await?;
    let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    let start = scene.catalog.head().await?;
    let appended = scene.append(&["1", "2", "3"]).await?;
    also(&other, appended, &ALL).await?;
    // Files of the other table begin and end in the same snapshots.
    let strange = other.append(vec![NewFile::of(["1"]), NewFile::of(["1"])]).await?.file_ids;
    let vector = scene.table.register_vector(1, 4, None).await?;
    let marked = scene.catalog.head().await?;
    also(&other, marked, &ALL).await?;
    let told = scene.told(&window(start, marked)).await?;
    assert_eq!(all_ids(&told), [vec![1, 2, 3], vec![vector], vec![]], "no fence of this table");

    let end = scene.drop_day("1").await?.context("a drop")?;
    also(&other, end, &ALL).await?;
    scene
        .database
        .sql(&format!(
            "UPDATE hog_data_file SET end_snapshot = {end} WHERE data_file_id = {}",
            strange[0]
        ))
        .await?;
    let told = scene.told(&with_ends(start, end)).await?;
    assert_eq!(all_ids(&told), [vec![1, 2, 3], vec![vector], vec![1]], "it is no compaction");
    assert_eq!(scene.refused(&window(marked, end)).await?, (409, "reconciliation_required"));

    // And the other way round: a compaction of this table is one, whatever happened to the other.
    scene.append(&["2"]).await?;
    assert_eq!(Compaction::new(&scene.catalog, 1 << 20).run(&scene.table).await?, 1);
    let merged = scene.catalog.head().await?;
    also(&other, merged, &ALL).await?;
    let told = scene.told(&with_ends(merged - 1, merged)).await?;
    assert_eq!(all_ids(&told), NOTHING);
    Ok(())
}

/// The guards of a drop by request, in the same way.
#[tokio::test]
async fn guards_ask_for_this_table_alone() -> Result<()> {
    let scene = explicit::Scene::new().await?;
    let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    scene.table.append(vec![explicit::file("1"), explicit::file("2")]).await?;
    let read = scene.catalog.head().await?;
    let appended = scene.table.append(vec![explicit::file("1")]).await?.snapshot_id;
    also(&other, appended, &ALL).await?;
    let since = |day: &str| DropBody { read_snapshot: Some(read), ..explicit::days([day]) };
    let refused = scene.refused(&since("1")).await?;
    assert!(
        matches!(refused, Problem::CommitConflict(_)),
        "the append is no compaction: {refused}"
    );
    let done = scene.done(&since("2")).await?;
    assert_eq!(done.files_ended, 1, "nobody altered this table");
    // Altered together with another one, it is altered.
    also(&scene.table, appended, &["table_altered"]).await?;
    let refused = scene.refused(&since("1")).await?;
    assert_eq!(refused.code(), "ddl_since_read_snapshot");
    Ok(())
}
