//! Tests of a connection that breaks around COMMIT: the drop is whole or absent, and the pass finds
//! out which, and reports the drop once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use tailrace::sweep::report::{Outcome, TableReport};
use tailrace::sweep::{Scope, run_pass};
use tailrace_kit::simulated_loops::HeldFiles;
use tokio_util::sync::CancellationToken;

use crate::support::gate::caught_at_a_row;
use crate::support::program::days_ago;
use crate::support::proxy::Cut;
use crate::support::wait::until;

use super::{Scene, file, only, patient, texts, whole};

/// A pass through a network that cuts the first COMMIT.
async fn sweep_with_cut(scene: &Scene, cut: Cut) -> Result<TableReport> {
    let (proxy, through) = scene.database.through_proxy().await?;
    let (mut settings, scope, stop) = (patient(), Scope::default(), CancellationToken::new());
    settings.batch.files_per_commit = 2;
    proxy.cut_next(cut);
    let mut report = run_pass(&through, &settings, &scope, &stop, &|_| {}).await?;
    assert!(proxy.has_cut());
    assert_eq!(report.tables.len(), 1);
    Ok(report.tables.remove(0))
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_recognised_and_logged_once() -> Result<()> {
    let scene = Scene::new(&[0, 8, 9, 10]).await?;
    scene.table.register_vector(scene.files[3], 2, None).await?;
    let head = scene.catalog.head().await?;
    let report = sweep_with_cut(&scene, Cut::AfterCommit).await?;
    assert_eq!((report.outcome, &report.error), (Outcome::Dropped, &None));
    let [first, second] = report.snapshots.as_slice() else { panic!("{report:?}") };
    assert_eq!((first.snapshot_id, second.snapshot_id), (head + 1, head + 2));
    assert_eq!(texts(first), [(days_ago(10), 1), (days_ago(9), 1)]);
    assert_eq!((first.files_ended, first.delete_files_ended, first.records), (2, 1, 20));
    assert_eq!(texts(second), [(days_ago(8), 1)]);
    let drops = whole::drops(&scene.catalog, scene.table.table_id).await?;
    assert_eq!(drops, [(head + 1, 2), (head + 2, 1)]);
    Ok(())
}

#[tokio::test]
async fn a_commit_that_never_arrived_is_made_again_once() -> Result<()> {
    let scene = Scene::new(&[0, 8, 9, 10]).await?;
    let head = scene.catalog.head().await?;
    let report = sweep_with_cut(&scene, Cut::BeforeCommit).await?;
    assert_eq!((report.outcome, &report.error), (Outcome::Dropped, &None));
    let told: Vec<_> = report.snapshots.iter().map(|s| (s.snapshot_id, s.files_ended)).collect();
    assert_eq!(told, [(head + 1, 2), (head + 2, 1)]);
    assert_eq!(whole::drops(&scene.catalog, scene.table.table_id).await?, told);
    assert_eq!(scene.live().await?, [scene.files[0]]);
    Ok(())
}

/// The session that broke keeps the lease until the server notices. Its owner waits for that, for
/// nobody else has taken it over.
#[tokio::test]
async fn a_lost_session_that_lingers_does_not_shut_out_its_own_pass() -> Result<()> {
    let scene = Scene::new(&[0, 8, 9]).await?;
    let head = scene.catalog.head().await?;
    let (proxy, mut through) = scene.database.through_proxy().await?;
    through.options = through.options.application_name("through");
    let (settings, scope, stop) = (patient(), Scope::default(), CancellationToken::new());
    proxy.cut_next(Cut::AfterCommitHalf);
    let ended = AtomicBool::new(false);
    let pass = async {
        let report = run_pass(&through, &settings, &scope, &stop, &|_| {}).await;
        ended.store(true, Ordering::Relaxed);
        report
    };
    let notice = async {
        until("the new session has asked for the lease in vain", async || {
            let asked: bool = sqlx::query_scalar(
                "SELECT count(*) > 1 AND bool_or(query LIKE 'select pg_catalog.pg_try_advisory_lock%'
                                                 AND state = 'idle')
                   FROM pg_stat_activity
                  WHERE datname = current_database() AND application_name = 'through'",
            )
            .fetch_one(scene.catalog.pool())
            .await?;
            Ok(asked || ended.load(Ordering::Relaxed))
        })
        .await?;
        proxy.let_go();
        Ok(())
    };
    let (report, ()) = tokio::try_join!(pass, notice)?;
    let [report] = report.tables.as_slice() else { panic!("{report:?}") };
    assert_eq!((report.outcome, &report.error), (Outcome::Dropped, &None));
    assert_eq!((only(report).snapshot_id, only(report).files_ended), (head + 1, 2));
    assert_eq!(whole::drops(&scene.catalog, scene.table.table_id).await?, [(head + 1, 2)]);
    Ok(())
}

/// What was left out as busy is still told when the answer is lost.
#[tokio::test]
async fn a_lost_answer_does_not_hide_a_busy_tuple() -> Result<()> {
    let scene = Scene::of(vec![file(8), file(9).pending()]).await?;
    let held = HeldFiles::hold(&scene.catalog, 10).await?;
    let report = sweep_with_cut(&scene, Cut::AfterCommit).await?;
    assert_eq!(texts(only(&report)), [(days_ago(8), 1)]);
    assert_eq!((report.outcome, &report.error), (Outcome::Busy, &None));
    held.release().await?;
    Ok(())
}

/// An operator ends our session while it holds the commit lock.
#[tokio::test]
async fn a_session_that_is_ended_under_the_lock_starts_over() -> Result<()> {
    let scene = Scene::of(vec![file(0), file(8), file(9).pending()]).await?;
    let head = scene.catalog.head().await?;
    let held = HeldFiles::hold(&scene.catalog, 10).await?;
    let mut settings = patient();
    settings.limits.row_lock_timeout = Duration::from_secs(60);
    let operator = async {
        let first = caught_at_a_row(&scene.catalog).await?;
        sqlx::query("SELECT pg_terminate_backend($1)")
            .bind(first)
            .execute(scene.catalog.pool())
            .await?;
        let mut second = first;
        while second == first {
            second = caught_at_a_row(&scene.catalog).await?;
        }
        Ok(held.release().await?)
    };
    let (report, ()) = tokio::try_join!(scene.sweep_with(&settings), operator)?;
    assert_eq!((report.outcome, &report.error), (Outcome::Dropped, &None));
    assert_eq!(only(&report).snapshot_id, head + 1);
    assert_eq!(whole::drops(&scene.catalog, scene.table.table_id).await?, [(head + 1, 2)]);
    Ok(())
}
