//! Tests of the clock against that of the last accepted pass.

use std::time::{Duration, Instant};

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace::sweep::{Progress, Scope, Settings, run_pass};
use tailrace_kit::lake::{Field, NewFile};
use tokio_util::sync::CancellationToken;

use super::{DAY, HOUR, OTHER, Scene, THIS, YEAR};
use crate::support::governed::{live_ids, outcomes};
use crate::support::program::settings;

/// One machine is host and database, and its clock was set.
#[tokio::test]
async fn a_clock_ahead_of_boot_time_drops_nothing_until_it_is_back() -> Result<()> {
    let scene = Scene::new().await?;
    assert_eq!(scene.outcome(scene.agreed(0)).await?, Outcome::NothingToDo);
    assert_eq!(scene.epoch().await?, (0, Some(0)));
    let files = scene.files().await?;
    for jumped in [HOUR + 601, YEAR] {
        let clock = scene.clock(jumped, jumped, Some((HOUR, THIS)));
        assert_eq!(scene.outcome(clock).await?, Outcome::ClockSkew, "{jumped}");
    }
    assert_eq!(scene.live().await?, files);
    assert_eq!(scene.epoch().await?, (0, Some(0)));
    // To the second.
    let clock = scene.clock(HOUR + 600, HOUR + 600, Some((HOUR, THIS)));
    assert_eq!(scene.outcome(clock).await?, Outcome::Dropped);
    assert_eq!(scene.live().await?, files[1..]);
    assert_eq!(scene.epoch().await?, (1, Some(HOUR + 600)));
    assert_eq!(scene.outcome(scene.agreed(2 * HOUR)).await?, Outcome::NothingToDo);
    assert_eq!(scene.epoch().await?, (1, Some(HOUR + 600)));
    Ok(())
}

#[tokio::test]
async fn a_suspend_is_no_jump() -> Result<()> {
    let scene = Scene::new().await?;
    scene.outcome(scene.agreed(0)).await?;
    scene.files().await?;
    // CLOCK_BOOTTIME went on while the machine slept.
    assert_eq!(scene.outcome(scene.agreed(3 * DAY)).await?, Outcome::Dropped);
    assert_eq!(scene.epoch().await?, (0, Some(0)));
    Ok(())
}

#[tokio::test]
async fn another_process_falls_back_to_the_hosts_clock() -> Result<()> {
    let scene = Scene::new().await?;
    scene.outcome(scene.agreed(0)).await?;
    scene.files().await?;
    let restarted = |database, host| scene.clock(database, host, Some((5, OTHER)));
    assert_eq!(scene.outcome(restarted(YEAR, HOUR)).await?, Outcome::ClockSkew);
    assert_eq!(scene.outcome(restarted(HOUR, HOUR)).await?, Outcome::Dropped);
    // From here on its own CLOCK_BOOTTIME counts.
    let (day, boot) = (DAY + HOUR, 5 + HOUR);
    let clock = scene.clock(day, day, Some((boot, OTHER)));
    assert_eq!(scene.outcome(clock).await?, Outcome::ClockSkew);
    Ok(())
}

/// To start the daemon anew does not make a clock right that one before found wrong.
#[tokio::test]
async fn a_restart_does_not_end_a_refusal_by_boot_time() -> Result<()> {
    let scene = Scene::new().await?;
    scene.outcome(scene.agreed(0)).await?;
    let files = scene.files().await?;
    let jumped = scene.clock(YEAR, YEAR, Some((HOUR, THIS)));
    assert_eq!(scene.outcome(jumped).await?, Outcome::ClockSkew);
    for seconds in [YEAR + 60, YEAR + DAY, YEAR - 600] {
        let restarted = scene.clock(seconds, seconds, Some((5, OTHER)));
        assert_eq!(scene.outcome(restarted).await?, Outcome::ClockSkew, "{seconds}");
    }
    // Nor does a refusal for another reason in between.
    let apart = scene.clock(YEAR + 60, 2 * HOUR, Some((5, OTHER)));
    assert_eq!(scene.outcome(apart).await?, Outcome::ClockSkew);
    let restarted = scene.clock(YEAR + 60, YEAR + 60, Some((5, OTHER)));
    assert_eq!(scene.outcome(restarted).await?, Outcome::ClockSkew);
    assert_eq!(scene.live().await?, files);
    // Back before it.
    let back = scene.clock(2 * HOUR, 2 * HOUR, Some((5, OTHER)));
    assert_eq!(scene.outcome(back).await?, Outcome::Dropped);
    assert_eq!(scene.epoch().await?, (1, Some(2 * HOUR)));
    Ok(())
}

