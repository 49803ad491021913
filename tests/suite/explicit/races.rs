//! Tests of drops of overlapping lists beside appends, compaction and vectors: the result is that
//! of some serial order of all of them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use tailrace::explicit::call::{DropAnswer, DropBody};
use tailrace::explicit::problem::Problem;
use tailrace_kit::lake::{Field, FileRow, LakeError, Table};
use tailrace_kit::simulated_loops::Compaction;

use super::{Scene, drop_of, file, item, ledger};

const ROUNDS: usize = 12;
const DAYS: [&str; 5] = ["1", "2", "3", "4", "5"];

/// What a writer did, by the snapshots that it made.
#[derive(Default)]
struct Done {
    /// Snapshot, then (file, day).
    appended: Vec<(i64, Vec<(i64, String)>)>,
    compacted: usize,
    vectors: usize,
}

async fn write(table: Table, seed: u64) -> Result<Done> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut done = Done::default();
    let compaction = Compaction::new(&table.catalog, 1000);
    for _ in 0..ROUNDS {
        match random.u8(0..5) {
            0..=2 => {
                let days: Vec<_> = (0..3).map(|_| DAYS[random.usize(0..DAYS.len())]).collect();
                let appended = table.append(days.iter().map(|day| file(day)).collect()).await?;
                let named = days.iter().map(|day| (*day).to_owned());
                let files = appended.file_ids.into_iter().zip(named).collect();
                done.appended.push((appended.snapshot_id, files));
            }
            3 => {
                let read = table.catalog.head().await?;
                let live = table.files_at(read).await?;
                let bare: Vec<_> = live.iter().filter(|file| file.vector.is_none()).collect();
                if bare.is_empty() {
                    continue;
                }
                let target = bare[random.usize(0..bare.len())].data_file_id;
                match table.register_vector(target, 1, Some(read)).await {
                    Ok(_) => done.vectors += 1,
                    Err(LakeError::Conflict(_)) => {}
                    Err(other) => return Err(other.into()),
                }
            }
            _ => done.compacted += compaction.run(&table).await?,
        }
    }
    Ok(done)
}

/// Each answer with its request.
type Dropped = Vec<(DropBody, DropAnswer)>;

async fn dropper(scene: &Scene, seed: u64) -> Result<(Dropped, usize)> {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut dropped, mut conflicts) = (Vec::new(), 0);
    for _ in 0..ROUNDS {
        let mut days = DAYS.to_vec();
        random.shuffle(&mut days);
        let items = days[..random.usize(1..4)].iter().map(|day| item([Some(day)])).collect();
        let read = scene.catalog.head().await?;
        let read_snapshot = random.bool().then_some(read);
        let body = DropBody { read_snapshot, ..drop_of(items) };
        match scene.call(&body).await? {
            Ok(answer) => dropped.push((body, answer)),
            Err(Problem::CommitConflict(_)) => conflicts += 1,
            Err(other) => return Err(other.into()),
        }
    }
    Ok((dropped, conflicts))
}

/// The day and life of a file.
fn of(row: &FileRow) -> (&str, i64, Option<i64>) {
    let day = row.values[0].as_deref().unwrap_or_default();
    (day, row.begin_snapshot, row.end_snapshot)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_is_that_of_a_serial_order() -> Result<()> {
    let scene = Scene::new().await?;
    let spec = [Field::day("at")];
    let neighbour = scene.database.table(&scene.catalog, "neighbour", &spec).await?;
    scene.table.append(DAYS.map(file).to_vec()).await?;
    let mut writers = Vec::new();
    for seed in 0..5 {
        let table = if seed < 4 { &scene.table } else { &neighbour };
        writers.push(tokio::spawn(write(table.clone(), seed)));
    }
    let (one, two, three) =
        tokio::try_join!(dropper(&scene, 101), dropper(&scene, 102), dropper(&scene, 103))?;
    let mut done = Done::default();
    for (seed, writer) in writers.into_iter().enumerate() {
        let writer = writer.await??;
        if seed < 4 {
            done.appended.extend(writer.appended);
            done.compacted += writer.compacted;
            done.vectors += writer.vectors;
        }
    }
    let mut dropped: Dropped = [one.0, two.0, three.0].concat();
    dropped.sort_by_key(|(_, answer)| answer.snapshot_id);
    // Snapshot ids are dense, and each is somebody's.
    ledger::agrees(&scene.catalog).await?;

    let rows = scene.table.all_files().await?;
    let drops: BTreeMap<i64, &(DropBody, DropAnswer)> = dropped
        .iter()
        .filter(|(_, answer)| answer.committed)
        .map(|both| (both.1.snapshot_id, both))
        .collect();
    assert_eq!(drops.len(), dropped.iter().filter(|(_, answer)| answer.committed).count());
    for (body, answer) in &dropped {
        let named: BTreeSet<&str> =
            body.partitions.iter().filter_map(|i| i.partition_values[0].as_deref()).collect();
        let at = answer.snapshot_id;
        // The commit order is the serial order: whatever was live before it of these days, and
        // nothing else, ended in it; where nothing was committed, nothing was live.
        let live_before = rows.iter().filter(|row| {
            let (day, begin, end) = of(row);
            let before = if answer.committed { at - 1 } else { at };
            named.contains(day) && begin <= before && end.is_none_or(|end| end > before)
        });
        let live_before: BTreeSet<i64> = live_before.map(|row| row.data_file_id).collect();
        let ended: BTreeSet<i64> = rows
            .iter()
            .filter(|row| answer.committed && row.end_snapshot == Some(at))
            .map(|row| row.data_file_id)
            .collect();
        assert_eq!(ended, live_before, "{answer:?}");
        assert_eq!(answer.files_ended, ended.len() as i64);
        for partition in &answer.partitions {
            let day = partition.partition_values[0].as_deref().unwrap_or_default();
            let of_day =
                rows.iter().filter(|row| ended.contains(&row.data_file_id) && of(row).0 == day);
            assert_eq!(partition.files_ended, of_day.count() as i64);
        }
    }
    // What an append brought is as it brought it, and nobody but a drop or a compaction ended it.
    for (snapshot_id, files) in &done.appended {
        for (id, day) in files {
            let row = rows.iter().find(|row| row.data_file_id == *id).expect("its row");
            assert_eq!((of(row).0, of(row).1), (day.as_str(), *snapshot_id));
        }
    }
    let ends: BTreeSet<i64> = rows.iter().filter_map(|row| row.end_snapshot).collect();
    let others: Vec<i64> = ends.into_iter().filter(|end| !drops.contains_key(end)).collect();
    assert_eq!(others.len(), done.compacted);
    let theirs = neighbour.all_files().await?;
    assert!(theirs.iter().filter_map(|row| row.end_snapshot).all(|end| !drops.contains_key(&end)));
    // All took part.
    assert!(drops.len() > 5 && done.vectors > 0, "{} {}", drops.len(), done.vectors);
    Ok(())
}
