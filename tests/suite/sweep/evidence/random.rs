//! Tests random histories of specs, with writers that continue with a spec for at most six days
//! after its end.

use anyhow::Result;
use tailrace::rules::instant::UtcInstant;
use tailrace_kit::lake::{Field, NewFile};
use tailrace_kit::simulated_loops::Compaction;

use super::{Scene, micros};

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

const SPECS: [&[&str]; 13] = [
    &["day(at)"],
    &["hour(at)"],
    &["month(at)"],
    &["identity(at)"],
    &["identity(tenant)"],
    &["month(created)"],
    &["bucket(name)"],
    &["identity(birth)"],
    &["year(at)"],
    &["day(at)", "identity(tenant)"],
    &["identity(tenant)", "day(at)"],
    &["day(created)", "day(at)"],
    &["bucket(at)", "hour(at)"],
];

fn field(text: &str) -> Field {
    match text {
        "day(at)" => Field::day("at"),
        "hour(at)" => Field::hour("at"),
        "month(at)" => Field::month("at"),
        "year(at)" => Field::year("at"),
        "identity(at)" => Field::identity("at"),
        "identity(tenant)" => Field::identity("tenant"),
        "month(created)" => Field::month("created"),
        "day(created)" => Field::day("created"),
        "bucket(name)" => Field::bucket("name", 16),
        "bucket(at)" => Field::bucket("at", 16),
        _ => Field::identity("birth"),
    }
}

/// What a writer stores of a row of `day` (since 1970).
fn value(text: &str, day: i64, dice: &mut Dice) -> String {
    let at = UtcInstant::from_days(day.into());
    let (year, month, _) = at.civil();
    match text {
        "day(at)" => day.to_string(),
        "hour(at)" => (day * 24).to_string(),
        "month(at)" => ((year - 1970) * 12 + month - 1).to_string(),
        "year(at)" => (year - 1970).to_string(),
        "identity(at)" => at.to_string().replace('Z', "+00:00"),
        "identity(tenant)" => dice.roll(20_900).to_string(),
        "month(created)" => dice.roll(684).to_string(),
        "day(created)" => dice.roll(20_800).to_string(),
        "bucket(name)" | "bucket(at)" => dice.roll(16).to_string(),
        _ => UtcInstant::from_days(dice.roll(20_000).into()).to_string()[..10].to_owned(),
    }
}

#[tokio::test]
async fn no_row_of_the_last_week_goes_whatever_the_history() -> Result<()> {
    for seed in 1..=3 {
        let mut dice = Dice(seed);
        let scene = Scene::new(&[&[Field::day("at")]]).await?;
        let mut live = 0_usize;
        // (spec, the day on which it was last in force)
        let mut known = vec![(0_usize, 20_833_i64)];
        let mut written: Vec<(i64, i64, String)> = Vec::new();
        let mut said = Vec::new();
        for day in 20_833..20_873_i64 {
            if dice.roll(4) == 0 {
                live = dice.roll(SPECS.len() as u64) as usize;
                let fields: Vec<Field> = SPECS[live].iter().map(|text| field(text)).collect();
                let id = scene.table.evolve_spec(&fields).await?;
                said.push(format!("{day}: {id} {:?}", SPECS[live]));
            }
            known.retain(|(spec, _)| *spec != live);
            known.push((live, day));
            let fit = |spec: usize| SPECS[spec].len() == SPECS[live].len();
            let writers: Vec<usize> = known
                .iter()
                .filter(|(spec, last)| fit(*spec) && day - last <= 6)
                .map(|(spec, _)| *spec)
                .collect();
            for _ in 0..3 {
                let spec = writers[dice.roll(writers.len() as u64) as usize];
                let values: Vec<String> =
                    SPECS[spec].iter().map(|text| value(text, day, &mut dice)).collect();
                let mut file = NewFile::of(values.clone());
                let bound = UtcInstant::from_days(day.into()).to_string();
                file = match dice.roll(4) {
                    0 => file.upper("at", &micros(&bound)),
                    1 => file.pending(),
                    _ => file,
                };
                let id = scene.append(vec![file]).await?[0];
                written.push((id, day, format!("{:?} {values:?}", SPECS[spec])));
            }
            if dice.roll(3) == 0 {
                scene
                    .sweep_at(
                        &UtcInstant::from_days(day.into())
                            .plus_nanos(3_600_000_000_000)
                            .to_string(),
                    )
                    .await?;
                if dice.roll(2) == 0 {
                    scene.table.delete_vanished_specs().await?;
                }
            }
            let compacts = dice.roll(6) == 0;
            if compacts {
                // What was written before is followed no further.
                Compaction::new(&scene.catalog, 1 << 30).run(&scene.table).await?;
                let now_live = scene.live().await?;
                written.retain(|(id, ..)| now_live.contains(id));
            }
            let now = UtcInstant::from_days(day.into()).plus_nanos(12 * 3_600_000_000_000);
            let report = scene.sweep_at(&now.to_string()).await?;
            let left = scene.live().await?;
            for (id, of, what) in written.iter().filter(|(_, of, _)| day - of < 7) {
                assert!(
                    left.contains(id),
                    "seed {seed}, day {day}: file {id} of {of} {what}; {said:?} {report:?}"
                );
            }
        }
    }
    Ok(())
}
