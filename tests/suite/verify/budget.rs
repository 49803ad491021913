//! Tests of a check that could not be completed: it is never `ok`, and does not prevent other
//! checks.

use std::time::Duration;

use anyhow::Result;
use tailrace::sweep::Scope;
use tailrace::verify::report::{Check, Status};
use tailrace::verify::{Settings, verify};

use super::{Scene, of, of_status, settings};

#[tokio::test]
async fn without_a_budget_nothing_is_ok() -> Result<()> {
    let (scene, _) = Scene::swept().await?;
    let report = scene.report_with(&Settings { budget: Duration::ZERO, ..settings() }).await?;
    assert_eq!(of_status(&report, Status::Incomplete), Check::ALL);
    assert_eq!(report.status, Status::Incomplete);
    for check in &report.catalogs[0].checks {
        assert_eq!((check.count, check.complete), (0, false));
        assert_eq!(check.notes, ["it needs longer than verify.budget"], "{check:?}");
    }
    Ok(())
}

/// A statement that the server refuses, or cancels, leaves the transaction to the next check.
#[tokio::test]
async fn a_check_that_meets_a_lock_is_the_only_one_that_suffers() -> Result<()> {
    let (scene, _) = Scene::swept().await?;
    let mut holder = scene.database.lake.pool().begin().await?;
    sqlx::raw_sql("LOCK TABLE hog_snapshot_change").execute(&mut *holder).await?;
    let report = scene.report().await?;
    holder.rollback().await?;
    assert_eq!(of_status(&report, Status::Incomplete), [Check::DropHistory], "{report:#?}");
    let others = of_status(&report, Status::Ok);
    assert_eq!(others.len(), Check::ALL.len() - 1);
    let notes = &of(&report, Check::DropHistory)?.notes;
    let expected = "the database says: canceling statement due to lock timeout (SQLSTATE 55P03)";
    assert_eq!(notes, &[expected]);
    scene.violated(&[]).await?;
    Ok(())
}

/// The budget is the server's own limit too.
#[tokio::test]
async fn a_statement_is_cancelled_when_the_budget_is_over() -> Result<()> {
    let (scene, _) = Scene::swept().await?;
    scene
        .database
        .sql(
            "ALTER TABLE hog_snapshot_change RENAME TO all_changes;
             CREATE VIEW hog_snapshot_change AS
               SELECT c.* FROM all_changes c WHERE (SELECT true FROM pg_sleep(3600))",
        )
        .await?;
    let report =
        scene.report_with(&Settings { budget: Duration::from_secs(3), ..settings() }).await?;
    assert_eq!(of_status(&report, Status::Incomplete), [Check::DropHistory], "{report:#?}");
    let notes = &of(&report, Check::DropHistory)?.notes;
    assert_eq!(notes, &["it needs longer than verify.budget"]);
    Ok(())
}

/// A check is waited for as long as its budget is, whatever other statements of the session may take.
#[tokio::test]
async fn a_budget_that_is_longer_than_a_statement_is_waited_for() -> Result<()> {
    let (scene, _) = Scene::swept().await?;
    scene
        .database
        .sql(
            "ALTER TABLE hog_snapshot_change RENAME TO all_changes;
             CREATE VIEW hog_snapshot_change AS
               SELECT c.* FROM all_changes c WHERE (SELECT true FROM pg_sleep(2))",
        )
        .await?;
    let mut database = scene.database.tailrace();
    database.patience.statement = Duration::from_secs(1);
    database.patience.slack = Duration::from_millis(500);
    let settings = Settings { budget: Duration::from_secs(60), ..settings() };
    let report = verify(&database, &settings, &Scope::default()).await?;
    assert_eq!(of(&report, Check::DropHistory)?.status, Status::Ok, "{report:#?}");
    Ok(())
}

/// What was found before the budget ran out stays found.
#[tokio::test]
async fn a_violation_counts_however_the_check_ends() -> Result<()> {
    let (scene, drop) = Scene::swept().await?;
    scene
        .database
        .sql(&format!(
            "DELETE FROM hog_snapshot_change WHERE snapshot_id = {drop};
             DROP INDEX hog_data_file_ended"
        ))
        .await?;
    let report = scene.violated(&[Check::DropHistory]).await?;
    let found = of(&report, Check::DropHistory)?;
    assert_eq!((found.count, found.complete), (1, false));
    assert!(found.notes[0].contains("hog_data_file_ended"), "{found:?}");
    Ok(())
}
