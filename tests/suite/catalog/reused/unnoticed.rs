//! Tests of a restore to a time between two passes, after a command or a renewal of claims has
//! noted something of the catalog.

use anyhow::Result;
use tailrace::claims::renew;
use tailrace_kit::lake::{Column, Field, NewFile};
use tailrace_kit::simulated_loops::Cleanup;

use super::Scene;
use crate::support::governed::{live_ids, outcomes};
use crate::support::program::{days_ago, proven_18000};

/// The column was added and the policy set between two passes, and the restore is to the time of the
/// first of them: the column's id is another one's now.
#[tokio::test]
async fn a_policy_set_by_a_command_binds_no_column_that_got_the_id() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0]).await?;
    scene.sweep().await?;
    let backup = scene.database.back_up("before").await?;
    let late = scene.table.add_column(None, Column::new("late", "timestamptz")).await?;
    scene.table.evolve_spec(&[Field::day("late")]).await?;
    scene.database.policy("lake", "events.raw", "late", "7d").await?;
    scene.database.restore(&backup).await?;
    scene.sweep().await?;
    let birth = scene.table.add_column(None, Column::new("birth", "timestamptz")).await?;
    assert_eq!(late.get("late"), birth.get("birth"));
    scene.table.evolve_spec(&[Field::day("birth")]).await?;
    let raw = scene.catalog.open_table("events", "raw").await?;
    let born = raw.append(vec![proven_18000("birth")]).await?.file_ids;
    let report = scene.sweep().await?;
    assert!(scene.live().await?.contains(&born[0]), "nobody set a policy on birth: {report:#?}");
    Ok(())
}

/// A renewal copied a spec that no pass has seen, and the restore took it back.
#[tokio::test]
async fn a_spec_that_a_renewal_copied_disputes_no_other_one() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0]).await?;
    scene.sweep().await?;
    let backup = scene.database.back_up("before").await?;
    scene.table.evolve_spec(&[Field::month("at")]).await?;
    renew(&scene.database.tailrace(), &crate::claims::settings(), None).await?;
    scene.database.restore(&backup).await?;
    scene.table.evolve_spec(&[Field::hour("at")]).await?;
    let hour = days_ago(9).parse::<i64>()? * 24;
    let old = scene.table.append(vec![NewFile::of([hour.to_string()])]).await?.file_ids;
    let report = scene.sweep().await?;
    assert!(
        !scene.live().await?.contains(&old[0]),
        "an hour of nine days ago under the one spec 2 that the catalog has: {report:#?}"
    );
    Ok(())
}

/// Expiry and cleanup make no snapshot: a backup of the very head that is the newest may be of before them.
/// The floor says so, for it never goes back by itself.
#[tokio::test]
async fn a_restore_to_the_same_head_before_the_purge_loses_no_drop() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0, 3]).await?;
    let (_, first) = scene.request(3).await?;
    scene.append([0]).await?;
    scene.sweep().await?;
    let backup = scene.database.back_up("before").await?;
    scene.floor_to(first.snapshot_id).await?.purge().await?;
    scene.sweep().await?;
    Cleanup::new(&scene.catalog).run(10).await?;
    scene.sweep().await?;
    assert_eq!(scene.stages().await?, [(first.snapshot_id, "gone", false)]);
    scene.database.restore(&backup).await?;
    scene.sweep().await?;
    let ended =
        format!("SELECT count(*) FROM hog_data_file WHERE end_snapshot = {}", first.snapshot_id);
    assert_eq!(scene.database.text(&ended).await?.as_deref(), Some("1"));
    assert_eq!(scene.stages().await?, [(first.snapshot_id, "retained", false)]);
    Ok(())
}

/// The wrong backup first, of before the table: its tombstones are left as they are. Then a later one, in
/// which the table is back and the column is not: no fact shows it, for those above the first one's head
/// were forgotten.
#[tokio::test]
async fn a_policy_that_comes_back_binds_no_column_that_got_the_id() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0]).await?;
    scene.sweep().await?;
    let wrong = scene.database.back_up("wrong_one").await?;
    let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    scene.append([0]).await?;
    let good = scene.database.back_up("good_one").await?;
    let late = other.add_column(None, Column::new("late", "timestamptz")).await?;
    other.evolve_spec(&[Field::day("late")]).await?;
    scene.database.govern(&other, "late", "7d").await?;
    scene.database.sweep().await?;
    scene.database.restore(&wrong).await?;
    scene.database.sweep().await?;
    scene.database.restore(&good).await?;
    scene.database.sweep().await?;
    let birth = other.add_column(None, Column::new("birth", "timestamptz")).await?;
    assert_eq!(late.get("late"), birth.get("birth"));
    other.evolve_spec(&[Field::day("birth")]).await?;
    let raw = scene.catalog.open_table("events", "other").await?;
    let born = raw.append(vec![proven_18000("birth")]).await?.file_ids;
    let report = scene.database.sweep().await?;
    assert!(
        live_ids(&raw).await?.contains(&born[0]),
        "nobody set a policy on birth: {:?}",
        outcomes(&report)
    );
    Ok(())
}
