//! Tests of what happens between two chunks, and in the middle of one.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, Result};
use chrono::{TimeDelta, Utc};
use futures_util::TryStreamExt;
use serde_json::Value;
use tailrace::explicit::problem::Problem;
use tailrace_kit::lake::{CatalogOptions, Field, NewFile};
use tailrace_kit::simulated_loops::{Expiry, FloorMove, truncate};

use super::{NOTHING, Scene, all_ids, sessions, window, with_ends};
use crate::support::TestDatabase;
use crate::support::wait::until;

/// A catalog that keeps its snapshots for an hour, with 1,500 files that a truncate ended. Gives
/// the scene, the head before them and the head after.
async fn long_window() -> Result<(Scene, i64, i64)> {
    let database = TestDatabase::new().await?;
    let retention = Some(Duration::from_secs(3600));
    let options = CatalogOptions { retention, ..CatalogOptions::default() };
    let catalog = database.lake.catalog("lake", options).await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let start = catalog.head().await?;
    table.append(vec![NewFile::of(["1"]); 1500]).await?;
    let end = truncate(&table).await?;
    Ok((Scene { database, catalog, table }, start, end))
}

/// Moves the floor to this snapshot and purges all that ended up to it.
async fn expire(scene: &Scene, floor: i64) -> Result<()> {
    let from = scene.catalog.floor().await?;
    let mut expiry = Expiry::new(&scene.catalog);
    expiry.batch = floor - from;
    let moved = expiry.advance_floor(Some(Utc::now() + TimeDelta::hours(2))).await?;
    assert_eq!(moved, FloorMove { from, to: floor });
    expiry.purge().await?;
    Ok(())
}

