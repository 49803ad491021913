//! Tests of commits between a restore and the next pass: a new column with an id that was given out
//! before, or a drop by request, whose snapshot agrees with the catalog.

use anyhow::Result;
use tailrace::explicit::drop_partitions;
use tailrace::sweep::report::Outcome;
use tailrace::verify::report::Status;
use tailrace::verify::verify;
use tailrace_kit::lake::{Column, Field, NewFile};
use tailrace_kit::simulated_loops::Cleanup;

use super::Scene;
use crate::explicit::{drop_of, of_spec, patient, raw};
use crate::support::TestDatabase;
use crate::support::governed::live_ids;
use crate::support::program::{days_ago, proven_18000};
use crate::verify::{of_status, settings};

const SPECS: &str = "SELECT string_agg(spec_id || ' ' || (fields -> 0 ->> 'transform'), ', '
                                       ORDER BY spec_id, fields -> 0 ->> 'transform')
                       FROM tailrace.spec_copy";

/// The policy was set on a column that the restore took back; another column has got its id before any
/// pass looked.
#[tokio::test]
async fn no_policy_binds_a_column_that_got_the_id_before_any_pass() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0]).await?;
    scene.sweep().await?;
    let backup = scene.database.back_up("before").await?;
    let late = scene.table.add_column(None, Column::new("late", "timestamptz")).await?;
    scene.table.evolve_spec(&[Field::day("late")]).await?;
    scene.database.govern(&scene.table, "late", "7d").await?;
    scene.sweep().await?;
    scene.database.restore(&backup).await?;
    let birth = scene.table.add_column(None, Column::new("birth", "timestamptz")).await?;
    assert_eq!(late.get("late"), birth.get("birth"));
    scene.table.evolve_spec(&[Field::day("birth")]).await?;
    // Born in 2019, by the value and by the statistics.
    let raw = scene.catalog.open_table("events", "raw").await?;
    let born = raw.append(vec![proven_18000("birth")]).await?.file_ids;
    let ran = scene.database.ran(&["sweep"]).await?;
    assert_eq!(ran.events("catalog_restored").len(), 1, "{}", ran.err);
    scene.sweep().await?;
    assert!(scene.live().await?.contains(&born[0]), "nobody set a policy on birth: {}", ran.err);
    Ok(())
}

/// The same with a drop by request as the first thing after the restore: it agrees, and lies below the
/// heads that do not; what was learned before the restore is older than it, and not older than the restore.
#[tokio::test]
async fn a_policy_is_paused_after_a_drop_by_request() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0, 3]).await?;
    scene.sweep().await?;
    let backup = scene.database.back_up("before").await?;
    let late = scene.table.add_column(None, Column::new("late", "timestamptz")).await?;
    scene.table.evolve_spec(&[Field::day("late")]).await?;
    scene.database.govern(&scene.table, "late", "7d").await?;
    scene.sweep().await?;
    scene.a_day_passes().await?;
    scene.database.restore(&backup).await?;
    scene.request(3).await?;
    scene.sweep().await?;
    let mode = scene.database.text("SELECT mode FROM tailrace.policy").await?;
    let birth = scene.table.add_column(None, Column::new("birth", "timestamptz")).await?;
    assert_eq!(late.get("late"), birth.get("birth"));
    scene.table.evolve_spec(&[Field::day("birth")]).await?;
    let raw = scene.catalog.open_table("events", "raw").await?;
    let born = raw.append(vec![proven_18000("birth")]).await?.file_ids;
    let outcome = scene.sweep().await?.outcome;
    assert!(scene.live().await?.contains(&born[0]), "nobody set a policy on birth: {outcome:?}");
    assert_eq!((mode.as_deref(), outcome), (Some("paused"), Outcome::Paused));
    Ok(())
}

/// A drop that stands was noted as gone after the time to which the catalog is restored: its files are
/// there again, and can be read at earlier snapshots.
#[tokio::test]
async fn a_drop_that_stands_is_not_gone_before_a_pass_looked() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0, 3]).await?;
    let (_, first) = scene.request(3).await?;
    let dropped = first.snapshot_id;
    scene.append([0]).await?;
    let backup = scene.database.back_up("before").await?;
    scene.append([0]).await?;
    scene.floor_to(dropped).await?.purge().await?;
    scene.sweep().await?;
    Cleanup::new(&scene.catalog).run(10).await?;
    scene.sweep().await?;
    assert_eq!(scene.stages().await?, [(dropped, "gone", false)]);
    scene.database.restore(&backup).await?;
    assert_eq!(scene.stages().await?, [(dropped, "retained", false)]);
    let report = verify(&scene.database.tailrace(), &settings(), &Default::default()).await?;
    assert_eq!(of_status(&report, Status::Violated), [], "{report:#?}");
    Ok(())
}

