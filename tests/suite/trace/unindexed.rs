//! Tests of servers before V19, which have no index of files by the snapshot that ended them.

use anyhow::Result;
use tailrace::catalog::connect::close;
use tailrace::catalog::drop_lifecycle::unindexed::left;
use tailrace::trace::state::{Hold, Stage};
use tailrace_kit::lake::{Field, NewFile};

use super::{Scene, at};

const FIRST: &str = "2031-01-01T00:00:00Z";

#[tokio::test]
async fn a_small_table_is_reported_all_the_same() -> Result<()> {
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
    for (most, files, known) in [
        (2, vec![], None),
        (3, vec![(dropped, 1)], None),
        (4, vec![(dropped, 2)], None),
        (5, vec![(dropped, 2)], Some(2)),
    ] {
        let read = left(&mut session, catalog_id, table_id, &[dropped, dropped - 1], most).await?;
        assert_eq!((&read.files, read.of(dropped), read.read), (&files, known, most.min(4)));
    }
    close(session).await;
    Ok(())
}

/// A thousand drops of a table that is too large, and none of another one's is ever looked at.
#[tokio::test]
async fn a_table_that_is_too_large_keeps_no_other_from_the_report() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.database.sql("DROP INDEX hog_data_file_ended").await?;
    let dropped = scene.drop(9, 2).await?;
    let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    scene.floor_to(dropped).await?;
    scene
        .database
        .sql(&format!("DELETE FROM hog_data_file WHERE end_snapshot = {dropped}"))
        .await?;
    // As many rows as are read of one table, and one more; and a thousand older drops of it.
    scene
        .database
        .sql(&format!(
            "INSERT INTO hog_data_file (catalog_id, data_file_id, table_id, begin_snapshot,
                 end_snapshot, path, record_count, file_size_bytes, row_id_start, spec_id)
             SELECT {catalog}, 1000000 + n, {table}, -2000, null, 'objects/' || n, 1, 1, n, null
             FROM generate_series(0, 100000) n;
             INSERT INTO tailrace.drop_history (catalog_id, snapshot_id, drop_id, table_id, table_uuid,
                 dropped_at, files_ended, delete_files_ended, records, bytes, partitions)
             SELECT {catalog}, -n, gen_random_uuid(), {table}, '{uuid}', clock_timestamp(), 1, 0, 1,
                    1, '[]'
             FROM generate_series(1, 1000) n",
            catalog = scene.catalog.catalog_id,
            table = other.table_id,
            uuid = scene.database.live(&other).await?.identity.table_uuid,
        ))
        .await?;

    scene.note(FIRST).await?;

    let drop = scene.only().await?;
    assert_eq!((drop.snapshot_id, drop.purged_seen_at), (dropped, at(FIRST)));
    let noted = "SELECT count(purged_seen_at) FROM tailrace.drop_history WHERE snapshot_id < 0";
    assert_eq!(scene.database.text(noted).await?.as_deref(), Some("0"));
    Ok(())
}

/// An index that is being built, or whose building failed, finds nothing.
#[tokio::test]
async fn an_index_that_is_not_valid_is_none() -> Result<()> {
    let mut scene = Scene::new().await?;
    let dropped = scene.drop(9, 2).await?;
    scene.floor_to(dropped).await?;
    scene
        .database
        .sql(
            "DROP INDEX hog_data_file_ended;
              CREATE INDEX hog_data_file_ended ON hog_data_file (catalog_id, end_snapshot)
                WHERE end_snapshot < 0;
              UPDATE pg_index SET indisvalid = false
              WHERE indexrelid = 'hog_data_file_ended'::regclass",
        )
        .await?;
    scene.note(FIRST).await?;
    let drop = scene.only().await?;
    assert_eq!((drop.stage, drop.files_left), (Stage::Purging, Some(2)));
    Ok(())
}
