//! Tests of the time since which a property is a table's policy.

use anyhow::Result;
use chrono::{TimeDelta, Utc};
use tailrace::verify::report::{Check, Status};

use super::{Scene, of, of_status};
use crate::drop::races::file;

const PROPERTY: &str = "partition_retention";
const WEEK: &str = r#"{"field": "day(at)", "keep": "7d"}"#;
/// The same policy in other words.
const SAME: &str = r#"{"keep": "7d", "field": "day(at)"}"#;

/// A table whose policy is a property from a day ago, without a mirror; three of its files are overdue.
async fn scene() -> Result<Scene> {
    let scene = Scene::new().await?;
    scene.database.sql("DELETE FROM tailrace.policy").await?;
    scene.table.set_property(PROPERTY, Some(WEEK)).await?;
    scene.violated(&[]).await?;
    scene.age().await?;
    overdue(&scene, 3).await?;
    Ok(scene)
}

async fn overdue(scene: &Scene, files: i64) -> Result<()> {
    let expected = [Check::OverdueFiles];
    let report = scene.violated(if files > 0 { &expected } else { &[] }).await?;
    assert_eq!(of(&report, Check::OverdueFiles)?.count, files);
    Ok(())
}

/// When the version of the table began that has the property now, made to be so long ago.
async fn since(scene: &Scene, minutes: i64) -> Result<()> {
    let then = Utc::now() - TimeDelta::minutes(minutes);
    Ok(scene.catalog.backdate_snapshot(scene.catalog.head().await?, then).await?)
}

/// A pass that reads it late makes it no younger.
#[tokio::test]
async fn a_property_counts_from_its_snapshot_and_not_from_its_mirror() -> Result<()> {
    let scene = scene().await?;
    assert_eq!(scene.database.sweep_one().await?.counts().files, 3);
    scene.table.append(vec![file(10), file(9)]).await?;
    let day_ago = Utc::now() - TimeDelta::days(1);
    scene.catalog.backdate_through(scene.catalog.head().await?, day_ago).await?;
    let is_new = "SELECT updated_at > now() - interval '5 minutes' FROM tailrace.policy";
    assert_eq!(scene.database.text(is_new).await?.as_deref(), Some("true"));
    overdue(&scene, 2).await
}

/// Another text is another policy, mirrored or not; what else changes of the table is none.
#[tokio::test]
async fn only_its_own_text_makes_it_younger() -> Result<()> {
    let scene = scene().await?;
    scene.table.rename("other").await?;
    scene.table.set_property("comment", Some("x")).await?;
    overdue(&scene, 3).await?;
    scene.table.set_property(PROPERTY, Some(SAME)).await?;
    overdue(&scene, 0).await?;
    since(&scene, 19).await?;
    overdue(&scene, 0).await?;
    since(&scene, 21).await?;
    overdue(&scene, 3).await?;
    // Away and back again: it has been so since it came back.
    scene.table.set_property(PROPERTY, None).await?;
    scene.table.set_property(PROPERTY, Some(SAME)).await?;
    overdue(&scene, 0).await?;
    since(&scene, 21).await?;
    overdue(&scene, 3).await
}

/// A stored policy won over it until just now.
#[tokio::test]
async fn a_property_that_takes_over_counts_from_then() -> Result<()> {
    let scene = scene().await?;
    scene.database.govern(&scene.table, "day(at)", "300d").await?;
    scene.database.sweep_one().await?;
    scene.age().await?;
    overdue(&scene, 0).await?;
    let unset = ["policy", "unset", "lake", "events.raw", "--yes"];
    assert_eq!(scene.database.ran(&unset).await?.code, 0);
    overdue(&scene, 0).await?;
    let took_over = |ago: &str| {
        format!("UPDATE tailrace.policy SET took_over_at = clock_timestamp() - interval '{ago}'")
    };
    scene.database.sql(&took_over("19 minutes")).await?;
    overdue(&scene, 0).await?;
    scene.database.sql(&took_over("21 minutes")).await?;
    overdue(&scene, 3).await?;
    // What took over long ago says nothing of a text that came since.
    scene.table.set_property(PROPERTY, Some(SAME)).await?;
    overdue(&scene, 0).await
}

/// Where expiry has deleted the snapshot and earlier versions, the property is as old as the floor, or as the
/// mirror of the same text.
#[tokio::test]
async fn a_property_whose_snapshot_is_gone_is_as_old_as_the_floor() -> Result<()> {
    let scene = scene().await?;
    let (head, floor) = (scene.catalog.head().await?, scene.table.append(vec![file(0)]).await?);
    let day_ago = Utc::now() - TimeDelta::days(1);
    scene.catalog.backdate_through(floor.snapshot_id, day_ago).await?;
    let set = |minutes: i64| {
        format!(
            "DELETE FROM hog_snapshot WHERE snapshot_id <= {head};
             DELETE FROM hog_table_version WHERE end_snapshot <= {head};
             UPDATE hog_catalog SET earliest_snapshot_id = {},
               earliest_snapshot_time = clock_timestamp() - interval '{minutes} minutes'",
            floor.snapshot_id
        )
    };
    scene.database.sql(&set(21)).await?;
    overdue(&scene, 3).await?;
    // Nobody knows more: it counts as new.
    scene.database.sql(&set(19)).await?;
    overdue(&scene, 0).await?;
    // A pass knew it a day ago. Of the files nothing is known but that the floor is past them.
    let mirror = format!(
        "INSERT INTO tailrace.policy (catalog_id, table_id, source, table_uuid, field, source_field_id,
           keep, keep_seconds, mode, property_text, revision, updated_at, updated_by)
         VALUES ({}, {}, 'property', '{}', 'day(at)', {}, '7d', 604800, 'enforce', '{WEEK}', 7,
                 now() - interval '1 day', 'tester')",
        scene.catalog.catalog_id,
        scene.table.table_id,
        scene.table.table_uuid,
        scene.table.field_id("at")?
    );
    scene.database.sql(&mirror).await?;
    let report = scene.report().await?;
    assert_eq!(of_status(&report, Status::Incomplete), [Check::OverdueFiles], "{report:#?}");
    let notes = &of(&report, Check::OverdueFiles)?.notes;
    assert!(notes[0].starts_with("of 3 expired files it is not known since when"), "{notes:?}");
    Ok(())
}

/// Nothing is guessed where the snapshot is missing, and expiry has not deleted it.
#[tokio::test]
async fn a_property_whose_snapshot_is_missing_is_reported() -> Result<()> {
    let scene = scene().await?;
    let head = scene.catalog.head().await?;
    scene.table.append(vec![file(0)]).await?;
    scene.database.sql(&format!("DELETE FROM hog_snapshot WHERE snapshot_id = {head}")).await?;
    let report = scene.report().await?;
    assert_eq!(of_status(&report, Status::Violated), [Check::SnapshotIds], "{report:#?}");
    let found = of(&report, Check::OverdueFiles)?;
    assert_eq!((found.status, found.count), (Status::Incomplete, 0), "{found:?}");
    let told = "since when the property of events.raw is its policy is not known: hog_snapshot lacks the \
                snapshot in which the table got it, and retention is not why";
    assert_eq!(found.notes, [told]);
    Ok(())
}
