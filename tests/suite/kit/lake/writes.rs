//! Tests of appends, vectors and overwrites, and of what each conflicts with.

use std::time::Duration;

use anyhow::Result;
use tailrace_kit::lake::{Commit, Field, LakeError, NewFile};

use crate::support::TestDatabase;

use super::{kinds, one_change};

#[tokio::test]
async fn an_append_takes_ids_rows_and_totals_from_the_counters() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("c").await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    let (head, schema_version) = (catalog.head().await?, catalog.schema_version().await?);
    let files = vec![
        NewFile::of(["20713"]).records(7).bytes(70),
        NewFile::new(vec![None]).records(3).bytes(30),
        NewFile::of(["20714"]).missing(0).pending(),
    ];
    let done = table.append(files).await?;
    assert_eq!((done.snapshot_id, &done.file_ids[..]), (head + 1, &[1, 2, 3][..]));
    assert_eq!(catalog.next_file_id().await?, 4);
    assert_eq!(catalog.schema_version().await?, schema_version);
    one_change(&catalog, done.snapshot_id, "table_inserted_into", table.table_id).await?;

    let files = table.live_files().await?;
    let values: Vec<_> = files.iter().map(|file| file.values.clone()).collect();
    assert_eq!(values, [vec![Some("20713".to_owned())], vec![None], vec![]]);
    let row_ids: Vec<_> = files.iter().map(|file| file.row_id_start).collect();
    assert_eq!(row_ids, [0, 7, 10]);
    assert!(files.iter().all(|file| file.spec_id == Some(1) && !file.explicit_row_ids));
    assert_eq!(files[2].stats_state, "pending");
    assert_eq!(table.rows_at(done.snapshot_id).await?, 110);
    let stats: (i64, i64, i64) =
        sqlx::query_as("SELECT record_count, file_size_bytes, next_row_id FROM hog_table_stats")
            .fetch_one(database.lake.pool())
            .await?;
    assert_eq!(stats, (110, 1100, 110));
    Ok(())
}

#[tokio::test]
async fn snapshot_ids_are_dense_and_in_order_with_many_writers() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("c").await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    let before = catalog.head().await?;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..8 {
        let table = table.clone();
        writers.spawn(async move {
            for day in 0..5 {
                let value = (20_000 + writer * 10 + day).to_string();
                table.append(vec![NewFile::of([value]), NewFile::new(vec![None])]).await?;
            }
            Ok::<_, LakeError>(())
        });
    }
    while let Some(ended) = writers.join_next().await {
        ended??;
    }
    assert_eq!(catalog.head().await?, before + 40);
    let in_order: (i64, bool, bool) = sqlx::query_as(
        "SELECT count(*), bool_and(snapshot_id = expected), bool_and(later)
           FROM (SELECT snapshot_id, row_number() OVER (ORDER BY snapshot_time) AS expected,
                        snapshot_time > coalesce(lag(snapshot_time) OVER (ORDER BY snapshot_id),
                                                 '-infinity') AS later
                   FROM hog_snapshot) s",
    )
    .fetch_one(catalog.pool())
    .await?;
    assert_eq!(in_order, (before + 40, true, true));
    let ids: Vec<i64> = table.all_files().await?.iter().map(|file| file.data_file_id).collect();
    assert_eq!(ids, (1..=80).collect::<Vec<i64>>());
    Ok(())
}

#[tokio::test]
async fn the_commit_lock_is_the_one_of_the_contract() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("c").await?;
    let commit = Commit::begin(&catalog).await?;
    let key = (4_740_871_i64 << 32) | catalog.catalog_id;
    let mut other = database.pool.begin().await?;
    let had: bool = sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1)")
        .bind(key)
        .fetch_one(&mut *other)
        .await?;
    assert!(!had);
    let impatient = database.lake.clone().with_commit_wait(Duration::ZERO);
    let impatient = impatient.open_catalog("c").await?;
    let refused = Commit::begin(&impatient).await;
    assert!(matches!(refused, Err(LakeError::CommitQueueTimeout)));
    commit.finish().await?;
    let had: bool = sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1)")
        .bind(key)
        .fetch_one(&mut *other)
        .await?;
    assert!(had);
    Ok(())
}

#[tokio::test]
async fn many_files_are_one_commit() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("c").await?;
    let spec = [Field::day("at"), Field::identity("kind")];
    let table = database.table(&catalog, "t", &spec).await?;
    let files = (0..30_000_i32)
        .map(|n| NewFile::of([(n / 10).to_string(), (n % 10).to_string()]).records(1))
        .collect();
    let done = table.append(files).await?;
    assert_eq!(done.file_ids, (1..=30_000).collect::<Vec<i64>>());
    let files = table.live_files().await?;
    assert_eq!(files.len(), 30_000);
    let last = &files[29_999];
    assert_eq!(last.values, [Some("2999".to_owned()), Some("9".to_owned())]);
    assert_eq!(last.row_id_start, 29_999);
    Ok(())
}

