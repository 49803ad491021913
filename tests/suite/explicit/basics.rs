//! Tests of the basics of an explicit drop: one commit, exact counts, receipts, and guards.

use anyhow::Result;
use tailrace::explicit::call::{DropBody, PartitionItem, TableRef, TruncateBody};
use tailrace::explicit::problem::Problem;
use tailrace::explicit::{Bounds, drop_partitions, truncate};
use tailrace_kit::lake::{Field, NewFile};
use uuid::Uuid;

use crate::support::TestDatabase;
use crate::support::program::settings;

fn bounds() -> Bounds {
    Bounds { limits: settings().limits, max_files: 100 }
}

fn raw() -> TableRef {
    TableRef { catalog: "lake".to_owned(), namespace: "events".to_owned(), table: "raw".to_owned() }
}

fn body(days: &[Option<&str>]) -> DropBody {
    DropBody {
        partitions: days
            .iter()
            .map(|day| PartitionItem {
                partition_values: vec![day.map(str::to_owned)],
                spec_id: None,
                literal: false,
            })
            .collect(),
        idempotency_key: Uuid::new_v4(),
        expected_table_uuid: None,
        read_snapshot: None,
        author: None,
        message: None,
        dry_run: false,
        fence: false,
    }
}

#[tokio::test]
async fn a_list_goes_in_one_snapshot_and_a_retry_gets_the_same_answer() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let appended = table
        .append(vec![
            NewFile::of(["1"]).records(10).bytes(100),
            NewFile::of(["1"]).records(20).bytes(200),
            NewFile::of(["2"]).records(30).bytes(300),
            NewFile::new(vec![None]).records(40).bytes(400),
        ])
        .await?;
    table.register_vector(appended.file_ids[1], 5, None).await?;
    let mut session = database.tailrace().session().await?;
    let body = body(&[None, Some("7"), Some("1")]);

    let dry = DropBody { dry_run: true, ..body.clone() };
    let dry = drop_partitions(&mut session, &raw(), &dry, "me", &bounds()).await?;
    assert_eq!(
        (dry.committed, dry.files_ended, dry.snapshot_id),
        (false, 3, catalog.head().await?)
    );

    let answer = drop_partitions(&mut session, &raw(), &body, "me", &bounds()).await?;
    assert_eq!(answer.snapshot_id, catalog.head().await?);
    assert!(answer.committed && !answer.replayed);
    let per: Vec<_> = answer
        .partitions
        .iter()
        .map(|p| (p.files_ended, p.delete_files_ended, p.records, p.bytes))
        .collect();
    assert_eq!(per, [(1, 0, 40, 400), (0, 0, 0, 0), (2, 1, 30, 300)]);
    assert_eq!(
        (answer.files_ended, answer.delete_files_ended, answer.records, answer.bytes),
        (3, 1, 70, 700)
    );
    let live: Vec<_> = table.live_files().await?.iter().map(|file| file.data_file_id).collect();
    assert_eq!(live, [appended.file_ids[2]]);

    table.drop_table().await?;
    let replayed = drop_partitions(&mut session, &raw(), &body, "me", &bounds()).await?;
    assert!(replayed.replayed);
    assert_eq!(tailrace::explicit::call::DropAnswer { replayed: false, ..replayed }, answer);
    let other = DropBody { fence: true, ..body };
    let refused = drop_partitions(&mut session, &raw(), &other, "me", &bounds()).await;
    assert_eq!(refused.unwrap_err().status(), 422);
    Ok(())
}

#[tokio::test]
async fn an_empty_match_makes_no_snapshot_but_a_receipt() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let head = catalog.head().await?;
    let mut session = database.tailrace().session().await?;
    let body = body(&[Some("1")]);
    let first = drop_partitions(&mut session, &raw(), &body, "me", &bounds()).await?;
    assert_eq!((first.snapshot_id, first.committed, first.replayed), (head, false, false));
    table.append(vec![NewFile::of(["1"])]).await?;
    let again = drop_partitions(&mut session, &raw(), &body, "me", &bounds()).await?;
    assert_eq!((again.snapshot_id, again.committed, again.replayed), (head, false, true));
    assert_eq!(table.live_files().await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn what_came_since_read_snapshot_is_a_conflict() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["1"])]).await?;
    let read = catalog.head().await?;
    let mut session = database.tailrace().session().await?;
    table.append(vec![NewFile::of(["2"])]).await?;
    let guarded = |days: &[Option<&str>]| DropBody { read_snapshot: Some(read), ..body(days) };
    let conflict =
        drop_partitions(&mut session, &raw(), &guarded(&[Some("2")]), "me", &bounds()).await;
    assert!(matches!(conflict, Err(Problem::CommitConflict(_))), "{conflict:?}");
    let fine =
        drop_partitions(&mut session, &raw(), &guarded(&[Some("1")]), "me", &bounds()).await?;
    assert_eq!(fine.files_ended, 1);
    table.rename_column("kind", "sort").await?;
    let ddl = drop_partitions(&mut session, &raw(), &guarded(&[Some("1")]), "me", &bounds()).await;
    assert_eq!(
        ddl,
        Err(Problem::DdlSinceReadSnapshot { table: "events.raw".to_owned(), read_snapshot: read })
    );
    Ok(())
}

#[tokio::test]
async fn truncate_ends_everything_with_the_servers_pair() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let version = catalog.schema_version().await?;
    let mut session = database.tailrace().session().await?;
    let (call, uuid) = (TruncateBody::default(), Some(table.table_uuid));
    let empty = truncate(&mut session, &raw(), uuid, &call, "me", &bounds()).await?;
    assert_eq!((empty.snapshot_id, empty.schema_version), (catalog.head().await?, version));
    table.append(vec![NewFile::of(["1"]), NewFile::of(["2"])]).await?;
    let done = truncate(&mut session, &raw(), uuid, &call, "me", &bounds()).await?;
    assert_eq!((done.snapshot_id, done.schema_version), (catalog.head().await?, version + 1));
    assert_eq!(table.live_files().await?.len(), 0);
    let kinds: Vec<String> = sqlx::query_scalar(
        "select kind from hog_snapshot_change where snapshot_id = $1 order by kind",
    )
    .bind(done.snapshot_id)
    .fetch_all(&database.pool)
    .await?;
    assert_eq!(kinds, ["table_altered", "table_deleted_from"]);
    Ok(())
}
