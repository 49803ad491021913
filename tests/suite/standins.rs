//! The stand-ins of the server's loops, against the catalog's contract.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use chrono::{DateTime, TimeDelta, Utc};
use tailrace::demo::lake::{Catalog, CatalogOptions, Field, LakeError, NewFile};
use tailrace::demo::standin::{
    Cleaned, Cleanup, Compacted, Compaction, Consumer, Expiry, FloorMove, HeldFiles, Purged,
    truncate,
};

use crate::support::TestDatabase;

const HOUR: Duration = Duration::from_secs(3600);

async fn catalog_with(database: &TestDatabase, retention: Option<Duration>) -> Result<Catalog> {
    let options = CatalogOptions {
        retention,
        ..CatalogOptions::default()
    };
    Ok(database.lake.catalog("c", options).await?)
}

fn one(value: &str) -> Vec<NewFile> {
    vec![NewFile::of([value])]
}

/// Claims that have not expired, as the files that they name.
async fn claimed(catalog: &Catalog) -> Result<Vec<Vec<i64>>> {
    Ok(sqlx::query_scalar(
        "SELECT input_file_ids FROM hog_compaction_claim
          WHERE expires_at > now() + interval '14 minutes' ORDER BY group_key",
    )
    .fetch_all(catalog.pool())
    .await?)
}

#[tokio::test]
async fn compaction_merges_within_a_bucket_and_says_so() -> Result<()> {
    let database = TestDatabase::with_objects().await?;
    let catalog = catalog_with(&database, None).await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    table.append(one("1")).await?;
    let files = vec![
        NewFile::of(["1"]).records(10),
        NewFile::of(["2"]),
        NewFile::new(vec![None]),
        NewFile::of(["1"]).bytes(5000),
        NewFile::new(vec![None]).missing(0),
    ];
    table.append(files).await?;
    table.evolve_spec(&[Field::month("at")]).await?;
    table.append(one("1")).await?;
    table.register_vector(2, 4, None).await?;
    let (before, rows) = (
        catalog.head().await?,
        table.rows_at(catalog.head().await?).await?,
    );
    let compaction = Compaction::new(&catalog, 2000);
    let groups = compaction.plan(&table).await?;
    assert_eq!(groups.len(), 1, "one spec, one tuple, small files");
    assert_eq!(groups[0].inputs, [1, 2]);
    assert_eq!(claimed(&catalog).await?, [vec![1, 2]]);
    assert_eq!(catalog.head().await?, before, "a plan is no commit");

    let group = groups.into_iter().next().context("a group")?;
    let output = catalog.next_file_id().await?;
    let done = compaction.commit(group).await?;
    let snapshot_id = before + 1;
    assert_eq!(
        done,
        Compacted::Done {
            snapshot_id,
            output
        }
    );
    assert_eq!(claimed(&catalog).await?, Vec::<Vec<i64>>::new());
    assert_eq!(table.rows_at(snapshot_id).await?, rows);
    assert_eq!(
        table.rows_at(before).await?,
        rows,
        "an older reader sees what it saw"
    );
    let files = table.all_files().await?;
    let ended: Vec<_> = files
        .iter()
        .filter(|file| file.end_snapshot == Some(snapshot_id))
        .collect();
    assert_eq!(
        ended
            .iter()
            .map(|file| file.data_file_id)
            .collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(
        table.all_vectors().await?[0].end_snapshot,
        Some(snapshot_id)
    );
    let merged = files.last().context("a file")?;
    assert_eq!(
        (merged.data_file_id, merged.spec_id, merged.explicit_row_ids),
        (output, Some(1), true)
    );
    assert_eq!(
        (
            merged.row_id_start,
            merged.record_count,
            merged.file_size_bytes
        ),
        (0, 106, 2000)
    );
    assert_eq!(merged.values, [Some("1".to_owned())]);
    assert_eq!(Path::new(&merged.path).metadata()?.len(), 2000);
    let changes = table.changes(before, snapshot_id).await?;
    assert_eq!(
        (changes.files.len(), changes.delete_files.len()),
        (0, 0),
        "no output in the feed"
    );
    Ok(())
}

#[tokio::test]
async fn compaction_leaves_out_groups_with_a_claimed_file() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = catalog_with(&database, None).await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    for value in ["1", "1", "2", "2"] {
        table.append(one(value)).await?;
    }
    sqlx::query(
        "INSERT INTO hog_compaction_claim
                (catalog_id, table_id, group_key, input_file_ids, claimant, expires_at)
         VALUES ($1, $2, 'ours', '{2}', gen_random_uuid(), now() + interval '20 minutes'),
                ($1, $2, 'old', '{3}', gen_random_uuid(), now() - interval '1 second')",
    )
    .bind(catalog.catalog_id)
    .bind(table.table_id)
    .execute(catalog.pool())
    .await?;
    let mut compaction = Compaction::new(&catalog, 2000);
    let inputs = |groups: Vec<_>| -> Vec<Vec<i64>> {
        groups
            .into_iter()
            .map(|group: tailrace::demo::standin::Group| group.inputs)
            .collect()
    };
    assert_eq!(inputs(compaction.plan(&table).await?), [[3, 4]]);
    assert_eq!(claimed(&catalog).await?, [[3, 4].to_vec(), vec![2]]);
    assert_eq!(
        inputs(compaction.plan(&table).await?),
        Vec::<Vec<i64>>::new()
    );
    compaction.claims = false;
    assert_eq!(inputs(compaction.plan(&table).await?), [[1, 2], [3, 4]]);
    Ok(())
}

