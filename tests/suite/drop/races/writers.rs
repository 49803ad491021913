//! Tests of passes beside eight writers that make real commits.

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, LakeError, Table};
use tailrace_kit::simulated_loops::Compaction;

use crate::support::program::days_ago;

use super::{Scene, file, patient, whole};

const ROUNDS: usize = 14;

/// What a writer did that counts.
#[derive(Debug, Default, Clone, Copy)]
struct Done {
    appended: i64,
    deleted: i64,
    compacted: usize,
}

/// Appends, deletes rows, merges files, in an order that its seed gives.
async fn write(table: Table, seed: u64) -> Result<Done> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut done = Done::default();
    let compaction = Compaction::new(&table.catalog, 1000);
    for _ in 0..ROUNDS {
        match random.u8(0..6) {
            0..=2 => {
                let ages = [random.i64(0..4), random.i64(8..14), random.i64(8..14)];
                let files: Vec<_> =
                    ages.iter().map(|age| file(*age).records(random.i64(5..50))).collect();
                let records: i64 = files.iter().map(|file| file.records).sum();
                table.append(files).await?;
                done.appended += records;
            }
            3 | 4 => {
                let read = table.catalog.head().await?;
                let files = table.files_at(read).await?;
                let bare: Vec<_> = files
                    .iter()
                    .filter(|file| file.vector.is_none() && file.record_count > 3)
                    .collect();
                if bare.is_empty() {
                    continue;
                }
                let target = bare[random.usize(0..bare.len())].data_file_id;
                match table.register_vector(target, 3, Some(read)).await {
                    Ok(_) => done.deleted += 3,
                    // It ended, or another writer deleted from it, since we looked.
                    Err(LakeError::Conflict(_)) => {}
                    Err(other) => return Err(other.into()),
                }
            }
            _ => done.compacted += compaction.run(&table).await?,
        }
    }
    Ok(done)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_writers_and_the_passes_agree_about_every_row() -> Result<()> {
    let scene = Scene::new(&[0, 8, 9]).await?;
    let spec = [Field::day("at")];
    let neighbour = scene.database.table(&scene.catalog, "neighbour", &spec).await?;
    let mut tasks = Vec::new();
    for seed in 0..8 {
        let table = if seed < 6 { &scene.table } else { &neighbour };
        tasks.push((seed, tokio::spawn(write(table.clone(), seed))));
    }
    let mut snapshots = Vec::new();
    let mut settings = patient();
    settings.batch.files_per_commit = 4;
    while !tasks.iter().all(|(_, task)| task.is_finished()) {
        snapshots.extend(scene.sweep_with(&settings).await?.snapshots);
    }
    let mut ours = Done { appended: 30, ..Done::default() };
    for (seed, task) in tasks {
        let done = task.await??;
        if seed < 6 {
            ours.appended += done.appended;
            ours.deleted += done.deleted;
            ours.compacted += done.compacted;
        }
    }
    let last = scene.sweep_with(&settings).await?;
    assert!(matches!(last.outcome, Outcome::Dropped | Outcome::NothingToDo), "{last:?}");
    snapshots.extend(last.snapshots);

    // Dense ids, one change for each of ours, no live vector on an ended file.
    let drops = whole::drops(&scene.catalog, scene.table.table_id).await?;
    let told: Vec<_> = snapshots.iter().map(|s| (s.snapshot_id, s.files_ended)).collect();
    assert_eq!(drops, told);
    assert!(drops.len() > 1 && ours.compacted > 0 && ours.deleted > 0, "{ours:?}: all took part");

    // What we ended had expired, and nothing that has expired is left.
    let old: Vec<String> = (8..16).map(days_ago).collect();
    let ended_by_us = "SELECT count(*) FILTER (WHERE v.value = ANY ($3)), count(*)
          FROM hog_data_file f JOIN hog_file_partition_value v USING (catalog_id, data_file_id)
          JOIN tailrace.drop_history h
            ON h.catalog_id = f.catalog_id AND h.snapshot_id = f.end_snapshot
         WHERE f.catalog_id = $1 AND f.table_id = $2";
    let (expired, all): (i64, i64) = sqlx::query_as(ended_by_us)
        .bind(scene.catalog.catalog_id)
        .bind(scene.table.table_id)
        .bind(&old)
        .fetch_one(scene.catalog.pool())
        .await?;
    assert_eq!(expired, all);
    assert_eq!(all, drops.iter().map(|(_, files)| files).sum::<i64>());
    for live in scene.table.live_files().await? {
        assert!(!old.contains(live.values[0].as_ref().expect("a day")), "{live:?}");
    }

    // Every row that was ever appended is live, deleted by a vector, or dropped by us.
    let dropped: i64 = sqlx::query_scalar(
        "SELECT (SELECT coalesce(sum(records), 0) FROM tailrace.drop_history)::bigint
              - (SELECT coalesce(sum(delete_count), 0) FROM hog_delete_file d
                   JOIN tailrace.drop_history h
                     ON h.catalog_id = d.catalog_id AND h.snapshot_id = d.end_snapshot)::bigint",
    )
    .fetch_one(scene.catalog.pool())
    .await?;
    let live = scene.table.rows_at(scene.catalog.head().await?).await?;
    assert_eq!(ours.appended, live + ours.deleted + dropped);
    // The neighbour with the same day texts has lost nothing to us.
    let (ended, other): (i64, i64) = sqlx::query_as(ended_by_us)
        .bind(scene.catalog.catalog_id)
        .bind(neighbour.table_id)
        .bind(&old)
        .fetch_one(scene.catalog.pool())
        .await?;
    assert_eq!((ended, other), (0, 0));
    Ok(())
}
