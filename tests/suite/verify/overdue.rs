//! Tests of files that are live for too long.

use anyhow::Result;
use tailrace::policy::Mode;
use tailrace::verify::report::{Check, Status};

use super::{Scene, of, of_status, settings};
use crate::drop::races::file;

#[tokio::test]
async fn overdue_files_are_found_by_every_way() -> Result<()> {
    let scene = Scene::new().await?;
    scene.age().await?;
    let other = scene.database.table(&scene.catalog, "other", &[]).await?;
    other.append(vec![tailrace_kit::lake::NewFile::new(vec![]); 3]).await?;
    let mut by_values = settings();
    by_values.sweep.scan_limits.small_table = 0;
    by_values.sweep.scan_limits.values_listed = 2;
    by_values.sweep.scan_limits.values_at_once = 1;
    let mut by_pieces = by_values;
    by_pieces.sweep.scan_limits.piece = 2;
    for (way, settings) in [("read", settings()), ("values", by_values), ("pieces", by_pieces)] {
        if way == "pieces" {
            scene.database.sql("DROP INDEX hog_file_partition_value_lookup").await?;
        }
        let report = scene.report_with(&settings).await?;
        assert_eq!(of_status(&report, Status::Violated), [Check::OverdueFiles], "{report:#?}");
        let found = of(&report, Check::OverdueFiles)?;
        assert_eq!((found.count, found.complete), (3, true), "{way}: {found:?}");
        let mut ids: Vec<_> = found.samples.iter().filter_map(|s| s.data_file_id).collect();
        ids.sort_unstable();
        assert_eq!(ids, scene.files[2..], "{way}");
        for sample in &found.samples {
            assert_eq!(sample.table.as_deref(), Some("events.raw"), "{sample:?}");
            assert!(sample.problem.starts_with("it has expired since 20"), "{sample:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn samples_are_twenty_and_the_count_is_true() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file(9); 30]).await?;
    scene.age().await?;
    let report = scene.violated(&[Check::OverdueFiles]).await?;
    let found = of(&report, Check::OverdueFiles)?;
    assert_eq!((found.count, found.samples.len()), (33, 20));
    Ok(())
}

/// The grace counts from the latest of three: the expiry, the policy, and the file's own snapshot.
#[tokio::test]
async fn what_is_new_has_a_grace() -> Result<()> {
    let scene = Scene::new().await?;
    scene.violated(&[]).await?;
    scene.age().await?;
    scene.violated(&[Check::OverdueFiles]).await?;

    // The policy.
    let policy = |ago: &str| {
        format!("UPDATE tailrace.policy SET updated_at = clock_timestamp() - interval '{ago}'")
    };
    scene.database.sql(&policy("19 minutes")).await?;
    scene.violated(&[]).await?;
    scene.database.sql(&policy("21 minutes")).await?;
    scene.violated(&[Check::OverdueFiles]).await?;
    for mode in [Mode::Observe, Mode::Paused, Mode::Enforce] {
        scene.database.govern_as(&scene.table, "day(at)", "7d", mode).await?;
        scene.database.sql(&policy("1 day")).await?;
        let expected = [Check::OverdueFiles];
        scene.violated(if mode == Mode::Enforce { &expected } else { &[] }).await?;
    }

    // The file's own snapshot.
    scene.database.sweep_one().await?;
    let late = scene.table.append(vec![file(9)]).await?;
    scene.violated(&[]).await?;
    let now = chrono::Utc::now();
    for (minutes, expected) in [(19, &[][..]), (21, &[Check::OverdueFiles])] {
        let then = now - chrono::TimeDelta::minutes(minutes);
        scene.catalog.backdate_snapshot(late.snapshot_id, then).await?;
        let report = scene.violated(expected).await?;
        assert_eq!(of(&report, Check::OverdueFiles)?.count, expected.len() as i64);
    }

    scene.database.sweep_one().await?;
    // The expiry: that of the day three days ago, whose last instant is that of a midnight.
    let midnight = (now.timestamp() / 86_400 - 2) * 86_400;
    for (minutes, expected) in [(10, &[][..]), (30, &[Check::OverdueFiles])] {
        let keep = format!("{}s", now.timestamp() - midnight - 60 * minutes);
        scene.database.govern(&scene.table, "day(at)", &keep).await?;
        scene.age().await?;
        let report = scene.violated(expected).await?;
        assert_eq!(of(&report, Check::OverdueFiles)?.count, expected.len() as i64);
    }
    Ok(())
}

/// Where expiry has deleted the snapshot of a file, it is older than the floor, and no more is known.
#[tokio::test]
async fn a_file_whose_snapshot_is_gone_is_judged_by_the_floor() -> Result<()> {
    let scene = Scene::new().await?;
    scene.age().await?;
    let head = scene.catalog.head().await?;
    scene
        .database
        .sql(&format!(
            "DELETE FROM hog_snapshot WHERE snapshot_id < {head};
             UPDATE hog_catalog SET earliest_snapshot_id = {head},
               earliest_snapshot_time = clock_timestamp() - interval '21 minutes'"
        ))
        .await?;
    let report = scene.violated(&[Check::OverdueFiles]).await?;
    assert_eq!(of(&report, Check::OverdueFiles)?.count, 3);

    let floor = "UPDATE hog_catalog \
                 SET earliest_snapshot_time = clock_timestamp() - interval '19 minutes'";
    scene.database.sql(floor).await?;
    let report = scene.report().await?;
    assert_eq!(of_status(&report, Status::Incomplete), [Check::OverdueFiles], "{report:#?}");
    assert_eq!(report.status, Status::Incomplete);
    assert_eq!(
        of(&report, Check::OverdueFiles)?.notes,
        ["of 3 expired files it is not known since when they are there: \
             snapshot_retention_seconds is shorter than verify.grace"]
    );
    Ok(())
}

/// What expiry did not delete, and is not there all the same, is not retention's doing.
#[tokio::test]
async fn a_file_without_a_begin_snapshot_is_not_blamed_on_retention() -> Result<()> {
    let scene = Scene::new().await?;
    scene.age().await?;
    let begin = scene.table.live_files().await?[0].begin_snapshot;
    scene.database.sql(&format!("DELETE FROM hog_snapshot WHERE snapshot_id = {begin}")).await?;
    let told =
        ["of 3 expired files it is not known since when they are there: hog_snapshot lacks \
                 those in which they began, and retention is not why"];
    let floor = |floor: i64, time: &str| {
        format!(
            "UPDATE hog_catalog SET earliest_snapshot_id = {floor}, earliest_snapshot_time = {time}"
        )
    };
    let floors = [
        floor(0, "null"),
        floor(begin - 1, "clock_timestamp() - interval '19 minutes'"),
        floor(begin - 1, "clock_timestamp() - interval '21 minutes'"),
    ];
    for change in floors {
        scene.database.sql(&change).await?;
        let report = scene.report().await?;
        assert_eq!(of_status(&report, Status::Violated), [Check::SnapshotIds], "{change}");
        let found = of(&report, Check::OverdueFiles)?;
        assert_eq!((found.status, found.count), (Status::Incomplete, 0), "{change}: {found:?}");
        assert_eq!(found.notes, told, "{change}");
    }
    Ok(())
}
