//! Tests of the simulated cleanup, hydrator, truncate and consumer.

use std::path::Path;

use anyhow::{Context, Result};
use tailrace_kit::lake::{Field, LakeError, NewFile};
use tailrace_kit::simulated_loops::{Cleaned, Cleanup, Consumer, HeldFiles, truncate};

use crate::support::TestDatabase;

use super::{catalog_with, one};

#[tokio::test]
async fn cleanup_never_deletes_a_path_that_a_row_names() -> Result<()> {
    let database = TestDatabase::with_objects().await?;
    let catalog = catalog_with(&database, None).await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    let live = table.append(one("1")).await?.file_ids[0];
    let ended = table.append(one("2")).await?.file_ids[0];
    table.register_vector(live, 1, None).await?;
    table.overwrite(catalog.head().await?, &[ended], vec![]).await?;
    let outside = tempfile::NamedTempFile::new()?;
    sqlx::query(
        "INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason)
         SELECT catalog_id, path, 'data', 'snapshot_expiry' FROM hog_data_file
         UNION ALL SELECT catalog_id, path, 'delete', 'snapshot_expiry' FROM hog_delete_file",
    )
    .execute(catalog.pool())
    .await?;
    let cleanup = Cleanup::new(&catalog);
    assert_eq!(cleanup.run(100).await?, Cleaned { violations: 3, ..Cleaned::default() });
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
    let around = folder.join("..").join("..").join("x").to_string_lossy().into_owned();
    for path in [outside.path().to_string_lossy().into_owned(), around] {
        sqlx::query("UPDATE hog_file_removal SET path = $1")
            .bind(path)
            .execute(catalog.pool())
            .await?;
        assert!(matches!(cleanup.run(100).await, Err(LakeError::Validation(_))));
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
    table.append(vec![pending("1"), NewFile::of(["1"]), pending("2"), pending("3")]).await?;
    table.overwrite(catalog.head().await?, &[1], vec![]).await?;
    let held = HeldFiles::hold(&catalog, 1).await?;
    assert_eq!(held.file_ids, [3]);
    let rest = HeldFiles::hold(&catalog, 1000).await?;
    assert_eq!(rest.file_ids, [4], "a locked row is skipped");
    table.append(one("4")).await?;

    let mut other = database.pool.begin().await?;
    sqlx::raw_sql("SET LOCAL lock_timeout = '1ms'").execute(&mut *other).await?;
    let refused = sqlx::query("UPDATE hog_data_file SET end_snapshot = 99 WHERE data_file_id = 3")
        .execute(&mut *other)
        .await;
    let code = refused.err().context("a row lock")?;
    let code =
        code.as_database_error().and_then(|error| error.code()).context("a code")?.into_owned();
    assert_eq!(code, "55P03");
    other.rollback().await?;

    held.release().await?;
    rest.finish().await?;
    let states: Vec<_> =
        table.live_files().await?.into_iter().map(|file| file.stats_state).collect();
    assert_eq!(states, ["provided", "pending", "provided", "provided"]);
    Ok(())
}

#[tokio::test]
async fn truncate_ends_everything_and_stops_consumers() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = catalog_with(&database, None).await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    let other = database.table(&catalog, "other", &[Field::day("at")]).await?;
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
    assert!(matches!(refused, Err(LakeError::DdlSinceReadSnapshot { .. })));
    Ok(())
}
