//! Tests random histories: a consumer that applies the changes has what a reader of the table sees,
//! and the changes are what the rows say.

use anyhow::Result;
use fastrand::Rng;
use tailrace_kit::lake::{FileRow, NewFile};
use tailrace_kit::simulated_loops::{Compaction, truncate};

use crate::support::contents::{Follower, Objects};

use super::{Scene, all_ids, window, with_ends};

/// What the rows of the catalog say of a window, as ids; and whether it has to be told with ends.
async fn reference(scene: &Scene, from: i64, to: i64) -> Result<([Vec<i64>; 3], bool)> {
    let changes: Vec<(i64, String)> = sqlx::query_as(
        "SELECT snapshot_id, kind FROM hog_snapshot_change WHERE catalog_id = $1 AND object_id = $2
            AND kind LIKE 'table%'",
    )
    .bind(scene.catalog.catalog_id)
    .bind(scene.table.table_id)
    .fetch_all(scene.pool())
    .await?;
    let carries = |snapshot: i64, kind: &str| changes.contains(&(snapshot, kind.to_owned()));
    let inside = |snapshot: i64| from < snapshot && snapshot <= to;
    let (files, vectors) = (scene.table.all_files().await?, scene.table.all_vectors().await?);
    let mut lists: [Vec<(i64, i64)>; 3] = Default::default();
    for file in &files {
        let begin = file.begin_snapshot;
        if inside(begin) && !carries(begin, "table_compacted") {
            lists[0].push((begin, file.data_file_id));
        }
        if let Some(end) = file.end_snapshot.filter(|end| inside(*end))
            && carries(end, "table_deleted_from")
            && !carries(end, "table_compacted")
        {
            lists[2].push((end, file.data_file_id));
        }
    }
    lists[1].extend(
        vectors
            .iter()
            .filter(|v| inside(v.begin_snapshot))
            .map(|v| (v.begin_snapshot, v.delete_file_id)),
    );
    let fence =
        (from + 1..=to).any(|s| carries(s, "table_deleted_from") && carries(s, "table_altered"));
    let reconcile = fence || !lists[2].is_empty();
    Ok((
        lists.map(|mut list| {
            list.sort();
            list.into_iter().map(|(_, id)| id).collect()
        }),
        reconcile,
    ))
}

const DAYS: [&str; 3] = ["1", "2", "3"];

/// One commit, or none where there is nothing to work on.
async fn step(scene: &Scene, random: &mut Rng) -> Result<()> {
    let table = &scene.table;
    match random.u8(0..20) {
        0..7 => {
            let file = |random: &mut Rng| {
                NewFile::of([DAYS[random.usize(0..3)]]).records(random.i64(1..8))
            };
            let files = (0..random.usize(1..5)).map(|_| file(random)).collect();
            table.append(files).await?;
        }
        7..12 => {
            let live = table.live_files().await?;
            let deleted = |f: &FileRow| f.vector.as_ref().map_or(0, |v| v.delete_count);
            let open: Vec<_> = live.iter().filter(|f| deleted(f) < f.record_count).collect();
            if let Some(file) = random.choice(&open) {
                let count = random.i64(deleted(file) + 1..=file.record_count);
                table.register_vector(file.data_file_id, count, None).await?;
            }
        }
        12..15 => {
            let mut compaction = Compaction::new(&scene.catalog, 1 << 40);
            compaction.claims = false;
            compaction.run(table).await?;
        }
        15..18 => {
            scene.drop_day(DAYS[random.usize(0..3)]).await?;
        }
        18 => {
            let read = scene.catalog.head().await?;
            let live = table.live_files().await?;
            let ended: Vec<i64> =
                live.iter().map(|f| f.data_file_id).filter(|id| id % 3 == 0).collect();
            let added = vec![NewFile::of([DAYS[random.usize(0..3)]]).records(3)];
            table.overwrite(read, &ended, added).await?;
        }
        _ => {
            truncate(table).await?;
        }
    }
    Ok(())
}

async fn history(seed: u64) -> Result<()> {
    let mut random = Rng::with_seed(seed);
    let scene = Scene::new().await?;
    let mut objects = Objects::default();
    let start = scene.catalog.head().await?;
    let mut consumers: Vec<Follower> =
        (0..3).map(|_| Follower { at: start, ..Follower::default() }).collect();
    for _ in 0..45 {
        step(&scene, &mut random).await?;
        objects.write(&scene.table.all_files().await?, &scene.table.all_vectors().await?);
        let head = scene.catalog.head().await?;
        for (at, consumer) in consumers.iter_mut().enumerate() {
            // The first reads after every commit, the others when they come to it.
            if at > 0 && random.u8(0..4) > 0 {
                continue;
            }
            let from = consumer.at;
            let to = if at == 2 { random.i64(from..=head) } else { head };
            let told = scene.told(&with_ends(from, to)).await?;
            let (expected, reconcile) = reference(&scene, from, to).await?;
            assert_eq!(all_ids(&told), expected, "seed {seed}, ({from}, {to}]");
            let limit = random.i64(1..9);
            assert_eq!(scene.paged(&with_ends(from, to), limit).await?, told, "seed {seed}");
            if reconcile {
                let refused = scene.refused(&window(from, to)).await?;
                assert_eq!(
                    refused,
                    (409, "reconciliation_required"),
                    "seed {seed}, ({from}, {to}]"
                );
            } else {
                let plain = scene.told(&window(from, to)).await?;
                let [files, vectors, _] = expected;
                assert_eq!(all_ids(&plain), [files, vectors, vec![]], "seed {seed}");
            }
            consumer.apply(&told, &objects)?;
            let seen = objects.seen(&scene.table.files_at(to).await?);
            assert_eq!(consumer.rows, seen, "seed {seed}, consumer {at}, ({from}, {to}]");
        }
    }
    Ok(())
}

#[tokio::test]
async fn consumers_have_what_a_reader_sees_at_every_step() -> Result<()> {
    for seed in 0..8 {
        history(seed).await?;
    }
    Ok(())
}