#[tokio::test]
async fn compaction_loses_to_whatever_came_first() -> Result<()> {
    let database = TestDatabase::with_objects().await?;
    let catalog = catalog_with(&database, None).await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    for value in ["1", "1", "2", "2", "3", "3"] {
        table.append(one(value)).await?;
    }
    table.register_vector(5, 1, None).await?;
    let compaction = Compaction::new(&catalog, 2000);
    let mut groups = compaction.plan(&table).await?;
    assert_eq!(groups.len(), 3);
    // A drop of one input, a first vector on another, and a second one on a third.
    table.overwrite(catalog.head().await?, &[1], vec![]).await?;
    table.register_vector(3, 1, None).await?;
    table.register_vector(5, 2, None).await?;
    let head = catalog.head().await?;
    let last = groups.pop().context("a group")?;
    for group in groups {
        assert_eq!(compaction.commit(group).await?, Compacted::Lost);
    }
    assert_eq!(compaction.commit(last).await?, Compacted::Lost);
    assert_eq!(catalog.head().await?, head);
    assert_eq!(claimed(&catalog).await?, Vec::<Vec<i64>>::new());
    // What it had written is garbage, and goes.
    let cleaned = Cleanup::new(&catalog).run(100).await?;
    assert_eq!(
        cleaned,
        Cleaned {
            deleted: 3,
            ..Cleaned::default()
        }
    );

    assert_eq!(compaction.run(&table).await?, 2);
    table
        .append(vec![NewFile::of(["9"]), NewFile::of(["9"])])
        .await?;
    let groups = compaction.plan(&table).await?;
    table.drop_table().await?;
    for group in groups {
        assert_eq!(
            compaction.commit(group).await?,
            Compacted::Lost,
            "a dropped table"
        );
    }
    Ok(())
}

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
    assert_eq!(
        expiry.advance_floor(Some(later)).await?,
        FloorMove { from: 4, to: 5 }
    );
    let (oldest, floor_time): (i64, DateTime<Utc>) = sqlx::query_as(
        "SELECT (SELECT min(snapshot_id) FROM hog_snapshot), earliest_snapshot_time FROM hog_catalog",
    )
    .fetch_one(catalog.pool())
    .await?;
    assert_eq!((oldest, floor_time), (5, start + TimeDelta::minutes(5)));
    assert!(matches!(
        table.files_at(4).await,
        Err(LakeError::Expired { floor: 5, .. })
    ));
    assert!(matches!(
        table.append_at(4, one("1")).await,
        Err(LakeError::Expired { .. })
    ));
    // Back in time: never down.
    assert_eq!(
        expiry.advance_floor(Some(hour_after(2))).await?,
        FloorMove { from: 5, to: 5 }
    );

    expiry.batch = 1;
    assert_eq!(
        expiry.advance_floor(Some(hour_after(9))).await?,
        FloorMove { from: 5, to: 6 }
    );
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
    assert_eq!(
        expiry.advance_floor(Some(hour_after(9))).await?,
        FloorMove { from: 6, to: 7 }
    );
    sqlx::query("UPDATE hog_catalog SET consumer_floor = false")
        .execute(catalog.pool())
        .await?;
    assert_eq!(
        expiry.advance_floor(Some(hour_after(9))).await?,
        FloorMove { from: 7, to: 9 }
    );
    // Nothing young at all: the head.
    let far = hour_after(10_000);
    assert_eq!(
        expiry.advance_floor(Some(far)).await?,
        FloorMove { from: 9, to: 10 }
    );
    Ok(())
}

