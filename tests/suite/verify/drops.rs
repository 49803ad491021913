//! Tests of what drops left: vectors, rows, changes, receipts, snapshots.

use anyhow::Result;
use tailrace::catalog::connect::close;
use tailrace::explicit::call::TruncateBody;
use tailrace::explicit::truncate;
use tailrace::verify::report::{Check, Status};
use tailrace_kit::lake::Field;

use super::{Scene, of, of_status, problems, settings};
use crate::drop::races::file;
use crate::explicit::{patient, raw};
use crate::support::governed::live_ids;

#[tokio::test]
async fn a_live_vector_on_a_dropped_file_is_found() -> Result<()> {
    let (scene, drop) = Scene::swept().await?;
    let file = scene.files[2];
    let open =
        format!("UPDATE hog_delete_file SET end_snapshot = NULL WHERE data_file_id = {file}");
    scene.database.sql(&open).await?;
    let report = scene.violated(&[Check::VectorsOfDroppedFiles, Check::DropHistory]).await?;
    let found = of(&report, Check::VectorsOfDroppedFiles)?;
    assert_eq!(found.count, 1);
    let [sample] = found.samples.as_slice() else { panic!("{found:?}") };
    assert_eq!((sample.data_file_id, sample.snapshot_id), (Some(file), Some(drop)));
    assert!(sample.delete_file_id > Some(file), "{sample:?}");
    assert_eq!(sample.problem, "it is live, and its file was ended by a drop");
    let expected = "it ended 0 delete files, and the history says 1";
    assert_eq!(problems(&report, Check::DropHistory)?, (1, vec![(Some(drop), expected)]));
    Ok(())
}

#[tokio::test]
async fn a_file_live_again_is_found_by_its_drop_and_its_partition() -> Result<()> {
    let (scene, drop) = Scene::swept().await?;
    let back = scene.files[4];
    let open = format!("UPDATE hog_data_file SET end_snapshot = NULL WHERE data_file_id = {back}");
    scene.database.sql(&open).await?;
    scene.table.append(vec![file(10)]).await?;
    let mut by_values = settings();
    by_values.sweep.scan_limits.small_table = 0;
    let mut by_pieces = by_values;
    by_pieces.sweep.scan_limits.piece = 2;
    for (way, settings) in [("read", settings()), ("values", by_values), ("pieces", by_pieces)] {
        if way == "pieces" {
            scene.database.sql("DROP INDEX hog_file_partition_value_lookup").await?;
        }
        let report = scene.report_with(&settings).await?;
        let violated = [Check::DropHistory, Check::DroppedPartitions];
        assert_eq!(of_status(&report, Status::Violated), violated, "{way}: {report:#?}");
        let expected = [
            (Some(drop), "it ended 2 files, and the history says 3"),
            (Some(drop), "it ended 20 records, and the history says 30"),
            (Some(drop), "it ended 200 bytes, and the history says 300"),
        ];
        assert_eq!(problems(&report, Check::DropHistory)?, (3, expected.to_vec()));
        // The file that came after the drop is none of it.
        let found = of(&report, Check::DroppedPartitions)?;
        assert_eq!(found.count, 1, "{way}");
        assert_eq!(found.samples[0].data_file_id, Some(back));
        assert_eq!(found.samples[0].snapshot_id, Some(drop));
    }
    Ok(())
}

#[tokio::test]
async fn wrong_changes_and_files_of_another_table_are_found() -> Result<()> {
    let (scene, drop) = Scene::swept().await?;
    let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    let file = other.append(vec![file(0)]).await?.file_ids[0];
    let (raw, other) = (scene.table.table_id, other.table_id);
    let change = |kind: &str, table: i64| {
        format!(
            "INSERT INTO hog_snapshot_change SELECT catalog_id, {drop}, '{kind}', {table} FROM hog_catalog"
        )
    };
    // The other table's file would have begun after it ended: it is made older than the drop.
    scene
        .database
        .sql(&format!(
            "UPDATE hog_data_file SET begin_snapshot = 1, end_snapshot = {drop} WHERE data_file_id = {file};
             {}; {}; {}",
            change("table_deleted_from", other),
            change("table_altered", raw),
            change("table_altered", raw)
        ))
        .await?;
    let report = scene.violated(&[Check::DropHistory]).await?;
    let also = format!("it ended 1 files of table {other} as well");
    let expected = [
        (Some(drop), "it has 2 changes table_altered of the table"),
        (Some(drop), "it has 1 changes that no drop makes"),
        (Some(drop), also.as_str()),
    ];
    assert_eq!(problems(&report, Check::DropHistory)?, (3, expected.to_vec()));

    scene
        .database
        .sql(&format!("DELETE FROM hog_snapshot_change WHERE snapshot_id = {drop}"))
        .await?;
    let report = scene.violated(&[Check::DropHistory]).await?;
    let expected = [
        (Some(drop), "it has 0 changes table_deleted_from of the table, not one"),
        (Some(drop), also.as_str()),
    ];
    assert_eq!(problems(&report, Check::DropHistory)?, (2, expected.to_vec()));
    Ok(())
}

