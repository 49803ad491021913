//! Servers before V19, which cannot be asked for files by the snapshot that ended them.

use anyhow::Result;
use tailrace::catalog::connect::close;
use tailrace::catalog::traces::unindexed::{Left, left};
use tailrace::demo::lake::NewFile;
use tailrace::trace::state::{Hold, Stage};

use super::{Scene, at};

const FIRST: &str = "2031-01-01T00:00:00Z";

#[tokio::test]
async fn a_small_table_is_told_of_all_the_same() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.database.sql("DROP INDEX hog_data_file_ended").await?;
    let (first, second) = (scene.drop(9, 2).await?, scene.drop(8, 3).await?);
    scene.floor_to(second).await?;
    scene.note(FIRST).await?;
    let report = scene.report().await?;
    let told = |report: &tailrace::trace::TraceReport| {
        let drops = report.drops.iter();
        drops.map(|drop| (drop.snapshot_id, drop.stage, drop.files_left)).collect::<Vec<_>>()
    };
    assert_eq!(
        told(&report),
        [(second, Stage::Purging, Some(3)), (first, Stage::Purging, Some(2))]
    );
    scene.database.sql(&format!("DELETE FROM hog_data_file WHERE end_snapshot = {first}")).await?;
    assert_eq!(
        told(&scene.report().await?),
        [(second, Stage::Purging, Some(3)), (first, Stage::Queued, Some(0))]
    );
    scene.note(FIRST).await?;
    let drops = scene.report().await?.drops;
    assert_eq!((drops[0].purged_seen_at, drops[1].purged_seen_at), (None, at(FIRST)));
    assert_eq!(drops[0].held_by, [Hold::Purge]);
    Ok(())
}

/// Of a table that is too large nothing is said that was not seen.
#[tokio::test]
async fn no_more_rows_are_read_than_may_be() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![NewFile::of(["99999"]), NewFile::of(["99999"])]).await?;
    let dropped = scene.drop(8, 2).await?;
    scene.table.append(vec![NewFile::of(["99999"])]).await?;
    let (catalog_id, table_id) = (scene.catalog.catalog_id, scene.table.table_id);
    let mut session = scene.database.tailrace().read_only_session().await?;
    // Four files began before the drop; the one after it does not matter.
    for (most, files, is_all) in [
        (2, vec![], false),
        (3, vec![(dropped, 1)], false),
        (4, vec![(dropped, 2)], false),
        (5, vec![(dropped, 2)], true),
    ] {
        let read = left(&mut session, catalog_id, table_id, &[dropped, dropped - 1], most).await?;
        assert_eq!(read, Left { files, is_all }, "{most}");
    }
    close(session).await;
    Ok(())
}
