//! Tests that `read_snapshot` conflicts if and only if a file of a named tuple came after it. The
//! histories are random, and every set of tuples is tried at every point of a history.

use anyhow::Result;
use tailrace::explicit::call::DropBody;
use tailrace::explicit::drop_partitions;
use tailrace_kit::lake::{Field, LakeError};
use tailrace_kit::simulated_loops::{Compaction, truncate};

use super::{Scene, drop_of, file, item, patient, raw};

const DAYS: [&str; 3] = ["1", "2", "3"];
const HISTORIES: u64 = 8;
const STEPS: usize = 18;
/// The sets of days that are asked for, as bits.
const SETS: [usize; 5] = [1, 2, 4, 3, 7];

/// What happened in a history that a guard has to know.
#[derive(Default)]
struct Told {
    /// A file came to the day in the snapshot.
    came: Vec<(i64, usize)>,
    ddl: Vec<i64>,
}

async fn step(scene: &Scene, random: &mut fastrand::Rng, told: &mut Told, ddl: bool) -> Result<()> {
    let table = &scene.table;
    let read = scene.catalog.head().await?;
    let live = table.live_files().await?;
    let day = random.usize(0..DAYS.len());
    let target = (!live.is_empty()).then(|| &live[random.usize(0..live.len())]);
    match (random.u8(0..12), target) {
        (0 | 1, _) => {
            let done = table.append(vec![file(DAYS[day])]).await?;
            told.came.push((done.snapshot_id, day));
        }
        (2, _) => {
            let second = random.usize(0..DAYS.len());
            let done = table.append(vec![file(DAYS[day]), file(DAYS[second])]).await?;
            told.came.extend([(done.snapshot_id, day), (done.snapshot_id, second)]);
        }
        (3, Some(target)) => match table.register_vector(target.data_file_id, 2, None).await {
            Ok(_) | Err(LakeError::Validation(_)) => {}
            Err(other) => return Err(other.into()),
        },
        (4..=6, _) => drop(Compaction::new(&scene.catalog, 1000).run(table).await?),
        (7, Some(target)) => {
            let added = if random.bool() { vec![file(DAYS[day])] } else { vec![] };
            let came = !added.is_empty();
            let done = table.overwrite(read, &[target.data_file_id], added).await?;
            told.came.extend(came.then_some((done.snapshot_id, day)));
        }
        (8 | 9, _) => drop(scene.done(&drop_of(vec![item([Some(DAYS[day])])])).await?),
        (10, _) if ddl && random.bool() => told.ddl.push(truncate(table).await?),
        (10, _) if ddl => told.ddl.push(table.set_property("a", Some(DAYS[day])).await?),
        _ => {
            let other = scene.catalog.open_table("events", "other").await?;
            other.append(vec![file(DAYS[day])]).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn it_conflicts_exactly_if_a_file_of_a_named_tuple_came_since() -> Result<()> {
    let (mut conflicts, mut altered, mut fine) = (0, 0, 0);
    for seed in 0..HISTORIES {
        let scene = Scene::new().await?;
        scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
        let start = scene.catalog.head().await?;
        let (mut random, mut told) = (fastrand::Rng::with_seed(seed), Told::default());
        for _ in 0..STEPS {
            step(&scene, &mut random, &mut told, seed % 4 == 0).await?;
        }
        let head = scene.catalog.head().await?;
        let mut session = scene.session().await?;
        for read in start..=head {
            for set in SETS {
                let named: Vec<_> = (0..DAYS.len()).filter(|day| set >> day & 1 == 1).collect();
                let items = named.iter().map(|day| item([Some(DAYS[*day])])).collect();
                let body = DropBody { read_snapshot: Some(read), dry_run: true, ..drop_of(items) };
                let answer = drop_partitions(&mut session, &raw(), &body, "me", &patient()).await;
                let code = answer.as_ref().err().map(|problem| problem.code());
                let came = |(at, day): &(i64, usize)| *at > read && named.contains(day);
                let expected = if told.ddl.iter().any(|at| *at > read) {
                    altered += 1;
                    Some("ddl_since_read_snapshot")
                } else if told.came.iter().any(came) {
                    conflicts += 1;
                    Some("commit_conflict")
                } else {
                    fine += 1;
                    None
                };
                assert_eq!(code, expected, "history {seed}, read {read}, days {named:?}");
            }
        }
        // What a dry run was told under no lock, the drop itself is told under it.
        for read in [start, head - 2, head] {
            let body = DropBody { read_snapshot: Some(read), ..drop_of(vec![item([Some("1")])]) };
            let dry = scene.call(&DropBody { dry_run: true, ..body.clone() }).await?;
            let wet = scene.call(&body).await?;
            assert_eq!(dry.err(), wet.err());
        }
    }
    assert!(conflicts > 100 && altered > 20 && fine > 50, "{conflicts} {altered} {fine}");
    Ok(())
}