#[tokio::test]
async fn a_catalog_without_retention_never_expires_and_a_young_one_not_yet() -> Result<()> {
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
async fn ended_rows_outlive_the_floor_until_the_purge_and_their_objects_until_cleanup() -> Result<()>
{
    let database = TestDatabase::with_objects().await?;
    let catalog = catalog_with(&database, Some(HOUR)).await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    let first = table
        .append(vec![NewFile::of(["1"]), NewFile::of(["2"])])
        .await?;
    table.register_vector(1, 10, None).await?;
    table.register_vector(1, 20, None).await?;
    table.evolve_spec(&[Field::month("at")]).await?;
    table.rename_column("kind", "sort").await?;
    let dropped = table.overwrite(catalog.head().await?, &[1], vec![]).await?;
    let paths: Vec<String> = table
        .all_files()
        .await?
        .into_iter()
        .map(|file| file.path)
        .collect();
    let vectors: Vec<String> = table
        .all_vectors()
        .await?
        .into_iter()
        .map(|v| v.path)
        .collect();
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
    assert_eq!(
        expiry.advance_floor(Some(later)).await?.to,
        dropped.snapshot_id - 1
    );
    assert_eq!(
        expiry.purge().await?,
        Purged {
            files: 0,
            vectors: 1
        }
    );
    assert_eq!(table.rows_at(dropped.snapshot_id - 1).await?, 180);
    let specs: Vec<i64> = sqlx::query_scalar("SELECT spec_id FROM hog_partition_spec")
        .fetch_all(catalog.pool())
        .await?;
    assert_eq!(
        specs,
        [2],
        "the first spec has vanished, its files are there"
    );
    assert_eq!(table.live_files().await?[0].spec_id, Some(1));

    sqlx::query("DELETE FROM hog_consumer_offset")
        .execute(catalog.pool())
        .await?;
    expiry.advance_floor(Some(later)).await?;
    assert_eq!(
        table.all_files().await?.len(),
        3,
        "below the floor, and still a row"
    );
    assert_eq!(
        expiry.purge().await?,
        Purged {
            files: 1,
            vectors: 1
        }
    );
    assert_eq!(expiry.purge().await?, Purged::default());
    let queue: Vec<(String, String)> = sqlx::query_as(
        "SELECT file_kind, path FROM hog_file_removal
          WHERE reason = 'snapshot_expiry' AND drained_at IS NULL ORDER BY removal_id",
    )
    .fetch_all(catalog.pool())
    .await?;
    let expected = [
        ("delete", &vectors[0]),
        ("delete", &vectors[1]),
        ("data", &paths[0]),
    ]
    .map(|(kind, path)| (kind.to_owned(), path.clone()));
    assert_eq!(queue, expected);
    assert!(
        paths.iter().chain(&vectors).all(exists),
        "expiry deletes no object"
    );

    let cleanup = Cleanup::new(&catalog);
    std::fs::remove_file(&vectors[0])?;
    assert_eq!(
        cleanup.run(1).await?,
        Cleaned {
            absent: 1,
            ..Cleaned::default()
        }
    );
    assert_eq!(
        cleanup.run(100).await?,
        Cleaned {
            deleted: 2,
            ..Cleaned::default()
        }
    );
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
    table
        .append((0..1500).map(|_| NewFile::of(["1"])).collect())
        .await?;
    table.register_vector(3, 1, None).await?;
    truncate(&table).await?;
    let expiry = Expiry::new(&catalog);
    expiry
        .advance_floor(Some(Utc::now() + TimeDelta::hours(2)))
        .await?;
    for (vectors, files) in [(1, 0), (0, 1000), (0, 500), (0, 0)] {
        assert_eq!(expiry.purge_page().await?, Purged { files, vectors });
    }
    Ok(())
}

#[tokio::test]
async fn cleanup_never_deletes_a_path_that_a_row_names() -> Result<()> {
    let database = TestDatabase::with_objects().await?;
    let catalog = catalog_with(&database, None).await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    let live = table.append(one("1")).await?.file_ids[0];
    let ended = table.append(one("2")).await?.file_ids[0];
    table.register_vector(live, 1, None).await?;
    table
        .overwrite(catalog.head().await?, &[ended], vec![])
        .await?;
    let outside = tempfile::NamedTempFile::new()?;
    sqlx::query(
        "INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason)
         SELECT catalog_id, path, 'data', 'snapshot_expiry' FROM hog_data_file
         UNION ALL SELECT catalog_id, path, 'delete', 'snapshot_expiry' FROM hog_delete_file",
    )
    .execute(catalog.pool())
    .await?;
    let cleanup = Cleanup::new(&catalog);
    assert_eq!(
        cleanup.run(100).await?,
        Cleaned {
            violations: 3,
            ..Cleaned::default()
        }
    );
    for file in table.all_files().await? {
        assert!(Path::new(&file.path).is_file());
    }
    let open: (i64, i64) = sqlx::query_as(
        "SELECT count(*) FILTER (WHERE drained_at IS NULL), sum(attempts)::bigint FROM hog_file_removal",
    )
    .fetch_one(catalog.pool())
    .await?;
    assert_eq!(open, (3, 3));

    let folder = catalog.objects().context("objects on disk")?;
    let around = folder
        .join("..")
        .join("..")
        .join("x")
        .to_string_lossy()
        .into_owned();
    for path in [outside.path().to_string_lossy().into_owned(), around] {
        sqlx::query("UPDATE hog_file_removal SET path = $1")
            .bind(path)
            .execute(catalog.pool())
            .await?;
        assert!(matches!(
            cleanup.run(100).await,
            Err(LakeError::Validation(_))
        ));
    }
    assert!(outside.path().is_file());
    Ok(())
}

#[tokio::test]
async fn the_hydrator_holds_pending_files_and_no_commit_lock() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = catalog_with(&database, None).await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    let pending = |value: &str| NewFile::of([value]).pending();
    table
        .append(vec![
            pending("1"),
            NewFile::of(["1"]),
            pending("2"),
            pending("3"),
        ])
        .await?;
    table.overwrite(catalog.head().await?, &[1], vec![]).await?;
    let held = HeldFiles::hold(&catalog, 1).await?;
    assert_eq!(held.file_ids, [3]);
    let rest = HeldFiles::hold(&catalog, 1000).await?;
    assert_eq!(rest.file_ids, [4], "a locked row is skipped");
    table.append(one("4")).await?;

    let mut other = database.pool.begin().await?;
    sqlx::raw_sql("SET LOCAL lock_timeout = '1ms'")
        .execute(&mut *other)
        .await?;
    let refused = sqlx::query("UPDATE hog_data_file SET end_snapshot = 99 WHERE data_file_id = 3")
        .execute(&mut *other)
        .await;
    let code = refused.err().context("a row lock")?;
    let code = code
        .as_database_error()
        .and_then(|error| error.code())
        .context("a code")?
        .into_owned();
    assert_eq!(code, "55P03");
    other.rollback().await?;

    held.release().await?;
    rest.finish().await?;
    let states: Vec<_> = table
        .live_files()
        .await?
        .into_iter()
        .map(|file| file.stats_state)
        .collect();
    assert_eq!(states, ["provided", "pending", "provided", "provided"]);
    Ok(())
}

