//! Tests of each stage of a drop, with its dates and ids.

use anyhow::Result;
use tailrace::trace::state::{Hold, Stage};
use tailrace_kit::lake::NewFile;
use tailrace_kit::simulated_loops::{Cleaned, Cleanup, Purged};

use super::{Scene, at};
use crate::support::program::days_ago;

const FIRST: &str = "2031-01-01T00:00:00Z";
const SECOND: &str = "2031-01-02T00:00:00Z";
const THIRD: &str = "2031-01-03T00:00:00Z";

#[tokio::test]
async fn a_drop_is_told_from_its_commit_to_its_last_object() -> Result<()> {
    let mut scene = Scene::new().await?;
    let files: Vec<_> =
        [9, 9, 8].map(|age| NewFile::of([days_ago(age)]).records(10).bytes(100)).into();
    let ids = scene.table.append(files).await?.file_ids;
    scene.table.register_vector(ids[0], 3, None).await?;
    let before = scene.catalog.head().await?;
    let dropped = scene.sweep().await?;

    let told = scene.only().await?;
    assert_eq!((told.snapshot_id, told.dropped_at), (dropped, scene.time_of(dropped).await?));
    assert_eq!(
        (told.table.as_deref(), told.table_uuid),
        (Some("events.raw"), scene.table.table_uuid)
    );
    let ended = (told.files_ended, told.delete_files_ended, told.records, told.bytes);
    assert_eq!(ended, (3, 1, 30, 300));
    let partitions: Vec<_> = told
        .partitions
        .iter()
        .map(|p| (p.partition_values.clone(), p.counts.files, p.counts.delete_files))
        .collect();
    let day = |age| vec![Some(days_ago(age))];
    assert_eq!(partitions, [(day(9), 2, 1), (day(8), 1, 0)]);
    assert_eq!((told.stage, told.files_left), (Stage::Retained, Some(3)));
    let until = scene.time_of(before).await?.plus(std::time::Duration::from_secs(3600));
    assert_eq!(told.held_by, [Hold::Retention { seconds: Some(3600), until: Some(until) }]);

    scene.floor_to(dropped).await?;
    scene.note(FIRST).await?;
    let told = scene.only().await?;
    assert_eq!((told.stage, told.files_left), (Stage::Purging, Some(3)));
    assert_eq!((told.held_by, told.purged_seen_at), (vec![Hold::Purge], None));

    assert_eq!(scene.expiry.purge().await?, Purged { files: 3, vectors: 1 });
    let told = scene.only().await?;
    assert_eq!((told.stage, told.files_left, told.purged_seen_at), (Stage::Queued, Some(0), None));
    assert_eq!(told.held_by, [Hold::Queue { objects: 4, stuck: 0 }, Hold::Pass]);

    scene.note(FIRST).await?;
    let told = scene.only().await?;
    let mark = scene.last_removal().await?;
    assert_eq!((told.stage, told.purged_seen_at), (Stage::Queued, at(FIRST)));
    assert_eq!((told.last_removal_id, told.gone_seen_at), (Some(mark), None));
    assert_eq!(told.held_by, [Hold::Queue { objects: 4, stuck: 0 }]);

    let cleanup = Cleanup::new(&scene.catalog);
    assert_eq!(cleanup.run(3).await?, Cleaned { deleted: 0, absent: 3, violations: 0 });
    scene.note(SECOND).await?;
    let told = scene.only().await?;
    // What was noted once is not noted again.
    assert_eq!((told.stage, told.purged_seen_at), (Stage::Queued, at(FIRST)));
    assert_eq!(told.held_by, [Hold::Queue { objects: 1, stuck: 0 }]);

    cleanup.run(3).await?;
    assert_eq!(scene.only().await?.held_by, [Hold::Pass]);
    assert_eq!(scene.report().await?.not_gone, 1);
    scene.note(THIRD).await?;
    scene.note("2031-01-04T00:00:00Z").await?;
    let report = scene.report().await?;
    assert_eq!((report.not_gone, report.oldest_not_gone, report.undrained), (0, None, 0));
    let told = &report.drops[0];
    assert_eq!((told.stage, told.files_left), (Stage::Gone, Some(0)));
    assert_eq!((told.purged_seen_at, told.gone_seen_at), (at(FIRST), at(THIRD)));
    assert_eq!((told.last_removal_id, told.held_by.as_slice()), (Some(mark), &[][..]));
    Ok(())
}

/// Where all of it went between two passes, the first one to look sees both.
#[tokio::test]
async fn a_drop_between_two_passes_is_noted_by_the_second() -> Result<()> {
    let mut scene = Scene::new().await?;
    let dropped = scene.drop(8, 2).await?;
    scene.floor_to(dropped).await?;
    scene.expiry.purge().await?;
    Cleanup::new(&scene.catalog).run(10).await?;
    scene.note(FIRST).await?;
    let told = scene.only().await?;
    assert_eq!((told.stage, told.last_removal_id), (Stage::Gone, Some(0)));
    assert_eq!((told.purged_seen_at, told.gone_seen_at), (at(FIRST), at(FIRST)));
    Ok(())
}

/// A pass of the daemon or of `tailrace sweep` notes it.
#[tokio::test]
async fn each_pass_notes_how_far_drops_have_come() -> Result<()> {
    let mut scene = Scene::new().await?;
    let dropped = scene.drop(8, 1).await?;
    scene.floor_to(dropped).await?;
    scene.expiry.purge().await?;
    scene.database.sweep().await?;
    assert_eq!(scene.only().await?.held_by, [Hold::Queue { objects: 1, stuck: 0 }]);
    Cleanup::new(&scene.catalog).run(10).await?;
    scene.database.sweep().await?;
    assert_eq!(scene.only().await?.stage, Stage::Gone);
    Ok(())
}

/// The server purges by the page: vectors first, then a thousand files at a time.
#[tokio::test]
async fn a_drop_that_is_purged_in_pages_is_purged_with_the_last() -> Result<()> {
    let mut scene = Scene::new().await?;
    let new = (0..1_001).map(|_| NewFile::of([days_ago(8)]));
    let ids = scene.table.append(new.collect()).await?.file_ids;
    scene.table.register_vector(ids[0], 1, None).await?;
    let dropped = scene.sweep().await?;
    scene.floor_to(dropped).await?;
    for (page, left) in
        [(Purged { files: 0, vectors: 1 }, 1_001), (Purged { files: 1_000, vectors: 0 }, 1)]
    {
        assert_eq!(scene.expiry.purge_page().await?, page);
        // All that is queued so far is gone: the rest is not even queued.
        Cleanup::new(&scene.catalog).run(2_000).await?;
        scene.note(FIRST).await?;
        let told = scene.only().await?;
        assert_eq!((told.stage, told.files_left), (Stage::Purging, Some(left)));
        assert_eq!((told.purged_seen_at, told.gone_seen_at), (None, None));
    }
    assert_eq!(scene.expiry.purge_page().await?, Purged { files: 1, vectors: 0 });
    scene.note(SECOND).await?;
    let told = scene.only().await?;
    assert_eq!((told.purged_seen_at, told.gone_seen_at), (at(SECOND), None));
    assert_eq!(told.last_removal_id, Some(scene.last_removal().await?));
    assert_eq!(told.held_by, [Hold::Queue { objects: 1, stuck: 0 }]);
    Ok(())
}
