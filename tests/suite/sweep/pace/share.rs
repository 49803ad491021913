//! Tests of the share of time for which tailrace holds the commit lock.

use std::time::Duration;

use anyhow::Result;
use tailrace::sweep::Settings;
use tailrace::sweep::report::{Outcome, PassReport};
use tailrace_kit::lake::{Field, NewFile};
use tailrace_kit::simulated_loops::HeldFiles;

use super::{governed, one_by_one};
use crate::support::TestDatabase;
use crate::support::governed::outcomes;
use crate::support::program::days_ago;
use crate::support::timer::{TestTimer, pacing};

fn a_fifth() -> Settings {
    Settings { lock_duty: 0.2, ..one_by_one() }
}

/// The holds of all snapshots, in the order in which they were made.
fn holds(reports: &[PassReport]) -> Vec<Duration> {
    let mut snapshots: Vec<_> =
        reports.iter().flat_map(|pass| &pass.tables).flat_map(|table| &table.snapshots).collect();
    snapshots.sort_by_key(|snapshot| snapshot.snapshot_id);
    snapshots.iter().map(|snapshot| Duration::from_secs_f64(snapshot.lock_hold_ms / 1e3)).collect()
}

/// A rest is as long as four times the hold before it, whichever table or pass that was in; and
/// after the last commit nobody waits.
#[tokio::test]
async fn rests_are_kept_between_tables_and_between_passes() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    governed(&database, &catalog, "first", [10, 9, 8]).await?;
    let second = governed(&database, &catalog, "second", [9, 8]).await?;
    let timer = TestTimer::new();
    let pacing = pacing(&timer);
    let before = database.sweep_paced(&a_fifth(), &pacing, &|_| {}).await?;
    second.append(vec![NewFile::of([days_ago(8)])]).await?;
    let after = database.sweep_paced(&a_fifth(), &pacing, &|_| {}).await?;
    assert_eq!(outcomes(&before), [("first", Outcome::Dropped), ("second", Outcome::Dropped)]);
    assert_eq!(outcomes(&after), [("first", Outcome::NothingToDo), ("second", Outcome::Dropped)]);
    let (holds, rests) = (holds(&[before, after]), timer.slept());
    assert_eq!((holds.len(), rests.len()), (6, 5));
    for (hold, rest) in holds.iter().zip(&rests) {
        // A report has whole microseconds.
        let off = rest.abs_diff(*hold * 4);
        assert!(off < Duration::from_micros(10), "{hold:?}, then {rest:?}");
    }
    Ok(())
}

#[tokio::test]
async fn the_catalogs_do_not_rest_for_each_other() -> Result<()> {
    let database = TestDatabase::new().await?;
    for name in ["lake", "pond"] {
        governed(&database, &database.catalog(name).await?, "raw", [9]).await?;
    }
    let timer = TestTimer::new();
    let report = database.sweep_paced(&a_fifth(), &pacing(&timer), &|_| {}).await?;
    assert_eq!(outcomes(&report), [("raw", Outcome::Dropped), ("raw", Outcome::Dropped)]);
    assert_eq!(timer.slept(), []);
    Ok(())
}

/// A drop that meets a locked row is rolled back, after it has held the commit lock for the wait.
#[tokio::test]
async fn a_hold_that_was_rolled_back_counts() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let files = vec![NewFile::of([days_ago(9)]).pending(), NewFile::of([days_ago(8)])];
    table.append(files).await?;
    database.govern(&table, "day(at)", "7d").await?;
    let held = HeldFiles::hold(&catalog, 10).await?;
    let mut settings = a_fifth();
    settings.limits.row_lock_timeout = Duration::from_millis(200);
    let timer = TestTimer::new();
    let report = database.sweep_paced(&settings, &pacing(&timer), &|_| {}).await?;
    held.release().await?;
    assert_eq!(outcomes(&report), [("raw", Outcome::Busy)]);
    assert_eq!(report.counts().files, 1);
    let rests = timer.slept();
    assert!(rests.len() == 1 && rests[0] >= Duration::from_millis(800), "{rests:?}");
    Ok(())
}
