//! Tests that a refused range of tuples that is not halved to the end is continued with by the next
//! time slice or pass.

use std::time::Duration;

use anyhow::Result;
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::Settings;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile};

use super::{NOW, Scene};
use crate::support::governed::{live_ids, of_table};
use crate::support::program::settings;
use crate::support::timer::{TestTimer, pacing};

/// The time of the pass of this number, ten minutes after the one before.
fn time(pass: u32) -> Result<UtcInstant> {
    Ok(NOW.parse::<UtcInstant>()?.plus(Duration::from_secs(600) * pass))
}

/// Passes with time for one commit each: the refused one is halved by the sixth and the seventh, after all
/// that nobody has tried, and the tuple that is left keeps nothing of what comes later.
#[tokio::test]
async fn passes_with_time_for_one_commit_each_get_through() -> Result<()> {
    let scene = Scene::days(10).await?;
    scene.refuse(&[0], "no").await?;
    let mut settings =
        Settings { max_duration: Duration::from_millis(1), lock_duty: 0.001, ..settings() };
    settings.batch.files_per_commit = 2;
    let partial = (Outcome::Partial, false);
    for (pass, (live, refusals, told)) in (0..).zip([
        (10, 1, partial),
        (8, 0, partial),
        (6, 0, partial),
        (4, 0, partial),
        (2, 0, partial),
        (2, 1, partial),
        (1, 0, partial),
        // It is all that is left, and nothing else of the table goes through.
        (1, 1, (Outcome::Failed, true)),
        (1, 1, (Outcome::Failed, true)),
    ]) {
        settings.as_of = Some(time(pass)?);
        let timer = TestTimer::new();
        let report = scene.database.sweep_paced(&settings, &pacing(&timer), &|_| {}).await?;
        let raw = of_table(&report, "raw");
        let left = scene.live().await?.len();
        let seen = (left, scene.refusals().await?, (raw.outcome, raw.error.is_some()));
        assert_eq!(seen, (live, refusals, told), "pass {pass}: {:?}", raw.error);
    }
    assert_eq!(scene.live().await?, [0]);
    // With time enough it is found to be at fault beside one that goes.
    scene.table.append(vec![NewFile::of(["18010"])]).await?;
    let report = scene.sweep_at("2026-12-01T12:00:00Z").await?;
    assert_eq!((report.outcome, report.snapshots.len()), (Outcome::Poisoned, 1));
    assert_eq!(scene.parts().await?, 0);
    Ok(())
}

/// A table whose time slice is over after a refused commit has another turn in the same pass: nothing is known yet
/// of whose fault it is. The pause after a refusal is longer than the turn, which is a ninth of the pass.
#[tokio::test]
async fn a_refused_commit_does_not_end_the_turns_of_its_table() -> Result<()> {
    let scene = Scene::days(4).await?;
    for number in 1..9 {
        let name = format!("zoo{number}");
        let other = scene.database.table(&scene.catalog, &name, &[Field::day("at")]).await?;
        scene.database.govern(&other, "day(at)", "7d").await?;
    }
    scene.refuse_slowly(&[0], "no", "perform pg_sleep(0.1);").await?;
    let mut settings = Settings {
        as_of: Some(NOW.parse()?),
        max_duration: Duration::from_secs(60),
        lock_duty: 0.01,
        ..settings()
    };
    settings.batch.files_per_commit = 2;
    let timer = TestTimer::new();
    let report = scene.database.sweep_paced(&settings, &pacing(&timer), &|_| {}).await?;
    let raw = of_table(&report, "raw");
    assert_eq!((raw.outcome, raw.snapshots.len()), (Outcome::Poisoned, 2), "{:?}", raw.error);
    assert_eq!((scene.live().await?, scene.refusals().await?), (vec![0], 2));
    Ok(())
}

/// One tenant of four is refused: sixteen commits of many days and tenants fail before one goes through. So
/// it is where all tenants are of one day.
#[tokio::test]
async fn the_other_tenants_go_where_one_of_four_is_refused() -> Result<()> {
    for tenants_a_day in [4, 1_024] {
        let mut scene = Scene::days(0).await?;
        let spec = [Field::day("at"), Field::identity("kind")];
        let table = scene.database.table(&scene.catalog, "tenants", &spec).await?;
        let file = |number: i64| {
            let (day, tenant) = (number / tenants_a_day, number % tenants_a_day);
            NewFile::of([(18_000 + day).to_string(), format!("t{tenant:04}")])
        };
        scene.files = table.append((0..1_024).map(file).collect()).await?.file_ids;
        scene.database.govern(&table, "day(at)", "7d").await?;
        let refused: Vec<usize> = (1..1_024).step_by(4).collect();
        scene.refuse(&refused, "no").await?;
        let mut told = Vec::new();
        for pass in 0..3 {
            let report = scene.sweep_at(&time(pass)?.to_string()).await?;
            told.push((report.outcome, live_ids(&table).await?.len(), scene.refusals().await?));
        }
        let expected = [
            (Outcome::Failed, 1_024, 16),
            (Outcome::Failed, 640, 512),
            (Outcome::Poisoned, 256, 495),
        ];
        assert_eq!(told, expected, "{tenants_a_day}");
        assert_eq!((live_ids(&table).await?.len(), scene.parts().await?), (256, 0));
    }
    Ok(())
}

/// Each commit at the old end has one refused tuple of two, and there are more than sixteen of them: the
/// next pass begins with those that were not tried, and then halves.
#[tokio::test]
async fn over_16_refused_commits_at_the_old_end_hold_up_no_newer_one() -> Result<()> {
    let scene = Scene::days(50).await?;
    let poison: Vec<usize> = (0..34).step_by(2).collect();
    scene.refuse(&poison, "no").await?;
    let mut settings = settings();
    settings.batch.files_per_commit = 2;
    let first = scene.sweep_with(&settings, NOW).await?;
    assert_eq!((first.outcome, first.snapshots.len()), (Outcome::Failed, 0), "{:?}", first.error);
    assert_eq!((scene.refusals().await?, scene.parts().await?), (16, 16));
    let second = scene.sweep_with(&settings, "2026-11-30T12:10:00Z").await?;
    assert_eq!(second.outcome, Outcome::Poisoned, "{:?}", second.error);
    assert_eq!(second.snapshots.len(), 8 + 17);
    assert_eq!((scene.refusals().await?, scene.parts().await?), (1 + 17, 0));
    assert_eq!(scene.live().await?, poison);
    Ok(())
}
