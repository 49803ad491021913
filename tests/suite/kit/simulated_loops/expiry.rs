//! Tests of the simulated expiry, and of the cleanup after it.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use tailrace_kit::lake::{Field, LakeError, NewFile};
use tailrace_kit::simulated_loops::{
    Cleaned, Cleanup, Consumer, Expiry, FloorMove, Purged, truncate,
};

use crate::support::TestDatabase;

use super::{catalog_with, one};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn the_floor_is_the_least_of_its_bounds() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = catalog_with(&database, Some(HOUR)).await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    for _ in 0..8 {
        table.append(one("1")).await?;
    }
    let head = catalog.head().await?;
    assert_eq!(head, 10);
    let start: DateTime<Utc> = "2026-09-17T00:00:00Z".parse()?;
    for snapshot_id in 1..=head {
        let time = start + TimeDelta::minutes(snapshot_id);
        catalog.backdate_snapshot(snapshot_id, time).await?;
    }
    let mut expiry = Expiry::new(&catalog);
    let hour_after = |snapshot_id: i64| start + TimeDelta::minutes(snapshot_id + 60);
    // An hour after the fourth, the fourth is the oldest that is young enough. A microsecond
    // later it is the fifth.
    let moved = expiry.advance_floor(Some(hour_after(4))).await?;
    assert_eq!(moved, FloorMove { from: 0, to: 4 });
    let later = hour_after(4) + TimeDelta::microseconds(1);
    assert_eq!(expiry.advance_floor(Some(later)).await?, FloorMove { from: 4, to: 5 });
    let (oldest, floor_time): (i64, DateTime<Utc>) = sqlx::query_as(
        "SELECT (SELECT min(snapshot_id) FROM hog_snapshot), earliest_snapshot_time FROM hog_catalog",
    )
    .fetch_one(catalog.pool())
    .await?;
    assert_eq!((oldest, floor_time), (5, start + TimeDelta::minutes(5)));
    assert!(matches!(table.files_at(4).await, Err(LakeError::Expired { floor: 5, .. })));
    assert!(matches!(table.append_at(4, one("1")).await, Err(LakeError::Expired { .. })));
    // Back in time: never down.
    assert_eq!(expiry.advance_floor(Some(hour_after(2))).await?, FloorMove { from: 5, to: 5 });

    expiry.batch = 1;
    assert_eq!(expiry.advance_floor(Some(hour_after(9))).await?, FloorMove { from: 5, to: 6 });
    expiry.batch = 100;
    // A consumer of the table holds the floor; one of a table that is no more does not.
    let consumer = Consumer::register(&table, "slow").await?;
    for (id, uuid) in [("slow", table.table_uuid), ("gone", uuid::Uuid::new_v4())] {
        sqlx::query(
            "INSERT INTO hog_consumer_offset (catalog_id, consumer_id, table_uuid, committed_snapshot)
             VALUES ($1, $2, $3, $4) ON CONFLICT (catalog_id, consumer_id, table_uuid)
             DO UPDATE SET committed_snapshot = 7",
        )
        .bind(catalog.catalog_id)
        .bind(id)
        .bind(uuid)
        .bind(0_i64)
        .execute(catalog.pool())
        .await?;
    }
    assert_eq!(consumer.committed().await?, 7);
    assert_eq!(expiry.advance_floor(Some(hour_after(9))).await?, FloorMove { from: 6, to: 7 });
    sqlx::query("UPDATE hog_catalog SET consumer_floor = false").execute(catalog.pool()).await?;
    assert_eq!(expiry.advance_floor(Some(hour_after(9))).await?, FloorMove { from: 7, to: 9 });
    // Nothing young at all: the head.
    let far = hour_after(10_000);
    assert_eq!(expiry.advance_floor(Some(far)).await?, FloorMove { from: 9, to: 10 });
    Ok(())
}

#[tokio::test]
async fn only_a_catalog_with_retention_expires_and_not_while_young() -> Result<()> {
    for (retention, to) in [(None, 0), (Some(HOUR), 1)] {
        let database = TestDatabase::new().await?;
        let catalog = catalog_with(&database, retention).await?;
        let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
        table.append(one("1")).await?;
        let moved = Expiry::new(&catalog).advance_floor(None).await?;
        assert_eq!(moved, FloorMove { from: 0, to });
    }
    Ok(())
}