/// The same after passes, where a drop by request was the first thing after the restore.
#[tokio::test]
async fn a_drop_that_stands_is_not_gone_after_a_drop_by_request() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0, 3, 4]).await?;
    let (_, first) = scene.request(3).await?;
    let dropped = first.snapshot_id;
    scene.append([0]).await?;
    let backup = scene.database.back_up("before").await?;
    for _ in 0..3 {
        scene.append([0]).await?;
    }
    scene.floor_to(dropped).await?.purge().await?;
    scene.sweep().await?;
    Cleanup::new(&scene.catalog).run(10).await?;
    scene.sweep().await?;
    scene.a_day_passes().await?;
    assert_eq!(scene.stages().await?, [(dropped, "gone", false)]);
    scene.database.restore(&backup).await?;
    let (_, second) = scene.request(4).await?;
    scene.sweep().await?;
    scene.sweep().await?;
    assert_eq!(
        scene.stages().await?,
        [(second.snapshot_id, "retained", false), (dropped, "retained", false)],
        "its file has a row: {:?}",
        scene.table.all_files().await?.iter().map(|file| file.end_snapshot).collect::<Vec<_>>()
    );
    Ok(())
}

/// The copy of a spec that the restore took back keeps its id, and disputes the spec that gets it, for
/// ever: what expires under it stays.
#[tokio::test]
async fn a_spec_is_not_disputed_after_a_drop_by_request() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0, 3]).await?;
    scene.sweep().await?;
    let backup = scene.database.back_up("before").await?;
    scene.table.evolve_spec(&[Field::month("at")]).await?;
    scene.append([0]).await?;
    scene.sweep().await?;
    scene.a_day_passes().await?;
    scene.database.restore(&backup).await?;
    scene.request(3).await?;
    scene.table.evolve_spec(&[Field::hour("at")]).await?;
    scene.sweep().await?;
    assert_eq!(
        scene.database.text(SPECS).await?.as_deref(),
        Some("-2 month, 1 day, 2 hour"),
        "as without the drop by request"
    );
    Ok(())
}

/// The spec is made again after the restore as it was, with the id and the snapshot that it had, and then
/// comes a drop by request. The mark says from which row on every writer knows the spec; it is of the rows
/// and the time of before.
#[tokio::test]
async fn a_mark_is_not_carried_over_after_a_drop_by_request() -> Result<()> {
    for comes_first in [false, true] {
        let database = TestDatabase::new().await?;
        let catalog = database.catalog("lake").await?;
        let table = database.table(&catalog, "raw", &[Field::bucket("kind", 100)]).await?;
        table.append(vec![NewFile::of(["7"]).records(10)]).await?;
        table.append(vec![NewFile::of(["8"]).records(10)]).await?;
        database.sweep().await?;
        let backup = database.back_up("before").await?;
        table.evolve_spec(&[Field::day("at")]).await?;
        for _ in 0..3 {
            table.append(vec![NewFile::of([days_ago(0)]).records(10)]).await?;
        }
        database.sweep().await?;
        // Noted a window after the spec was seen, at the row that was the next one then.
        database
            .sql(
                "UPDATE tailrace.spec_copy
                    SET mark_row_id = 50, watched_from = 50, mark_due = NULL,
                        copied_at = clock_timestamp() - interval '9 days',
                        marked_at = clock_timestamp() - interval '2 days'
                  WHERE spec_id = 2;
                 UPDATE tailrace.spec_copy SET copied_at = clock_timestamp() - interval '9 days'
                  WHERE spec_id = 1;
                 UPDATE tailrace.noted_head SET noted_at = noted_at - interval '10 days'",
            )
            .await?;
        database.restore(&backup).await?;
        table.evolve_spec(&[Field::day("at")]).await?;
        if comes_first {
            let mut session = database.tailrace().session().await?;
            let body = drop_of(vec![of_spec(1, [Some("8")])]);
            drop_partitions(&mut session, &raw(), &body, "me", &patient()).await?;
        }
        database.govern(&table, "at", "7d").await?;
        database.sweep().await?;
        table.append(vec![NewFile::of([days_ago(0)]).records(40)]).await?;
        // A writer that has bucket(kind) in its cache, minutes after the spec was made: rows of today.
        let stale = table.append(vec![NewFile::of(["42"]).records(10)]).await?.file_ids;
        let report = database.sweep().await?;
        assert!(
            live_ids(&table).await?.contains(&stale[0]),
            "a drop by request came first: {comes_first}; rows of today were ended: {report:#?}"
        );
    }
    Ok(())
}
