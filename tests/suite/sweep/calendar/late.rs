//! Tests of late files in partitions that had expired before.

use anyhow::Result;
use tailrace::rules::scan_limits::ScanLimits;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Column, Field, NewFile};
use tailrace_kit::simulated_loops::{Compaction, HeldFiles};

use super::{Scene, small_steps};

/// Sizes of steps.
fn ways() -> [ScanLimits; 2] {
    [ScanLimits { small_table: 1_000, ..small_steps() }, small_steps()]
}

#[tokio::test]
async fn late_files_are_dropped_with_the_next_incremental_pass() -> Result<()> {
    for (way, scan_limits) in ways().into_iter().enumerate() {
        let mut scene = Scene::new(&[Field::month("at")]).await?;
        // A neighbour takes ids and has the same texts.
        let neighbour =
            scene.database.table(&scene.catalog, "neighbour", &[Field::month("at")]).await?;
        scene.settings.scan_limits = scan_limits;
        let young = scene.table.append(vec![NewFile::of(["683"]); 20]).await?.file_ids;
        scene.sweep().await?;
        neighbour.append(vec![NewFile::of(["600"]); 5_000]).await?;
        let months = ["600", "0", "-800", "x", "683", "683"];
        let ids =
            scene.table.append(months.map(|text| NewFile::of([text])).to_vec()).await?.file_ids;
        let swept = scene.sweep().await?;
        assert_eq!((swept.outcome, swept.full), (Outcome::Dropped, Some(false)), "way {way}");
        assert_eq!(
            (swept.counts().files, scene.live().await?),
            (3, [&young[..], &ids[3..]].concat()),
            "way {way}"
        );
        assert_eq!(neighbour.live_files().await?.len(), 5_000);
        let again = scene.sweep().await?;
        assert_eq!((again.outcome, again.full), (Outcome::NothingToDo, Some(false)), "way {way}");
    }
    Ok(())
}

#[tokio::test]
async fn an_output_of_compaction_is_as_late_as_an_append() -> Result<()> {
    for scan_limits in ways() {
        let mut scene = Scene::new(&[Field::day("at")]).await?;
        scene.settings.scan_limits = scan_limits;
        let files = vec![scene.file(9).pending(), scene.file(9).pending(), scene.file(0)];
        let ids = scene.table.append(files).await?.file_ids;
        // Busy files stay, and the next pass looks at them again.
        let held = HeldFiles::hold(&scene.catalog, 10).await?;
        assert_eq!(scene.sweep().await?.outcome, Outcome::Busy);
        assert!(scene.rows().await?[0].starts_with(&format!("1 {} ", scene.day(9))));
        let busy = scene.sweep().await?;
        assert_eq!((busy.outcome, busy.full), (Outcome::Busy, Some(false)));
        held.finish().await?;
        // Meanwhile they were made into one.
        Compaction::new(&scene.catalog, 1 << 30).run(&scene.table).await?;
        let live = scene.live().await?;
        assert_eq!((live.len(), live[0]), (2, ids[2]));
        let swept = scene.sweep().await?;
        assert_eq!((swept.outcome, swept.full), (Outcome::Dropped, Some(false)));
        assert_eq!(scene.live().await?, ids[2..]);
        assert_eq!(scene.rows().await?.len(), 1);
    }
    Ok(())
}

/// A day of which a neighbour has far more files than the table has in all.
#[tokio::test]
async fn a_crowded_day_is_found_through_the_table() -> Result<()> {
    let mut scene = Scene::new(&[Field::day("at")]).await?;
    scene.settings.scan_limits = ScanLimits { small_table: 10, ..small_steps() };
    let neighbour = scene.database.table(&scene.catalog, "neighbour", &[Field::day("at")]).await?;
    let ids = scene.table.append(vec![scene.file(7), scene.file(6)]).await?.file_ids;
    neighbour.append(vec![scene.file(7); 50]).await?;
    scene.sweep().await?;
    scene.now = "2026-12-01T00:00:00Z".parse()?;
    let swept = scene.sweep().await?;
    assert_eq!((swept.outcome, swept.full), (Outcome::Dropped, Some(false)));
    assert_eq!(scene.live().await?, ids[1..]);
    assert_eq!(neighbour.live_files().await?.len(), 50);
    Ok(())
}

/// Two values of a day of which nothing is known come late, in one statement and in several: both have the row of
/// that day.
#[tokio::test]
async fn late_instants_of_one_new_day_have_one_row() -> Result<()> {
    let columns = [Column::new("when", "timestamp")];
    for scan_limits in ways() {
        let mut scene = Scene::new(&[Field::day("at")]).await?;
        scene.settings.scan_limits = scan_limits;
        let spec = [Field::identity("when")];
        scene.table = scene.database.table_of(&scene.catalog, "a_named", &columns, &spec).await?;
        scene.database.govern(&scene.table, "when", "7d").await?;
        // So many that the late ones are few beside them.
        scene.table.append(vec![NewFile::of(["2026-11-30T09:00:00"]); 10]).await?;
        scene.sweep().await?;
        let late = ["2026-11-29T09:00:00", "2026-11-29T03:00:00", "2026-11-29T21:00:00"];
        let files = late.map(|text| NewFile::of([text])).to_vec();
        let ids = scene.table.append(files).await?.file_ids;
        let swept = scene.sweep().await?;
        assert_eq!((swept.outcome, swept.full), (Outcome::NothingToDo, Some(false)));
        let rows = scene.rows().await?;
        assert_eq!(rows.len(), 2, "{rows:?}");
        assert!(rows[0].ends_with(" 2026-11-29T03:00"), "{rows:?}");
        for (hour, left) in [("03", 2), ("09", 1), ("21", 0)] {
            scene.now = format!("2026-12-06T{hour}:00:00Z").parse()?;
            assert_eq!(scene.sweep().await?.counts().files, 1, "{hour}");
            assert_eq!(scene.live().await?.len(), 10 + left, "{hour}, of {ids:?}");
        }
    }
    Ok(())
}
