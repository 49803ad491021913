//! Weeks of a table's life by chance, pass after pass, against a model that forgets nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;
use tailrace::instant::UtcInstant;
use tailrace::sweep::reach::Reach;
use tailrace_kit::lake::{Field, NewFile};
use tailrace_kit::standin::Compaction;

use super::{Scene, small_steps};

const SEEDS: [u64; 3] = [1, 2, 3];
const STEPS: usize = 60;

/// What a file's rows are by: its spec's transform and its ordinal.
fn range_end(by_hour: bool, ordinal: i64) -> UtcInstant {
    match by_hour {
        true => UtcInstant::from_hours(i128::from(ordinal) + 1),
        false => UtcInstant::from_days(i128::from(ordinal) + 1),
    }
}

#[tokio::test]
async fn each_pass_leaves_exactly_what_has_not_expired() -> Result<()> {
    for seed in SEEDS {
        let mut random = Rng::with_seed(seed);
        let mut scene = Scene::new(&[Field::day("at")]).await?;
        let neighbour =
            scene.database.table(&scene.catalog, "neighbour", &[Field::day("at")]).await?;
        let keep = Duration::from_secs(7 * 86_400);
        let mut by_hour = false;
        // By file: when it expires.
        let mut model: BTreeMap<i64, UtcInstant> = BTreeMap::new();
        for step in 0..STEPS {
            let files = random.usize(0..12);
            let hours_ago: Vec<i64> = (0..files)
                .map(
                    |_| if random.u8(0..5) == 0 { random.i64(0..9_000) } else { random.i64(0..72) },
                )
                .collect();
            let ordinals: Vec<i64> = hours_ago
                .iter()
                .map(|ago| {
                    (scene.now.hours() as i64 - ago).div_euclid(if by_hour { 1 } else { 24 })
                })
                .collect();
            let rows = ordinals.iter().map(|ordinal| NewFile::of([ordinal.to_string()])).collect();
            if files > 0 {
                let ids = scene.table.append(rows).await?.file_ids;
                let ends = ordinals.iter().map(|ordinal| range_end(by_hour, *ordinal));
                // An hour under a table that had days may be read as a day that lies ahead.
                model.extend(ids.into_iter().zip(ends));
            }
            let texts = (0..random.usize(0..40)).map(|n| scene.file(n as i64)).collect::<Vec<_>>();
            if !texts.is_empty() {
                neighbour.append(texts).await?;
            }
            if random.u8(0..12) == 0 {
                by_hour = !by_hour;
                let field = if by_hour { Field::hour("at") } else { Field::day("at") };
                scene.table.evolve_spec(&[field]).await?;
            }
            if random.u8(0..6) == 0 {
                let before = scene.table.live_files().await?;
                Compaction::new(&scene.catalog, 1 << 30).run(&scene.table).await?;
                let after = scene.table.live_files().await?;
                let known: Vec<i64> = model.keys().copied().collect();
                for output in after.iter().filter(|file| !known.contains(&file.data_file_id)) {
                    let same = before.iter().find(|input| {
                        input.spec_id == output.spec_id && input.values == output.values
                    });
                    let end = same.and_then(|input| model.get(&input.data_file_id)).copied();
                    model.insert(output.data_file_id, end.expect("an input of the same tuple"));
                }
                model.retain(|id, _| after.iter().any(|file| file.data_file_id == *id));
            }
            scene.settings.reach = match random.u8(0..3) {
                0 => Reach::default(),
                1 => Reach { small_table: random.i64(0..30), ..small_steps() },
                _ => small_steps(),
            };
            scene.settings.max_values = if random.u8(0..4) == 0 { 3 } else { 100_000 };
            scene.settings.full_pass_every = Duration::from_secs(3_600 * random.u64(1..200));
            scene.now = scene.now.plus(Duration::from_secs(random.u64(0..100_000)));
            scene.sweep().await?;
            model.retain(|_, end| end.plus(keep) > scene.now);
            let expected: Vec<i64> = model.keys().copied().collect();
            assert_eq!(scene.live().await?, expected, "seed {seed}, step {step}, {}", scene.now);
        }
    }
    Ok(())
}