#[tokio::test]
async fn appends_conflict_with_ddl_only() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("c").await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    let one = || vec![NewFile::of(["20713"])];
    let read = catalog.head().await?;
    let file = table.append(one()).await?.file_ids[0];
    table.register_vector(file, 5, None).await?;
    table.append_at(read, one()).await?;
    table.set_property("a", Some("b")).await?;
    let refused = table.append_at(read, one()).await;
    assert!(
        matches!(refused, Err(LakeError::DdlSinceReadSnapshot { read_snapshot }) if read_snapshot == read)
    );
    table.append_at(catalog.head().await?, one()).await?;
    let refused = table.append_at(catalog.head().await? + 1, one()).await;
    assert!(matches!(refused, Err(LakeError::Validation(_))));
    let refused = table.append(vec![NewFile::of(["1", "2"])]).await;
    assert!(matches!(refused, Err(LakeError::Validation(_))));
    let head = catalog.head().await?;
    table.drop_table().await?;
    assert!(matches!(table.append(one()).await, Err(LakeError::TableDropped { .. })));
    assert!(matches!(
        table.append_at(head, one()).await,
        Err(LakeError::DdlSinceReadSnapshot { .. })
    ));
    assert_eq!(catalog.head().await?, head + 1);
    Ok(())
}

#[tokio::test]
async fn an_overwrite_conflicts_with_every_write_since() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("c").await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    let first = table.append(vec![NewFile::of(["20713"])]).await?;
    let file = first.file_ids[0];
    let vector = table.register_vector(file, 5, None).await?;
    let refused = table.overwrite(first.snapshot_id, &[file], vec![]).await;
    assert!(matches!(refused, Err(LakeError::Conflict(_))));
    let read = catalog.head().await?;
    let done = table.overwrite(read, &[file], vec![NewFile::of(["20713"])]).await?;
    let expected =
        ["table_deleted_from", "table_inserted_into"].map(|kind| (kind.to_owned(), table.table_id));
    assert_eq!(kinds(&catalog, done.snapshot_id).await?, expected);
    let ended = Some(done.snapshot_id);
    assert_eq!(table.all_files().await?[0].end_snapshot, ended);
    let vectors = table.all_vectors().await?;
    assert_eq!((vectors[0].delete_file_id, vectors[0].end_snapshot), (vector, ended));
    let refused = table.overwrite(done.snapshot_id, &[file], vec![]).await;
    assert!(matches!(refused, Err(LakeError::Validation(_))));
    Ok(())
}

#[tokio::test]
async fn vectors_replace_one_another_and_heed_what_was_read() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("c").await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    let done =
        table.append(vec![NewFile::of(["20713"]).records(10), NewFile::of(["20713"])]).await?;
    let (read, file, other) = (done.snapshot_id, done.file_ids[0], done.file_ids[1]);
    let first = table.register_vector(file, 4, Some(read)).await?;
    assert_eq!(first, other + 1, "files and vectors share a counter");
    let with_first = catalog.head().await?;
    one_change(&catalog, with_first, "table_deleted_from", table.table_id).await?;
    assert_eq!(table.rows_at(with_first).await?, 106);

    let conflict = table.register_vector(file, 6, Some(read)).await;
    assert!(matches!(conflict, Err(LakeError::Conflict(_))));
    for count in [3, 11, 0] {
        let refused = table.register_vector(file, count, None).await;
        assert!(matches!(refused, Err(LakeError::Validation(_))), "{count}");
    }
    let second = table.register_vector(file, 10, None).await?;
    let seen = |vector: Option<i64>| (file, vector);
    for (at, expected) in [(read, None), (with_first, Some(first)), (with_first + 1, Some(second))]
    {
        let found = &table.files_at(at).await?[0];
        let vector = found.vector.as_ref().map(|vector| vector.delete_file_id);
        assert_eq!((found.data_file_id, vector), seen(expected), "at {at}");
    }

    // The file ended after what was read: a conflict. Before: not valid. Never there: neither.
    let head = catalog.head().await?;
    table.overwrite(head, &[other], vec![]).await?;
    let late = table.register_vector(other, 1, Some(head)).await;
    assert!(matches!(late, Err(LakeError::Conflict(_))));
    for (gone, read) in [(other, None), (999, None), (file, Some(read - 1))] {
        let refused = table.register_vector(gone, 10, read).await;
        assert!(matches!(refused, Err(LakeError::Validation(_))), "{gone}");
    }
    Ok(())
}
