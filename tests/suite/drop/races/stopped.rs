//! Tests of a daemon that is stopped or disconnected while it holds the commit lock.

use std::time::Duration;

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace::sweep::{Scope, run_pass};
use tailrace_kit::simulated_loops::HeldFiles;
use tokio_util::sync::CancellationToken;

use crate::support::gate::caught_at_a_row;
use crate::support::program::days_ago;
use crate::support::wait::until;

use super::{Scene, file, only, patient, texts, whole};

async fn scene_with_a_held_row() -> Result<(Scene, HeldFiles)> {
    let scene = Scene::of(vec![file(0), file(8), file(9).pending()]).await?;
    scene.table.register_vector(scene.files[1], 1, None).await?;
    let held = HeldFiles::hold(&scene.catalog, 10).await?;
    Ok((scene, held))
}

/// The server rolls the stopped one back: another writer commits while it cannot do anything.
/// When it goes on it finds its session gone, and does all of it again.
#[tokio::test]
async fn a_stopped_process_frees_the_commit_lock_within_seconds() -> Result<()> {
    let (scene, held) = scene_with_a_held_row().await?;
    let head = scene.catalog.head().await?;
    // The wait for the held row is where it can be caught with the lock in its hands.
    let run = scene.database.start(
        &["sweep", "--output", "json"],
        &[("TAILRACE__DROP__ROW_LOCK_TIMEOUT", "8s"), ("TAILRACE__SWEEP__LOCK_DUTY", "1.0")],
    )?;
    caught_at_a_row(&scene.catalog).await?;
    run.signal("STOP").await?;
    until("the process stands still", async || Ok(run.state().await? == 'T')).await?;
    held.release().await?;
    let other = scene.table.append(vec![file(0)]).await?;
    assert_eq!(other.snapshot_id, head + 1, "nothing of ours was committed");
    assert_eq!(run.state().await?, 'T', "all of this without it");
    assert_eq!(whole::drops(&scene.catalog, scene.table.table_id).await?, []);
    assert_eq!(scene.live().await?.len(), 4);

    run.signal("CONT").await?;
    let ended = run.end().await?;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report = ended.json()?;
    let [snapshot] = report["tables"][0]["snapshots"].as_array().expect("snapshots").as_slice()
    else {
        panic!("{report}")
    };
    assert_eq!(snapshot["snapshot_id"], head + 2);
    assert_eq!((&snapshot["files_ended"], &snapshot["delete_files_ended"]), (&2.into(), &1.into()));
    assert_eq!(report["tables"][0]["outcome"], "dropped");
    assert_eq!(whole::drops(&scene.catalog, scene.table.table_id).await?, [(head + 2, 2)]);
    assert_eq!(scene.live().await?, [scene.files[0], other.file_ids[0]]);
    Ok(())
}

/// The network takes every packet and delivers none.
#[tokio::test]
async fn an_unplugged_client_frees_the_commit_lock_within_seconds() -> Result<()> {
    let (scene, held) = scene_with_a_held_row().await?;
    let head = scene.catalog.head().await?;
    let (proxy, through) = scene.database.through_proxy().await?;
    let (mut settings, scope, stop) = (patient(), Scope::default(), CancellationToken::new());
    settings.limits.row_lock_timeout = Duration::from_secs(8);
    let pass = run_pass(&through, &settings, &scope, &stop, &|_| {});
    let unplug = async {
        caught_at_a_row(&scene.catalog).await?;
        proxy.unplug();
        held.release().await?;
        let other = scene.table.append(vec![file(0)]).await?;
        assert_eq!(other.snapshot_id, head + 1, "nothing of ours was committed");
        proxy.plug_in();
        Ok(other)
    };
    let (report, other) = tokio::try_join!(pass, unplug)?;
    let [report] = report.tables.as_slice() else { panic!("{report:?}") };
    assert_eq!((report.outcome, &report.error), (Outcome::Dropped, &None));
    assert_eq!(texts(only(report)), [(days_ago(9), 1), (days_ago(8), 1)]);
    assert_eq!(whole::drops(&scene.catalog, scene.table.table_id).await?, [(head + 2, 2)]);
    assert_eq!(scene.live().await?, [scene.files[0], other.file_ids[0]]);
    Ok(())
}
