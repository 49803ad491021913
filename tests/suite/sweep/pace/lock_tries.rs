//! Tests of a commit lock that cannot be acquired.

use std::time::Duration;

use anyhow::Result;
use tailrace::sweep::Settings;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::NewFile;

use super::{governed, one_by_one};
use crate::support::TestDatabase;
use crate::support::gate::Gate;
use crate::support::governed::outcomes;
use crate::support::program::days_ago;
use crate::support::timer::{TestTimer, pacing};

fn hurried(lock_timeout: u64) -> Settings {
    let mut settings = one_by_one();
    settings.limits.lock_timeout = Duration::from_millis(lock_timeout);
    settings
}

#[tokio::test]
async fn it_is_retried_after_a_pause_outside_the_queue() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = governed(&database, &catalog, "raw", [8]).await?;
    let gate = Gate::shut(&catalog).await?;
    let timer = TestTimer::holding();
    let pacing = pacing(&timer);
    let settings = hurried(1_000);
    let sweep = database.sweep_paced(&settings, &pacing, &|_| {});
    let open = async {
        timer.sleeps(1).await?;
        // Whoever comes now is not behind us.
        gate.open().await?;
        let other = table.append(vec![NewFile::of([days_ago(0)])]).await?;
        timer.let_go();
        anyhow::Ok(other.snapshot_id)
    };
    let (report, other) = tokio::try_join!(sweep, open)?;
    let [report] = report.tables.as_slice() else { panic!("{report:?}") };
    assert_eq!((report.outcome, &report.error), (Outcome::Dropped, &None));
    assert_eq!(report.snapshots[0].snapshot_id, other + 1);
    let pauses = timer.slept();
    assert!(pauses.len() == 1 && (500..=1_000).contains(&pauses[0].as_millis()), "{pauses:?}");
    Ok(())
}

#[tokio::test]
async fn a_table_gives_up_after_five_tries_and_the_next_one_after_one() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    governed(&database, &catalog, "first", [8]).await?;
    governed(&database, &catalog, "second", [8]).await?;
    let gate = Gate::shut(&catalog).await?;
    let timer = TestTimer::new();
    let report = database.sweep_paced(&hurried(20), &pacing(&timer), &|_| {}).await?;
    gate.open().await?;
    let both = [("first", Outcome::LockTimeout), ("second", Outcome::LockTimeout)];
    assert_eq!(outcomes(&report), both);
    let tries = |at: usize| report.tables[at].error.clone().unwrap_or_default();
    assert!(tries(0).ends_with("(sweep.lock_timeout), after 5 tries"), "{}", tries(0));
    assert!(tries(1).ends_with("(sweep.lock_timeout), after 1 try"), "{}", tries(1));
    let pauses = timer.slept();
    assert_eq!(pauses.len(), 4);
    for (pause, longest) in pauses.iter().zip([20, 40, 80, 160]) {
        assert!((longest / 2..=longest).contains(&pause.as_millis()), "{pauses:?}");
    }
    Ok(())
}

/// A pause that would outlast the pass is not begun.
#[tokio::test]
async fn nobody_waits_beyond_the_end_of_the_pass() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    governed(&database, &catalog, "raw", [8]).await?;
    let gate = Gate::shut(&catalog).await?;
    let timer = TestTimer::new();
    let settings = Settings { max_duration: Duration::from_millis(25), ..hurried(20) };
    let report = database.sweep_paced(&settings, &pacing(&timer), &|_| {}).await?;
    gate.open().await?;
    assert_eq!(outcomes(&report), [("raw", Outcome::LockTimeout)]);
    assert_eq!(timer.slept().len(), 1);
    Ok(())
}
