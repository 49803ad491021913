//! Tests of pauses and holds that change while a drop is planned or committed: a drop commits before the change
//! does, or heeds it.

use std::time::Duration;

use anyhow::{Context, Result};
use tailrace::guards::pause::PauseScope;
use tailrace::guards::release::release;
use tailrace::rules::hold::HoldScope;
use tailrace_kit::simulated_loops::HeldFiles;

use super::{TABLE, partitions};
use crate::explicit::{Scene, days, file, patient};
use crate::support::gate::{Gate, caught_at_a_row, queue, while_it_waits};
use crate::support::program::{days_ago, settings};
use crate::support::wait::until;

async fn governed() -> Result<Scene> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file(&days_ago(9)), file(&days_ago(8))]).await?;
    scene.database.policy("lake", "events.raw", "day(at)", "7d").await?;
    Ok(scene)
}

/// The drop waits for the commit lock with its plan made; no row that it knows changes.
#[tokio::test]
async fn a_pause_after_planning_keeps_a_pass_from_committing() -> Result<()> {
    for scope in [PauseScope::All, PauseScope::Catalog("lake"), TABLE] {
        let scene = governed().await?;
        let (report, ()) =
            while_it_waits(&scene.catalog, scene.database.sweep_one(), scene.pause(scope)).await?;
        assert_eq!(report.outcome.name(), "paused", "{scope:?}");
        assert_eq!(scene.live().await?.len(), 2);
    }
    Ok(())
}

/// The same pass plans anew, and drops what is not held.
#[tokio::test]
async fn a_hold_after_planning_keeps_its_partition_alone() -> Result<()> {
    let scene = governed().await?;
    let held = scene.hold(partitions([&days_ago(9)]));
    let (report, _) = while_it_waits(&scene.catalog, scene.database.sweep_one(), held).await?;
    assert_eq!(report.counts().files, 1, "{report:?}");
    let live = crate::support::governed::live_values(&scene.table).await?;
    assert_eq!(live, [[Some(days_ago(9))]]);
    Ok(())
}

#[tokio::test]
async fn an_explicit_drop_is_planned_once_more() -> Result<()> {
    // A hold of something else: the drop goes through.
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1"), file("2")]).await?;
    let body = days(["1"]);
    let held = scene.hold(partitions(["2"]));
    let (answer, _) = while_it_waits(&scene.catalog, scene.done(&body), held).await?;
    assert_eq!(answer.files_ended, 1);
    // A hold of what it names.
    let body = days(["2"]);
    let other = Scene::new().await?;
    other.table.append(vec![file("1"), file("2")]).await?;
    let call = async { anyhow::Ok(other.call(&body).await?.expect_err("it is held")) };
    let (refused, _) = while_it_waits(&other.catalog, call, other.hold(HoldScope::Table)).await?;
    assert_eq!(refused.code(), "partition_held");
    assert_eq!((other.live().await?.len(), other.receipts().await?), (2, 0));
    Ok(())
}

#[tokio::test]
async fn a_drop_that_meets_two_changes_answers_that() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1"), file("2")]).await?;
    let body = days(["1"]);
    let call = async { anyhow::Ok(scene.call(&body).await?.expect_err("it gives up")) };
    let first = Gate::shut(&scene.catalog).await?;
    let changes = async {
        queue(&scene.catalog, 1).await?;
        scene.hold(partitions(["2"])).await?;
        // The second gate waits behind the drop, which is refused, and then waits behind this gate.
        let open_first = async {
            queue(&scene.catalog, 2).await?;
            first.open().await
        };
        let (second, ()) = tokio::try_join!(Gate::shut(&scene.catalog), open_first)?;
        queue(&scene.catalog, 1).await?;
        scene.hold(partitions(["3"])).await?;
        second.open().await
    };
    let (refused, ()) = tokio::try_join!(call, changes)?;
    assert_eq!((refused.status(), refused.code()), (409, "guards_changed"));
    assert_eq!(scene.live().await?.len(), 2);
    assert_eq!(scene.done(&body).await?.files_ended, 1);
    Ok(())
}

