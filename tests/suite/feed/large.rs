//! Tests of windows that are too large to be held in memory: what a chunk consists of, and what the
//! database reads for it. No time and no memory is measured.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use futures_util::TryStreamExt;
use serde_json::Value;
use sqlx::Connection;
use tailrace::catalog::connect::close;
use tailrace::feed;
use tailrace::feed::window_reader::{BLOCK, CHUNK};
use tailrace_kit::lake::{Field, NewFile};
use tailrace_kit::simulated_loops::truncate;

use super::{Scene, all_ids, sessions, table_ref, with_ends};
use crate::support::wait::until;

/// One commit of more than two blocks of files and 40 of more than a chunk each, then a truncate,
/// in a catalog in which a neighbour has as many files. Gives (head before, head after, files).
async fn many_files(scene: &Scene) -> Result<(i64, i64, usize)> {
    let neighbour = scene.database.table(&scene.catalog, "neighbour", &[Field::day("at")]).await?;
    // Many ends that are none of ours, as in any lake that is compacted.
    for _ in 0..40 {
        neighbour.append(vec![NewFile::of(["1"]); 100]).await?;
        truncate(&neighbour).await?;
    }
    neighbour.append(vec![NewFile::of(["1"]); 1000]).await?;
    let start = scene.catalog.head().await?;
    let first = 2 * BLOCK + 10_000;
    scene.table.append(vec![NewFile::of(["1"]); first]).await?;
    for _ in 0..40 {
        scene.table.append(vec![NewFile::of(["2"]); 2250]).await?;
    }
    truncate(&neighbour).await?;
    let end = truncate(&scene.table).await?;
    // Else the index entries of rows as they were before their end would be read too.
    scene.database.sql("VACUUM ANALYZE").await?;
    Ok((start, end, first + 40 * 2250))
}

/// What was read of a table's rows so far: sequential scans, and index entries by index.
async fn reads(scene: &Scene, table: &str) -> Result<(i64, Vec<(String, i64)>)> {
    let mut connection = scene.database.connection().await?;
    let sequential = sqlx::query_scalar(
        "SELECT coalesce(seq_scan, 0) FROM pg_stat_user_tables WHERE relname = $1",
    )
    .bind(table)
    .fetch_one(&mut connection)
    .await?;
    let by_index = sqlx::query_as(
        "SELECT indexrelname::text, coalesce(idx_tup_read, 0) FROM pg_stat_user_indexes
          WHERE relname = $1 ORDER BY 1",
    )
    .bind(table)
    .fetch_all(&mut connection)
    .await?;
    connection.close().await?;
    Ok((sequential, by_index))
}

/// Ends every session that built the lake, for their counts to be written.
async fn settle(scene: &Scene) -> Result<()> {
    scene.pool().close().await;
    until("the other sessions are gone", async || {
        let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                         AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
        let others: i64 = sqlx::query_scalar(others).fetch_one(&scene.database.pool).await?;
        Ok(others == 0)
    })
    .await
}

#[tokio::test]
async fn a_large_answer_comes_in_chunks_made_when_asked_for() -> Result<()> {
    let scene = Scene::new().await?;
    let (start, end, files) = many_files(&scene).await?;
    assert_eq!(files, 200_000);
    let opened = scene.open(&with_ends(start, end)).await??;
    let taken = Arc::new(AtomicUsize::new(0));
    let mut give = sessions(scene.pool());
    let counted = {
        let taken = taken.clone();
        move || {
            taken.fetch_add(1, Ordering::Relaxed);
            give()
        }
    };
    let mut stream = pin!(opened.stream(counted));
    let (mut text, mut largest, mut parts) = (Vec::new(), 0, 0);
    while let Some(part) = stream.try_next().await? {
        parts += 1;
        // One session a part, and none ahead of it.
        assert_eq!(taken.load(Ordering::Relaxed), parts);
        let entries = part.split(|byte| *byte == b'}').filter(|entry| entry.len() > 50).count();
        largest = largest.max(entries);
        text.extend(part);
    }
    assert_eq!(largest, CHUNK);
    let told: Value = serde_json::from_slice(&text)?;
    let expected: Vec<i64> =
        scene.table.all_files().await?.iter().map(|file| file.data_file_id).collect();
    let [begun, vectors, ended] = all_ids(&told);
    assert_eq!((begun.len(), vectors.len(), ended.len()), (files, 0, files));
    assert!(begun == expected && ended == expected, "the ids, in order");
    what_is_read_is_in_proportion(&scene, (start, end), files).await
}