#[tokio::test]
async fn ended_rows_stay_until_the_purge_and_objects_until_cleanup() -> Result<()> {
    let database = TestDatabase::with_objects().await?;
    let catalog = catalog_with(&database, Some(HOUR)).await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    let first = table.append(vec![NewFile::of(["1"]), NewFile::of(["2"])]).await?;
    table.register_vector(1, 10, None).await?;
    table.register_vector(1, 20, None).await?;
    table.evolve_spec(&[Field::month("at")]).await?;
    table.rename_column("kind", "sort").await?;
    let dropped = table.overwrite(catalog.head().await?, &[1], vec![]).await?;
    let paths: Vec<String> = table.all_files().await?.into_iter().map(|file| file.path).collect();
    let vectors: Vec<String> = table.all_vectors().await?.into_iter().map(|v| v.path).collect();
    let exists = |path: &String| Path::new(path).is_file();
    assert!(paths.iter().chain(&vectors).all(exists));
    assert_eq!(table.rows_at(first.snapshot_id).await?, 200);
    assert_eq!(table.rows_at(dropped.snapshot_id - 1).await?, 180);
    assert_eq!(table.rows_at(dropped.snapshot_id).await?, 100);

    let expiry = Expiry::new(&catalog);
    let later = Utc::now() + TimeDelta::hours(2);
    // One short of the drop: the dropped file can still be read, so nothing of it goes.
    table.append(one("680")).await?;
    Consumer::register(&table, "c").await?;
    sqlx::query("UPDATE hog_consumer_offset SET committed_snapshot = $1")
        .bind(dropped.snapshot_id - 1)
        .execute(catalog.pool())
        .await?;
    assert_eq!(expiry.advance_floor(Some(later)).await?.to, dropped.snapshot_id - 1);
    assert_eq!(expiry.purge().await?, Purged { files: 0, vectors: 1 });
    assert_eq!(table.rows_at(dropped.snapshot_id - 1).await?, 180);
    let specs: Vec<i64> = sqlx::query_scalar("SELECT spec_id FROM hog_partition_spec")
        .fetch_all(catalog.pool())
        .await?;
    assert_eq!(specs, [2], "the first spec has vanished, its files are there");
    assert_eq!(table.live_files().await?[0].spec_id, Some(1));

    sqlx::query("DELETE FROM hog_consumer_offset").execute(catalog.pool()).await?;
    expiry.advance_floor(Some(later)).await?;
    assert_eq!(table.all_files().await?.len(), 3, "below the floor, and still a row");
    assert_eq!(expiry.purge().await?, Purged { files: 1, vectors: 1 });
    assert_eq!(expiry.purge().await?, Purged::default());
    let queue: Vec<(String, String)> = sqlx::query_as(
        "SELECT file_kind, path FROM hog_file_removal
          WHERE reason = 'snapshot_expiry' AND drained_at IS NULL ORDER BY removal_id",
    )
    .fetch_all(catalog.pool())
    .await?;
    let expected = [("delete", &vectors[0]), ("delete", &vectors[1]), ("data", &paths[0])]
        .map(|(kind, path)| (kind.to_owned(), path.clone()));
    assert_eq!(queue, expected);
    assert!(paths.iter().chain(&vectors).all(exists), "expiry deletes no object");

    let cleanup = Cleanup::new(&catalog);
    std::fs::remove_file(&vectors[0])?;
    assert_eq!(cleanup.run(1).await?, Cleaned { absent: 1, ..Cleaned::default() });
    assert_eq!(cleanup.run(100).await?, Cleaned { deleted: 2, ..Cleaned::default() });
    assert_eq!(cleanup.run(100).await?, Cleaned::default());
    assert!(!exists(&paths[0]) && exists(&paths[1]) && !exists(&vectors[1]));
    let outcomes: Vec<String> =
        sqlx::query_scalar("SELECT drained_outcome FROM hog_file_removal ORDER BY removal_id")
            .fetch_all(catalog.pool())
            .await?;
    assert_eq!(outcomes, ["absent", "deleted", "deleted"]);
    Ok(())
}

#[tokio::test]
async fn the_purge_goes_page_by_page() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = catalog_with(&database, Some(HOUR)).await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    table.append((0..1500).map(|_| NewFile::of(["1"])).collect()).await?;
    table.register_vector(3, 1, None).await?;
    truncate(&table).await?;
    let expiry = Expiry::new(&catalog);
    expiry.advance_floor(Some(Utc::now() + TimeDelta::hours(2))).await?;
    for (vectors, files) in [(1, 0), (0, 1000), (0, 500), (0, 0)] {
        assert_eq!(expiry.purge_page().await?, Purged { files, vectors });
    }
    Ok(())
}