/// It counts from the earliest refusal for boot time, whatever was refused before for another reason.
#[tokio::test]
async fn a_refusal_by_boot_time_counts_from_its_own_time() -> Result<()> {
    let boot = |scene: &Scene, seconds| scene.clock(seconds, seconds, Some((HOUR, THIS)));
    let other = |scene: &Scene, seconds| scene.clock(seconds, seconds, Some((5, OTHER)));
    // The host was wrong first, and the database was right.
    let scene = Scene::new().await?;
    scene.outcome(scene.agreed(0)).await?;
    scene.outcome(scene.clock(60, HOUR, None)).await?;
    assert_eq!(scene.outcome(boot(&scene, YEAR)).await?, Outcome::ClockSkew);
    assert_eq!(scene.outcome(other(&scene, HOUR)).await?, Outcome::NothingToDo);
    // The database was further ahead first.
    let scene = Scene::new().await?;
    scene.outcome(scene.agreed(0)).await?;
    scene.outcome(scene.clock(YEAR, HOUR, None)).await?;
    for seconds in [2 * DAY, DAY, 2 * DAY] {
        assert_eq!(scene.outcome(boot(&scene, seconds)).await?, Outcome::ClockSkew);
    }
    assert_eq!(scene.outcome(other(&scene, DAY - 600)).await?, Outcome::ClockSkew);
    assert_eq!(scene.outcome(other(&scene, DAY - 601)).await?, Outcome::NothingToDo);
    Ok(())
}

/// What was noted by a clock that was ahead is of an older epoch, though no pass was refused.
#[tokio::test]
async fn a_clock_that_is_set_back_begins_an_epoch() -> Result<()> {
    let scene = Scene::new().await?;
    scene.outcome(scene.agreed(DAY)).await?;
    let back = |seconds| scene.clock(seconds, seconds, Some((5, OTHER)));
    assert_eq!(scene.outcome(back(DAY - 600)).await?, Outcome::NothingToDo);
    assert_eq!(scene.epoch().await?, (0, Some(DAY)));
    assert_eq!(scene.outcome(back(HOUR)).await?, Outcome::NothingToDo);
    assert_eq!(scene.epoch().await?, (1, Some(HOUR)));
    Ok(())
}

#[tokio::test]
async fn one_catalog_does_not_stop_another() -> Result<()> {
    let scene = Scene::new().await?;
    let files = scene.files().await?;
    // The last accepted pass was this process's in the one, and another's in the other.
    scene.outcome(scene.agreed(0)).await?;
    let pond = scene.database.catalog("pond").await?;
    let other = scene.database.table(&pond, "other", &[Field::day("at")]).await?;
    scene.database.govern(&other, "at", "7d").await?;
    assert_eq!(scene.live().await?, files[1..]);
    scene.table.append(vec![NewFile::of(["18000"])]).await?;
    other.append(vec![NewFile::of(["18000"])]).await?;
    let report = scene.pass(scene.clock(DAY, DAY, Some((HOUR, THIS)))).await?;
    let expected = [("raw", Outcome::ClockSkew), ("other", Outcome::Dropped)];
    assert_eq!(outcomes(&report), expected);
    assert_eq!((scene.live().await?.len(), live_ids(&other).await?.len()), (3, 0));
    Ok(())
}

/// A pass reads the clock once, and may come to a catalog after another daemon's pass that began
/// later: that is no clock that was set back.
#[tokio::test]
async fn a_pass_of_another_daemon_in_between_is_no_jump() -> Result<()> {
    let scene = Scene::new().await?;
    let first = scene.database.catalog("alpha").await?;
    let table = scene.database.table(&first, "first", &[Field::day("at")]).await?;
    scene.database.govern(&table, "at", "7d").await?;
    // So little is allowed for that the time that other passes take is more than twice that.
    let max_clock_skew = Duration::from_millis(20);
    let settings = Settings { max_clock_skew, parallel_catalogs: 1, ..settings() };
    let database = scene.database.tailrace();
    let between = |progress: Progress<'_>| {
        let Progress::Table(table) = progress else { return };
        if table.catalog != "alpha" {
            return;
        }
        let (database, began) = (database.clone(), Instant::now());
        let others = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let scope = Scope { catalog: Some("lake".to_owned()), table: None };
            let stop = CancellationToken::new();
            while began.elapsed() < 5 * max_clock_skew {
                let pass = run_pass(&database, &settings, &scope, &stop, &|_| {});
                let report = runtime.block_on(pass)?;
                anyhow::ensure!(report.failures() == 0, "{report:?}");
            }
            anyhow::Ok(())
        });
        others.join().expect("no panic").expect("passes");
    };
    let stop = CancellationToken::new();
    let report =
        run_pass(&scene.database.tailrace(), &settings, &Scope::default(), &stop, &between).await?;
    let nothing = Outcome::NothingToDo;
    assert_eq!(outcomes(&report), [("first", nothing), ("raw", nothing)]);
    assert_eq!(scene.epoch().await?.0, 0);
    Ok(())
}