/// Tells the window once more, and looks at what that made the server read.
async fn what_is_read_is_in_proportion(
    scene: &Scene,
    (start, end): (i64, i64),
    files: usize,
) -> Result<()> {
    settle(scene).await?;
    let before = reads(scene, "hog_data_file").await?;
    let values_before = reads(scene, "hog_file_partition_value").await?;
    // The pool is closed: what its sessions read has to be counted.
    let mut session = scene.database.tailrace().session().await?;
    let table = table_ref("lake", "events", "raw");
    let opened = feed::open(&mut session, &table, &with_ends(start, end)).await?;
    let page = opened.page(&mut session).await?;
    assert_eq!(page.files.len() + page.ended_files.context("ends")?.len(), 2 * files);
    close(session).await;
    settle(scene).await?;
    let after = reads(scene, "hog_data_file").await?;
    let values_after = reads(scene, "hog_file_partition_value").await?;
    assert_eq!(after.0, before.0, "no sequential scan of the files");
    assert_eq!(values_after.0, values_before.0, "none of their values");
    let files = files as i64;
    let read: Vec<(&str, i64)> = after
        .1
        .iter()
        .zip(&before.1)
        .map(|((index, after), (_, before))| (index.as_str(), after - before))
        .filter(|(_, read)| *read > 0)
        .collect();
    let of =
        |name: &str| read.iter().find(|(index, _)| *index == name).map_or(0, |(_, read)| *read);
    // Counted once, keyed once, and once more for each further block of a large snapshot: 3
    // blocks of the first commit, 4 of the truncate.
    let block = BLOCK as i64;
    assert_eq!(of("hog_data_file_changefeed"), 2 * files + 2 * (2 * block + 10_000), "{read:?}");
    // A block that is full to the last key does not know that it is the last.
    assert_eq!(of("hog_data_file_ended"), (1 + 5) * files, "{read:?}");
    assert_eq!(of("hog_data_file_pkey"), 2 * files, "{read:?}");
    assert_eq!(read.len(), 3, "and by no other index: {read:?}");
    Ok(())
}

/// More snapshots than are outlined at once, most of them with a vector, which carry the mark of
/// a deletion and end nothing.
#[tokio::test]
async fn a_window_of_many_snapshots() -> Result<()> {
    let scene = Scene::new().await?;
    let start = scene.append(&["1", "2"]).await?;
    let (catalog, table) = (scene.catalog.catalog_id, scene.table.table_id);
    // 2,600 commits: a file each, and a vector on it in the next.
    let commits = format!(
        "INSERT INTO hog_snapshot (catalog_id, snapshot_id, schema_version)
         SELECT {catalog}, {start} + n, 0 FROM generate_series(1, 5200) n;
         INSERT INTO hog_snapshot_change (catalog_id, snapshot_id, kind, object_id)
         SELECT {catalog}, {start} + n,
                CASE n % 2 WHEN 1 THEN 'table_inserted_into' ELSE 'table_deleted_from' END, {table}
           FROM generate_series(1, 5200) n;
         INSERT INTO hog_data_file (catalog_id, data_file_id, table_id, begin_snapshot, path,
                                    record_count, file_size_bytes, row_id_start)
         SELECT {catalog}, 10 + n, {table}, {start} + n, n::text, 1, 1, n
           FROM generate_series(1, 5200, 2) n;
         INSERT INTO hog_delete_file (catalog_id, delete_file_id, table_id, data_file_id,
                                      begin_snapshot, path, delete_count, file_size_bytes)
         SELECT {catalog}, 11 + n, {table}, 10 + n, {start} + n + 1, n::text, 1, 1
           FROM generate_series(1, 5200, 2) n;
         UPDATE hog_catalog SET last_snapshot_id = {start} + 5200, next_file_id = 6000;
         ANALYZE"
    );
    scene.database.sql(&commits).await?;
    let head = scene.catalog.head().await?;
    let told = scene.told(&super::window(start, head)).await?;
    let expected: Vec<i64> = (0..2600).map(|n| 11 + 2 * n).collect();
    let vectors: Vec<i64> = expected.iter().map(|id| id + 1).collect();
    assert_eq!(all_ids(&told), [expected, vectors, vec![]]);
    // The end of it ends two files, behind more deletions than are outlined at once.
    let end = scene.drop_day("1").await?.context("a drop")?;
    let refused = scene.refused(&super::window(start, end)).await?;
    assert_eq!(refused, (409, "reconciliation_required"));
    let told = scene.told(&with_ends(start, end)).await?;
    assert_eq!(all_ids(&told)[2], [1]);
    assert_eq!(scene.paged(&with_ends(start, end), 999).await?, told);
    Ok(())
}