#[tokio::test]
async fn truncate_ends_everything_and_stops_consumers() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = catalog_with(&database, None).await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    let other = database
        .table(&catalog, "other", &[Field::day("at")])
        .await?;
    let consumer = Consumer::register(&table, "reader").await?;
    let from = consumer.committed().await?;
    table.append(one("1")).await?;
    other.append(one("1")).await?;
    table.register_vector(1, 1, None).await?;
    let (head, schema_version) = (catalog.head().await?, catalog.schema_version().await?);
    let stats = "SELECT string_agg(s::text, ' ' ORDER BY table_id) FROM hog_table_stats s";
    let before: String = sqlx::query_scalar(stats).fetch_one(catalog.pool()).await?;

    let changes = consumer.read().await?;
    assert_eq!((changes.from_snapshot, changes.to_snapshot), (from, head));
    assert_eq!((changes.files.len(), changes.delete_files.len()), (1, 1));
    consumer.advance(head).await?;
    consumer.advance(head - 1).await?;
    assert_eq!(consumer.committed().await?, head);

    assert_eq!(truncate(&table).await?, head + 1);
    assert_eq!(catalog.schema_version().await?, schema_version + 1);
    assert_eq!(table.live_files().await?, []);
    assert_eq!(table.all_vectors().await?[0].end_snapshot, Some(head + 1));
    assert_eq!(other.live_files().await?.len(), 1);
    assert_eq!(table.rows_at(head).await?, 99);
    let after: String = sqlx::query_scalar(stats).fetch_one(catalog.pool()).await?;
    assert_eq!(after, before);
    let refused = consumer.read().await;
    assert!(
        matches!(refused, Err(LakeError::ReconciliationRequired { snapshot_id }) if snapshot_id == head + 1)
    );
    let refused = table.append_at(head, one("1")).await;
    assert!(matches!(
        refused,
        Err(LakeError::DdlSinceReadSnapshot { .. })
    ));
    Ok(())
}