#[tokio::test]
async fn a_floor_that_passes_the_window_breaks_the_answer_off() -> Result<()> {
    let (scene, start, end) = long_window().await?;
    for chunks in 0..=4 {
        let opened = scene.open(&with_ends(start, end)).await??;
        let mut stream = pin!(opened.stream(sessions(scene.pool())));
        for _ in 0..chunks {
            assert!(stream.try_next().await?.is_some());
        }
        // Nothing need be purged for it: what is there may be gone with the next chunk.
        let floor = |floor| format!("UPDATE hog_catalog SET earliest_snapshot_id = {floor}");
        scene.database.sql(&floor(start + 1)).await?;
        let refused = stream.try_next().await.err().context("it goes on")?;
        assert_eq!((refused.status(), refused.code()), (410, "expired"), "after {chunks} chunks");
        assert_eq!(stream.try_next().await, Ok(None));
        scene.database.sql(&floor(0)).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_floor_at_the_windows_beginning_takes_nothing_from_it() -> Result<()> {
    let (scene, start, end) = long_window().await?;
    let whole = scene.told(&with_ends(start, end)).await?;
    let opened = scene.open(&with_ends(start, end)).await??;
    let mut stream = pin!(opened.stream(sessions(scene.pool())));
    let mut text = stream.try_next().await?.context("a first chunk")?;
    expire(&scene, start).await?;
    while let Some(part) = stream.try_next().await? {
        text.extend(part);
    }
    assert_eq!(serde_json::from_slice::<Value>(&text)?, whole);
    assert_eq!(all_ids(&whole).map(|list| list.len()), [1500, 0, 1500]);
    // One further, and the ended rows themselves are gone.
    expire(&scene, end).await?;
    assert_eq!(scene.table.all_files().await?.len(), 0);
    assert_eq!(scene.refused(&with_ends(start, end)).await?, (410, "expired"));
    assert_eq!(all_ids(&scene.told(&with_ends(end, end)).await?), NOTHING);
    Ok(())
}

#[tokio::test]
async fn a_page_is_refused_once_the_floor_has_passed_its_window() -> Result<()> {
    let (scene, start, end) = long_window().await?;
    let query = tailrace::feed::ChangesQuery { limit: Some(1200), ..with_ends(start, end) };
    let opened = scene.open(&query).await??;
    expire(&scene, start + 1).await?;
    let mut session = scene.database.plain_session().await?;
    let refused = opened.page(&mut session).await.err().context("a page")?;
    assert_eq!((refused.status(), refused.code()), (410, "expired"));
    Ok(())
}

/// A chunk that has looked at the floor, and then waits while floor and rows go, still tells all
/// of the state that it looked at; the one after it breaks off.
#[tokio::test]
async fn floor_and_rows_of_a_chunk_are_of_one_state() -> Result<()> {
    let scene = Scene::new().await?;
    let start = scene.catalog.head().await?;
    scene.append(&["1", "1", "2"]).await?;
    let end = truncate(&scene.table).await?;
    let opened = scene.open(&with_ends(start, end)).await??;
    let mut stream = pin!(opened.stream(sessions(scene.pool())));
    let mut purger = scene.pool().begin().await?;
    sqlx::query("LOCK TABLE hog_data_file IN ACCESS EXCLUSIVE MODE").execute(&mut *purger).await?;
    let (chunk, ()) =
        tokio::try_join!(async { Ok::<_, anyhow::Error>(stream.try_next().await?) }, async {
            let pool = &scene.database.pool;
            until("the chunk waits for the files", async || {
                let waiting: i64 = sqlx::query_scalar(
                    "SELECT count(*) FROM pg_locks WHERE NOT granted
                        AND relation = 'hog_data_file'::regclass
                        AND database = (SELECT oid FROM pg_database
                                         WHERE datname = current_database())",
                )
                .fetch_one(pool)
                .await?;
                Ok(waiting == 1)
            })
            .await?;
            let floor = "UPDATE hog_catalog SET earliest_snapshot_id = last_snapshot_id";
            sqlx::query(floor).execute(&mut *purger).await?;
            sqlx::query("DELETE FROM hog_data_file").execute(&mut *purger).await?;
            Ok(purger.commit().await?)
        })?;
    let mut text = chunk.context("a chunk")?;
    text.extend_from_slice(b"]}");
    let told: Value = serde_json::from_slice(&text)?;
    assert_eq!(all_ids(&told), [vec![1, 2, 3], vec![], vec![]]);
    let refused = stream.try_next().await.err().context("it goes on")?;
    assert_eq!((refused.status(), refused.code()), (410, "expired"));
    Ok(())
}

#[tokio::test]
async fn a_table_that_is_dropped_breaks_the_answer_off() -> Result<()> {
    let (scene, start, _) = long_window().await?;
    let opened = scene.open(&window(start, start + 1)).await??;
    let mut stream = pin!(opened.stream(sessions(scene.pool())));
    assert!(stream.try_next().await?.is_some());
    // A new name is no new table.
    scene.table.rename("other").await?;
    assert!(stream.try_next().await?.is_some());
    scene.table.drop_table().await?;
    let gone = Problem::TableDropped { table: "events.raw".to_owned() };
    assert_eq!(stream.try_next().await, Err(gone));
    assert_eq!(stream.try_next().await, Ok(None));
    Ok(())
}

/// Each of the ways to be gone by itself, whatever else the server writes with it.
#[tokio::test]
async fn every_way_to_be_gone_breaks_the_answer_off() -> Result<()> {
    let scene = Scene::new().await?;
    let start = scene.catalog.head().await?;
    let head = scene.append(&["1"]).await?;
    for (gone, back) in [
        (
            "UPDATE hog_table SET dropped_snapshot = 9",
            "UPDATE hog_table SET dropped_snapshot = NULL",
        ),
        (
            "UPDATE hog_table_version SET end_snapshot = 99",
            "UPDATE hog_table_version SET end_snapshot = NULL",
        ),
        ("UPDATE hog_namespace SET dropped = true", "UPDATE hog_namespace SET dropped = false"),
        ("UPDATE hog_table SET table_uuid = gen_random_uuid()", "SELECT 1"),
    ] {
        let opened = scene.open(&window(start, head)).await??;
        let mut stream = pin!(opened.stream(sessions(scene.pool())));
        assert!(stream.try_next().await?.is_some());
        scene.database.sql(gone).await?;
        let refused = stream.try_next().await.err().context(gone)?;
        assert_eq!((refused.status(), refused.code()), (409, "table_dropped"), "{gone}");
        scene.database.sql(back).await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_is_committed_meanwhile_is_not_of_the_window() -> Result<()> {
    let (scene, start, end) = long_window().await?;
    scene.append(&["7"]).await?;
    let opened = scene.open(&with_ends(start, end)).await??;
    let mut stream = pin!(opened.stream(sessions(scene.pool())));
    let mut text = stream.try_next().await?.context("a first chunk")?;
    scene.append(&["8", "7"]).await?;
    scene.drop_day("7").await?;
    while let Some(part) = stream.try_next().await? {
        text.extend(part);
    }
    let told: Value = serde_json::from_slice(&text)?;
    assert_eq!(all_ids(&told).map(|list| list.len()), [1500, 0, 1500]);
    Ok(())
}