/// A truncate names no tuple: then no older file of the table may be live at all.
#[tokio::test]
async fn what_a_truncate_left_is_found() -> Result<()> {
    let scene = Scene::new().await?;
    let mut session = scene.database.tailrace().session().await?;
    let (body, uuid) = (TruncateBody::default(), Some(scene.table.table_uuid));
    let answer = truncate(&mut session, &raw(), uuid, &body, "me", &patient()).await?;
    close(session).await;
    assert_eq!(live_ids(&scene.table).await?, Vec::<i64>::new());
    scene.table.append(vec![file(0)]).await?;
    scene.violated(&[]).await?;
    let file = scene.files[0];
    let open = format!("UPDATE hog_data_file SET end_snapshot = NULL WHERE data_file_id = {file}");
    scene.database.sql(&open).await?;
    let report = scene.violated(&[Check::DropHistory, Check::DroppedPartitions]).await?;
    let expected = "it is live, and older than the drop of its partition";
    let found = problems(&report, Check::DroppedPartitions)?;
    assert_eq!(found, (1, vec![(Some(answer.snapshot_id), expected)]));
    Ok(())
}

#[tokio::test]
async fn gaps_between_snapshots_are_found() -> Result<()> {
    let (scene, drop) = Scene::swept().await?;
    for _ in 0..3 {
        scene.table.append(vec![file(0)]).await?;
    }
    let head = scene.catalog.head().await?;
    scene
        .database
        .sql(&format!(
            "DELETE FROM hog_snapshot WHERE snapshot_id IN ({}, {}, 1);
             INSERT INTO hog_snapshot (catalog_id, snapshot_id, schema_version)
             SELECT catalog_id, {head} + 7, 0 FROM hog_catalog",
            drop + 1,
            drop + 2
        ))
        .await?;
    let report = scene.violated(&[Check::SnapshotIds]).await?;
    let (above, missing) = (
        "there is such a snapshot above the head",
        "there is no such snapshot between floor and head",
    );
    let expected = [(head + 7, above), (drop + 2, missing), (drop + 1, missing), (1, missing)];
    let expected: Vec<_> = expected.iter().map(|(id, problem)| (Some(*id), *problem)).collect();
    assert_eq!(problems(&report, Check::SnapshotIds)?, (4, expected));

    // What the floor has passed is nobody's business.
    scene
        .database
        .sql(&format!("UPDATE hog_catalog SET earliest_snapshot_id = {}", drop + 2))
        .await?;
    assert_eq!(of(&scene.report().await?, Check::SnapshotIds)?.count, 2);
    Ok(())
}

#[tokio::test]
async fn receipts_that_do_not_agree_are_found() -> Result<()> {
    let scene = Scene::new().await?;
    let key = scene.drop_explicitly().await?;
    let drop = scene.catalog.head().await?;
    scene.violated(&[]).await?;
    let told = |problem: &str| format!("the receipt {key} {problem}");
    for (wrong, right, problem) in [
        (
            "UPDATE tailrace.drop_receipt SET files_ended = files_ended + 1",
            "UPDATE tailrace.drop_receipt SET files_ended = files_ended - 1",
            "does not say what the history says of its drop",
        ),
        (
            "UPDATE tailrace.drop_receipt SET schema_version = schema_version + 1",
            "UPDATE tailrace.drop_receipt SET schema_version = schema_version - 1",
            "has another schema version than its snapshot",
        ),
        (
            "UPDATE tailrace.drop_receipt SET committed = false",
            "UPDATE tailrace.drop_receipt SET committed = true",
            "says that nothing was committed, and that something ended",
        ),
    ] {
        scene.database.sql(wrong).await?;
        let report = scene.violated(&[Check::Receipts]).await?;
        let expected = told(problem);
        let found = problems(&report, Check::Receipts)?;
        assert_eq!(found, (1, vec![(Some(drop), expected.as_str())]));
        scene.database.sql(right).await?;
        scene.violated(&[]).await?;
    }
    scene.database.sql("DELETE FROM tailrace.drop_history").await?;
    let report = scene.violated(&[Check::Receipts]).await?;
    let expected = told("belongs to a drop that the history does not have");
    let found = problems(&report, Check::Receipts)?;
    assert_eq!(found, (1, vec![(Some(drop), expected.as_str())]));
    Ok(())
}