/// A pass that meets a writer of guards under the commit lock gives the lock back at once.
#[tokio::test]
async fn a_drop_does_not_wait_for_a_writer_of_guards() -> Result<()> {
    let scene = governed().await?;
    scene.pause(PauseScope::Catalog("lake")).await?;
    scene.resume(PauseScope::Catalog("lake")).await?;
    let mut limits = settings();
    limits.limits.lock_timeout = Duration::from_secs(600);
    limits.limits.row_lock_timeout = Duration::from_secs(600);
    let mut writer = scene.database.pool.begin().await?;
    let gate = Gate::shut(&scene.catalog).await?;
    let meanwhile = async {
        queue(&scene.catalog, 1).await?;
        let locked: Vec<i64> =
            sqlx::query_scalar("SELECT revision FROM tailrace.guard_state FOR UPDATE")
                .fetch_all(&mut *writer)
                .await?;
        assert_eq!(locked.len(), 1);
        gate.open().await?;
        until("the drop has given the lock back", async || {
            crate::support::gate::is_free(&scene.catalog).await
        })
        .await?;
        writer.rollback().await?;
        anyhow::Ok(())
    };
    let both = async { tokio::try_join!(scene.database.sweep_with(&limits), meanwhile) };
    let (report, ()) = tokio::time::timeout(Duration::from_secs(60), both)
        .await
        .context("the drop waits for the writer of guards under the commit lock")??;
    // It plans anew until the writer is through.
    assert_eq!(report.counts().files, 2, "{report:?}");
    Ok(())
}

/// Once `hold add` has returned, no commit lands that ends what it keeps.
#[tokio::test]
async fn a_hold_waits_for_the_drop_that_is_in_its_commit() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1").pending(), file("2")]).await?;
    let mut bounds = patient();
    bounds.limits.row_lock_timeout = Duration::from_secs(60);
    let busy = HeldFiles::hold(&scene.catalog, 1).await?;
    let change = async {
        caught_at_a_row(&scene.catalog).await?;
        let release = async {
            until("the hold waits for the drop", async || {
                let waiting: i64 = sqlx::query_scalar(
                    "SELECT count(*) FROM pg_stat_activity
                      WHERE datname = current_database() AND wait_event_type = 'Lock'
                        AND query LIKE 'insert into tailrace.guard_state%'",
                )
                .fetch_one(scene.catalog.pool())
                .await?;
                Ok(waiting == 1)
            })
            .await?;
            Ok(busy.release().await?)
        };
        let (id, ()) = tokio::try_join!(scene.hold(partitions(["1"])), release)?;
        anyhow::Ok((id, scene.live().await?.len()))
    };
    let body = days(["1"]);
    let (answer, (_, live)) = tokio::try_join!(scene.call_with(&body, &bounds), change)?;
    assert_eq!(
        (answer?.files_ended, live),
        (1, 1),
        "the drop was committed when the hold returned"
    );
    Ok(())
}

/// Each change raises the revision, a pause of everything those of all catalogs.
#[tokio::test]
async fn each_change_raises_the_revision() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1")]).await?;
    assert_eq!(scene.revision().await?, None);
    scene.done(&days(["7"])).await?;
    assert_eq!(scene.revision().await?.as_deref(), Some("0"));
    scene.pause(TABLE).await?;
    assert_eq!(scene.revision().await?.as_deref(), Some("1"));
    scene.resume(TABLE).await?;
    scene.pause(PauseScope::All).await?;
    scene.resume(PauseScope::All).await?;
    let id = scene.hold(HoldScope::Table).await?;
    assert_eq!(scene.revision().await?.as_deref(), Some("5"));
    release(&mut scene.session().await?, id, "ben", Duration::ZERO).await?;
    assert_eq!(scene.revision().await?.as_deref(), Some("6"));
    Ok(())
}

/// A rename raises no revision, and the table had another name when its pauses were read.
#[tokio::test]
async fn a_table_that_gets_a_paused_name_back_is_not_dropped() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1")]).await?;
    scene.pause(TABLE).await?;
    // As if the pause had not covered the table when the drop was planned.
    let other = "update tailrace.pause set table_uuid = gen_random_uuid(), table_name = 'other'";
    scene.database.sql(other).await?;
    let body = days(["1"]);
    let back = async {
        let named = "update tailrace.pause set table_name = 'raw'";
        scene.database.sql(named).await
    };
    let call = async { anyhow::Ok(scene.call(&body).await?.expect_err("it is paused")) };
    let (refused, ()) = while_it_waits(&scene.catalog, call, back).await?;
    assert_eq!(refused.code(), "paused");
    assert_eq!(scene.live().await?.len(), 1);
    Ok(())
}
