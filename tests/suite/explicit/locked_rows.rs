//! Tests of a commit lock or a row lock that cannot be acquired in time: nothing is written, and
//! the answer says when to try again.

use std::time::Duration;

use anyhow::Result;
use tailrace::explicit::call::DropBody;
use tailrace::explicit::problem::Problem;
use tailrace_kit::simulated_loops::HeldFiles;

use crate::support::gate::Gate;

use super::{Scene, days, file, ledger, patient};

fn timeout(reason: &str) -> Problem {
    let retry_after = Duration::from_secs(1);
    Problem::CommitQueueTimeout { reason: reason.to_owned(), retry_after }
}

#[tokio::test]
async fn a_lock_that_is_not_granted_in_time_is_a_503() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1")]).await?;
    let before = scene.everything().await?;
    let gate = Gate::shut(&scene.catalog).await?;
    let mut bounds = patient();
    bounds.limits.lock_timeout = Duration::from_millis(50);
    let body = days(["1"]);
    let refused = scene.call_with(&body, &bounds).await?.expect_err("somebody has the lock");
    assert_eq!(
        refused,
        timeout("the commit lock could not be acquired in time (drop.lock_timeout)")
    );
    assert_eq!((refused.status(), refused.code()), (503, "commit_queue_timeout"));
    // A dry run takes no lock, so it has not to wait for one.
    let dry = DropBody { dry_run: true, ..body.clone() };
    assert_eq!(scene.call_with(&dry, &bounds).await??.files_ended, 1);
    gate.open().await?;
    assert_eq!(scene.everything().await?, before);
    let answer = scene.done(&body).await?;
    assert_eq!((answer.files_ended, answer.replayed), (1, false));
    Ok(())
}

/// Unlike a pass, which leaves the busy partitions for later, a list goes as a whole or not at all.
#[tokio::test]
async fn one_row_that_a_hydrator_holds_rolls_all_of_it_back() -> Result<()> {
    let scene = Scene::new().await?;
    let files = vec![file("1"), file("2").pending(), file("3"), file("4").pending()];
    let ids = scene.table.append(files).await?.file_ids;
    scene.table.register_vector(ids[0], 1, None).await?;
    let held = HeldFiles::hold(&scene.catalog, 1).await?;
    assert_eq!(held.file_ids, [ids[1]]);
    let locked = "somebody else has locked rows of the named partitions (drop.row_lock_timeout)";
    let body = days(["1", "2", "3"]);
    let refused = scene.refused(&body).await?;
    assert_eq!(refused, timeout(locked));
    let truncated = scene.truncate(&Default::default()).await?;
    assert_eq!(truncated, Err(timeout(locked)));
    // The commit lock is free, and partitions without a held row go.
    assert_eq!(scene.done(&days(["3", "4"])).await?.files_ended, 2);
    scene.table.append(vec![file("5")]).await?;
    held.finish().await?;
    let answer = scene.done(&body).await?;
    assert_eq!((answer.files_ended, answer.delete_files_ended, answer.replayed), (2, 1, false));
    ledger::agrees(&scene.catalog).await
}

/// A write that would hold the lock for longer than `drop.max_hold` is ended by the server.
#[tokio::test]
async fn a_hold_that_grows_too_long_is_given_up() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1").pending()]).await?;
    let held = HeldFiles::hold(&scene.catalog, 1).await?;
    let mut bounds = patient();
    bounds.limits.row_lock_timeout = Duration::from_secs(60);
    bounds.limits.max_hold = Duration::from_millis(100);
    let before = scene.everything().await?;
    let refused = scene.call_with(&days(["1"]), &bounds).await?.expect_err("it takes too long");
    let expected = "the drop took longer than drop.max_hold and was rolled back whole";
    assert_eq!(refused, timeout(expected));
    assert_eq!(scene.everything().await?, before);
    held.release().await?;
    Ok(())
}
