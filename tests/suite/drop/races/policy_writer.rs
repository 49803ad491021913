//! Tests of a drop and a writer of its policy at the same time.

use std::time::Duration;

use anyhow::{Context, Result};
use tailrace::sweep::report::Outcome;
use tailrace_kit::simulated_loops::HeldFiles;

use crate::support::gate::{Gate, caught_at_a_row, queue};
use crate::support::wait::until;

use super::{Scene, file, patient, whole};

/// The drop does not wait for the writer while all others wait for the drop. The limit for
/// locks is far away, so that only NOWAIT can explain that it came back.
#[tokio::test]
async fn a_policy_that_is_being_written_stops_the_drop_at_once() -> Result<()> {
    let scene = Scene::new(&[0, 8, 9]).await?;
    let head = scene.catalog.head().await?;
    let mut settings = patient();
    settings.limits.lock_timeout = Duration::from_secs(600);
    let mut writer = scene.database.pool.begin().await?;
    let gate = Gate::shut(&scene.catalog).await?;
    let meanwhile = async {
        queue(&scene.catalog, 1).await?;
        let locked: Vec<i64> =
            sqlx::query_scalar("SELECT revision FROM tailrace.policy FOR UPDATE")
                .fetch_all(&mut *writer)
                .await?;
        assert_eq!(locked.len(), 1);
        gate.open().await
    };
    let both = async { tokio::try_join!(scene.sweep_with(&settings), meanwhile) };
    let (report, ()) = tokio::time::timeout(Duration::from_secs(60), both)
        .await
        .context("the drop waits for the policy's writer under the commit lock")??;
    assert_eq!((report.outcome, report.error), (Outcome::PolicyChanged, None));
    assert_eq!(scene.catalog.head().await?, head);
    assert_eq!(whole::drops(&scene.catalog, scene.table.table_id).await?, []);
    writer.rollback().await?;
    assert_eq!(scene.sweep().await?.outcome, Outcome::Dropped);
    Ok(())
}

/// Once `policy set` has returned, no commit by the old policy lands.
#[tokio::test]
async fn a_policy_writer_waits_for_the_drop_that_is_in_its_commit() -> Result<()> {
    let scene = Scene::of(vec![file(12).pending(), file(11), file(10), file(9)]).await?;
    let old = revision(&scene).await?;
    let mut settings = patient();
    settings.batch.files_per_commit = 1;
    settings.limits.row_lock_timeout = Duration::from_secs(60);
    // The rest after a commit is four times as long as its hold: time for the writer.
    settings.lock_duty = 0.2;
    let held = HeldFiles::hold(&scene.catalog, 1).await?;
    assert_eq!(held.file_ids, scene.files[..1]);

    let change = async {
        caught_at_a_row(&scene.catalog).await?;
        let set = scene.database.policy("lake", "events.raw", "day(at)", "30d");
        let release = async {
            until("the policy's writer waits for the drop", async || {
                let waiting: i64 = sqlx::query_scalar(
                    "SELECT count(*) FROM pg_stat_activity
                      WHERE datname = current_database() AND wait_event_type = 'Lock'
                        AND query LIKE 'select source from tailrace.policy%for update'",
                )
                .fetch_one(scene.catalog.pool())
                .await?;
                Ok(waiting == 1)
            })
            .await?;
            assert_eq!(revision(&scene).await?, old, "the writer has written nothing yet");
            Ok(held.release().await?)
        };
        tokio::try_join!(set, release)?;
        // What is committed by now is all that the old policy ever does.
        whole::drops(&scene.catalog, scene.table.table_id).await
    };
    let (report, at_return) = tokio::try_join!(scene.sweep_with(&settings), change)?;
    assert_eq!(at_return.len(), 1);
    assert_eq!(report.outcome, Outcome::PolicyChanged);
    assert_eq!(report.snapshots.len(), 1);
    assert_eq!(whole::drops(&scene.catalog, scene.table.table_id).await?, at_return);
    assert_eq!(scene.live().await?, scene.files[1..]);
    assert!(revision(&scene).await? > old);
    Ok(())
}

async fn revision(scene: &Scene) -> Result<i64> {
    Ok(sqlx::query_scalar("SELECT revision FROM tailrace.policy")
        .fetch_one(scene.catalog.pool())
        .await?)
}
