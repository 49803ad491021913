//! Tests that a refused commit is blamed on its tuple only where other commits of the table
//! succeed.

use std::time::Duration;

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace::sweep::{Progress, Settings};
use tailrace_kit::lake::{Field, NewFile};

use super::{NOW, Scene};
use crate::support::governed::of_table;
use crate::support::program::settings;
use crate::support::timer::{TestTimer, pacing};

#[tokio::test]
async fn where_nothing_goes_through_it_is_the_tables() -> Result<()> {
    // All alone fail, or sixteen commits in a row. The next pass goes on from there, and blames none.
    for (count, refusals, named, snapshots) in [
        (1, [1, 1], "2019-04-14", 1),
        (2, [3, 2], "2019-04-14", 2),
        (4, [7, 4], "2019-04-14", 4),
        (40, [16, 16], "2019-04-19", 19),
    ] {
        let scene = Scene::days(count).await?;
        let all: Vec<usize> = (0..scene.files.len()).collect();
        scene.refuse(&all, "nothing goes").await?;
        let head = scene.catalog.head().await?;
        for ((at, refusals), day) in
            [NOW, "2026-11-30T12:10:00Z"].into_iter().zip(refusals).zip(["2019-04-14", named])
        {
            let report = scene.sweep_at(at).await?;
            assert_eq!((report.outcome, report.snapshots.len()), (Outcome::Failed, 0), "{count}");
            let error = format!(
                "partition {day}: the database says: nothing goes (SQLSTATE P0001); in PL/pgSQL \
                 function refuse_files() line 4 at RAISE"
            );
            assert_eq!(report.error, Some(error), "{count}");
            assert_eq!(scene.refusals().await?, refusals, "{count}");
            assert_eq!(scene.waiting().await?.len(), 0, "{count}");
        }
        assert_eq!(scene.catalog.head().await?, head);
        // Once it is mended all goes.
        scene.let_go().await?;
        let report = scene.sweep_at("2026-11-30T12:20:00Z").await?;
        let seen = (report.outcome, report.snapshots.len(), scene.parts().await?);
        assert_eq!(seen, (Outcome::Dropped, snapshots, 0), "{count}");
    }
    Ok(())
}

/// The tuple fails alone before anything else of the table was even found.
#[tokio::test]
async fn what_succeeds_in_a_later_round_counts() -> Result<()> {
    for (poison, outcome, waiting) in
        [(vec![0], Outcome::Poisoned, 1), (vec![0, 1, 2], Outcome::Failed, 0)]
    {
        let scene = Scene::days(3).await?;
        scene.refuse(&poison, "no").await?;
        let mut settings = settings();
        settings.scan_limits.small_table = 0;
        (settings.scan_limits.values_at_once, settings.scan_limits.tuples_at_hand) = (1, 1);
        let report = scene.sweep_with(&settings, NOW).await?;
        assert_eq!(report.outcome, outcome, "{:?}", report.error);
        assert_eq!(scene.live().await?, poison);
        assert_eq!(scene.waiting().await?.len(), waiting);
    }
    Ok(())
}

/// What was found before still counts when nothing else is left to go through.
#[tokio::test]
async fn a_known_one_stays_known_and_others_are_not_blamed_for_it() -> Result<()> {
    let mut scene = Scene::days(4).await?;
    scene.refuse(&[1], "no").await?;
    scene.sweep_at(NOW).await?;
    scene.files.extend(scene.table.append(vec![NewFile::of(["18010"])]).await?.file_ids);
    scene.refuse(&[1, 4], "no").await?;
    let report = scene.sweep_at("2026-11-30T13:00:00Z").await?;
    assert_eq!(report.outcome, Outcome::Failed, "{:?}", report.error);
    assert!(report.error.is_some_and(|error| error.starts_with("partition 2019-04-24: ")));
    let [known] = &scene.waiting().await?[..] else { panic!("one waits") };
    assert_eq!((&known["display"], &known["tries"]), (&"2019-04-15".into(), &2.into()));
    Ok(())
}

/// The table's turn is over after one commit that went through, and the refused ones are tried again in
/// its next turn, where nothing else is left.
#[tokio::test]
async fn what_succeeded_in_an_earlier_time_slice_counts() -> Result<()> {
    let scene = Scene::days(3).await?;
    let other = scene.database.table(&scene.catalog, "zoo", &[Field::day("at")]).await?;
    scene.database.govern(&other, "day(at)", "7d").await?;
    scene.refuse(&[0, 1], "no").await?;
    let mut settings = Settings { as_of: Some(NOW.parse()?), lock_duty: 1.0, ..settings() };
    settings.batch.files_per_commit = 2;
    assert_eq!(settings.max_duration, Duration::from_secs(600));
    let timer = TestTimer::new();
    let progress = |progress: Progress<'_>| {
        if let Progress::Dropped { .. } = progress {
            timer.advance(Duration::from_secs(400));
        }
    };
    let report = scene.database.sweep_paced(&settings, &pacing(&timer), &progress).await?;
    let raw = of_table(&report, "raw");
    assert_eq!((raw.outcome, raw.snapshots.len()), (Outcome::Poisoned, 1), "{:?}", raw.error);
    assert_eq!(scene.live().await?, [0, 1]);
    assert_eq!((scene.waiting().await?.len(), scene.refusals().await?), (2, 3));
    Ok(())
}
