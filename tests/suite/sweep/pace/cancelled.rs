//! Tests of commits that are cancelled because they take too long. A row that somebody else has
//! locked, and a limit for that wait which is longer than that of a statement, make a commit as
//! slow as a test needs.

use std::time::Duration;

use anyhow::Result;
use tailrace::sweep::Settings;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile, Table};
use tailrace_kit::simulated_loops::HeldFiles;

use super::one_by_one;
use crate::support::TestDatabase;
use crate::support::governed::{live_ids, snapshots};
use crate::support::program::days_ago;
use crate::support::timer::{TestTimer, pacing};

/// A table with two files on each of three days, and the oldest of its files held.
async fn with_a_held_file() -> Result<(TestDatabase, Table, HeldFiles)> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let mut files = vec![NewFile::of([days_ago(10)]).pending(), NewFile::of([days_ago(10)])];
    files.extend([9, 9, 8, 8].map(|age| NewFile::of([days_ago(age)])));
    table.append(files).await?;
    database.govern(&table, "day(at)", "7d").await?;
    let held = HeldFiles::hold(&catalog, 10).await?;
    Ok((database, table, held))
}

/// Two files a commit, each cancelled after so many milliseconds.
fn bounded(max_hold: u64) -> Settings {
    let mut settings = one_by_one();
    settings.batch.files_per_commit = 2;
    settings.limits.max_hold = Duration::from_millis(max_hold);
    settings.limits.row_lock_timeout = Duration::from_secs(60);
    settings
}

#[tokio::test]
async fn a_cancelled_commit_comes_again_after_the_others_at_its_size() -> Result<()> {
    let (database, table, held) = with_a_held_file().await?;
    let timer = TestTimer::holding();
    let pacing = pacing(&timer);
    let settings = bounded(2_000);
    let sweep = database.sweep_paced(&settings, &pacing, &|_| {});
    let release = async {
        timer.sleeps(1).await?;
        assert_eq!(live_ids(&table).await?.len(), 2, "the others are gone");
        held.release().await?;
        timer.let_go();
        anyhow::Ok(())
    };
    let (report, ()) = tokio::try_join!(sweep, release)?;
    let [report] = report.tables.as_slice() else { panic!("{report:?}") };
    assert_eq!((report.outcome, &report.error), (Outcome::Dropped, &None));
    let sizes: Vec<_> = snapshots(report).into_iter().map(|(files, _)| files).collect();
    assert_eq!(sizes, [2, 2, 2]);
    let last = &report.snapshots[2].partitions[0].partition_values;
    assert_eq!(*last, [Some(days_ago(10))]);
    let pauses = timer.slept();
    assert_eq!(pauses.len(), 1);
    assert!((2_500..=5_000).contains(&pauses[0].as_millis()), "{pauses:?}");
    Ok(())
}

#[tokio::test]
async fn a_commit_that_is_cancelled_again_and_again_is_left() -> Result<()> {
    let (database, table, held) = with_a_held_file().await?;
    let timer = TestTimer::new();
    let report = database.sweep_paced(&bounded(1_000), &pacing(&timer), &|_| {}).await?;
    held.release().await?;
    let [report] = report.tables.as_slice() else { panic!("{report:?}") };
    assert_eq!(report.outcome, Outcome::Failed);
    assert_eq!(
        report.error.as_deref(),
        Some("the work under the commit lock ran into drop.max_hold and was rolled back whole")
    );
    assert_eq!((report.counts().files, live_ids(&table).await?.len()), (4, 2));
    let pauses: Vec<_> = timer.slept().iter().map(Duration::as_secs_f64).collect();
    assert_eq!(pauses.len(), 4, "five tries");
    for (pause, longest) in pauses.iter().zip([5.0, 10.0, 20.0, 40.0]) {
        assert!((longest / 2.0..=longest).contains(pause), "{pauses:?}");
    }
    Ok(())
}

/// Then another turn, or the next pass, tries it.
#[tokio::test]
async fn a_cancelled_commit_that_has_no_time_left_is_reported() -> Result<()> {
    let (database, table, held) = with_a_held_file().await?;
    let settings = Settings { max_duration: Duration::from_secs(2), ..bounded(1_000) };
    let timer = TestTimer::new();
    let late = pacing(&timer);
    // The pause of at least 2.5 s would end after the pass.
    let stuck = |_: tailrace::sweep::Progress<'_>| timer.advance(Duration::from_millis(500));
    let report = database.sweep_paced(&settings, &late, &stuck).await?;
    held.release().await?;
    let [report] = report.tables.as_slice() else { panic!("{report:?}") };
    assert_eq!(report.outcome, Outcome::Partial);
    assert!(report.error.as_deref().unwrap_or_default().contains("drop.max_hold"), "{report:?}");
    assert_eq!(live_ids(&table).await?.len(), 2);
    assert_eq!(timer.slept(), []);
    Ok(())
}
