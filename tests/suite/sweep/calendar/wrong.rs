//! Tests that a wrong calendar only costs time.

use anyhow::Result;
use fastrand::Rng;
use tailrace_kit::lake::{Field, NewFile};

use super::{DAY, Scene};

/// A calendar, a watermark, a full scan and counts as nobody would have written them.
fn nonsense(random: &mut Rng) -> String {
    let number = |random: &mut Rng| match random.u8(0..4) {
        0 => "0".to_owned(),
        1 => "9223372036854775807".to_owned(),
        2 => "-5".to_owned(),
        _ => random.i64(0..120).to_string(),
    };
    let time = |random: &mut Rng| match random.u8(0..5) {
        0 => "'infinity'".to_owned(),
        1 => "'-infinity'".to_owned(),
        2 => "'4713-01-01 BC'".to_owned(),
        _ => format!(
            "timestamptz '2026-11-30 12:00Z' - interval '{} hours'",
            random.i64(-500..2_000)
        ),
    };
    let reading = [
        "NULL".to_owned(),
        "'{}'".to_owned(),
        "'[1]'".to_owned(),
        format!(
            r#"'{{"after": {{"row_id_start": {}, "data_file_id": {}}},
                "began_at": "2026-11-20T00:00:00Z", "is_listing": {}, "is_full": {},
                "census": {{"kept": {{}}, "next_expiry": null}}}}'"#,
            number(random),
            number(random),
            random.bool(),
            random.bool()
        ),
    ];
    let rows = match random.u8(0..4) {
        0 => "DELETE FROM tailrace.calendar".to_owned(),
        1 => format!("UPDATE tailrace.calendar SET last_end = {}", time(random)),
        2 => format!(
            "UPDATE tailrace.calendar SET next_look = {}, range_end = {}",
            time(random),
            time(random)
        ),
        _ => format!(
            "INSERT INTO tailrace.calendar SELECT catalog_id, table_uuid, {}, {}, v, {}, {}, 86400
             FROM tailrace.table_state, unnest(ARRAY['20700', '20780', 'x', '']) AS v
             ON CONFLICT DO NOTHING",
            random.u8(0..3),
            random.bool(),
            time(random),
            time(random)
        ),
    };
    format!(
        "{rows};
         UPDATE tailrace.table_state SET files_below = {}, through_snapshot = {},
             full_pass_at = {}, reading = {}, census = '{}', unknown_specs = ARRAY[{}],
             day_specs = ARRAY[{}], book = '\\x{:02x}'",
        number(random),
        number(random),
        time(random),
        reading[random.usize(..reading.len())],
        ["{}", "7", r#"{"kept": {"null": {"files": -1, "samples": []}}, "next_expiry": null}"#]
            [random.usize(..3)],
        random.u8(0..3),
        random.u8(0..3),
        random.u8(..)
    )
}

#[tokio::test]
async fn no_calendar_drops_what_stays_and_the_next_full_pass_heals() -> Result<()> {
    let mut scene = Scene::large(&[Field::day("at")]).await?;
    let mut random = Rng::with_seed(4);
    for round in 0..25 {
        let ages: Vec<i64> = (0..12).map(|_| random.i64(-2..60)).collect();
        let kept = ages.iter().filter(|age| **age <= 7).count();
        let mut files: Vec<_> = ages.iter().map(|age| scene.file(*age)).collect();
        files.push(NewFile::new(vec![None]));
        scene.table.append(files).await?;
        scene.sweep().await?;
        let before = scene.live().await?;
        let (young, old) = (random.i64(0..8), random.i64(8..60));
        let new = scene.table.append(vec![scene.file(young), scene.file(old)]).await?.file_ids;
        let wrong = nonsense(&mut random);
        scene.database.sql(&wrong).await?;

        scene.sweep().await?;
        let live = scene.live().await?;
        let mut stays = [&before[..], &new[..1]].concat();
        assert_eq!(
            live.iter().filter(|id| **id != new[1]).collect::<Vec<_>>(),
            stays.iter().collect::<Vec<_>>(),
            "round {round}, {kept} kept: {wrong}"
        );

        // What it overlooked goes by the next full pass, a day later at the latest.
        scene.now = scene.now.plus(DAY);
        scene.sweep().await?;
        scene.sweep().await?;
        let today = scene.now.days() as i64;
        stays.clear();
        for file in scene.table.live_files().await? {
            let day = file.values[0].as_ref().and_then(|text| text.parse::<i64>().ok());
            assert!(
                day.is_none_or(|day| day >= today - 7),
                "round {round}: {day:?} stays, {wrong}"
            );
        }
    }
    Ok(())
}
