//! The lake builder, against the catalog's contract.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use tailrace::demo::lake::{
    Catalog, CatalogOptions, Column, Commit, Difference, Field, Lake, LakeError, NewFile,
    differences,
};

use crate::support::TestDatabase;

/// The kinds that a snapshot carries, with their objects.
async fn kinds(catalog: &Catalog, snapshot_id: i64) -> Result<Vec<(String, i64)>> {
    Ok(sqlx::query_as(
        "SELECT kind, object_id FROM hog_snapshot_change
          WHERE catalog_id = $1 AND snapshot_id = $2 ORDER BY kind, object_id",
    )
    .bind(catalog.catalog_id)
    .bind(snapshot_id)
    .fetch_all(catalog.pool())
    .await?)
}

async fn one_change(catalog: &Catalog, snapshot_id: i64, kind: &str, object: i64) -> Result<()> {
    let expected = [(kind.to_owned(), object)];
    assert_eq!(kinds(catalog, snapshot_id).await?, expected);
    Ok(())
}

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
    assert_eq!(
        (done.snapshot_id, &done.file_ids[..]),
        (head + 1, &[1, 2, 3][..])
    );
    assert_eq!(catalog.next_file_id().await?, 4);
    assert_eq!(catalog.schema_version().await?, schema_version);
    one_change(
        &catalog,
        done.snapshot_id,
        "table_inserted_into",
        table.table_id,
    )
    .await?;

    let files = table.live_files().await?;
    let values: Vec<_> = files.iter().map(|file| file.values.clone()).collect();
    assert_eq!(values, [vec![Some("20713".to_owned())], vec![None], vec![]]);
    let row_ids: Vec<_> = files.iter().map(|file| file.row_id_start).collect();
    assert_eq!(row_ids, [0, 7, 10]);
    assert!(
        files
            .iter()
            .all(|file| file.spec_id == Some(1) && !file.explicit_row_ids)
    );
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
async fn snapshot_ids_are_dense_and_in_commit_order_with_writers_side_by_side() -> Result<()> {
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
                table
                    .append(vec![NewFile::of([value]), NewFile::new(vec![None])])
                    .await?;
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
    let ids: Vec<i64> = table
        .all_files()
        .await?
        .iter()
        .map(|file| file.data_file_id)
        .collect();
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
    assert!(matches!(
        table.append(one()).await,
        Err(LakeError::TableDropped { .. })
    ));
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
    let done = table
        .overwrite(read, &[file], vec![NewFile::of(["20713"])])
        .await?;
    let expected =
        ["table_deleted_from", "table_inserted_into"].map(|kind| (kind.to_owned(), table.table_id));
    assert_eq!(kinds(&catalog, done.snapshot_id).await?, expected);
    let ended = Some(done.snapshot_id);
    assert_eq!(table.all_files().await?[0].end_snapshot, ended);
    let vectors = table.all_vectors().await?;
    assert_eq!(
        (vectors[0].delete_file_id, vectors[0].end_snapshot),
        (vector, ended)
    );
    let refused = table.overwrite(done.snapshot_id, &[file], vec![]).await;
    assert!(matches!(refused, Err(LakeError::Validation(_))));
    Ok(())
}

#[tokio::test]
async fn vectors_replace_one_another_and_heed_what_was_read() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("c").await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    let done = table
        .append(vec![
            NewFile::of(["20713"]).records(10),
            NewFile::of(["20713"]),
        ])
        .await?;
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
    for (at, expected) in [
        (read, None),
        (with_first, Some(first)),
        (with_first + 1, Some(second)),
    ] {
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

#[tokio::test]
async fn files_keep_the_spec_that_they_were_written_under() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("c").await?;
    let namespace = catalog.namespace("events").await?;
    let columns = [
        Column::structure(
            "event",
            vec![
                Column::new("at", "timestamp"),
                Column::new("kind", "string"),
            ],
        ),
        Column::new("n", "long"),
    ];
    let spec = [Field::month("event.at"), Field::bucket("n", 16)];
    let table = catalog
        .create_table(&namespace, "t", &columns, &spec)
        .await?;
    let expected = [("event", 1), ("event.at", 2), ("event.kind", 3), ("n", 4)];
    assert_eq!(
        table.fields,
        expected.map(|(path, id)| (path.to_owned(), id)).into()
    );
    table.append(vec![NewFile::of(["680", "3"])]).await?;

    let schema_version = catalog.schema_version().await?;
    let day = table
        .evolve_spec(&[Field::day("event.at"), Field::bucket("n", 16)])
        .await?;
    assert_eq!((day, table.live_spec().await?), (2, Some(2)));
    assert_eq!(catalog.schema_version().await?, schema_version + 1);
    one_change(
        &catalog,
        catalog.head().await?,
        "table_altered",
        table.table_id,
    )
    .await?;
    // A blind writer that knows the month spec only, and an honest one.
    table
        .append(vec![NewFile::of(["680", "3"]), NewFile::of(["20713", "3"])])
        .await?;
    table
        .append(vec![NewFile::of(["681", "3"]).spec(1)])
        .await?;
    table.drop_spec().await?;
    table.append(vec![NewFile::new(vec![])]).await?;
    let specs: Vec<_> = table
        .live_files()
        .await?
        .iter()
        .map(|file| file.spec_id)
        .collect();
    assert_eq!(specs, [Some(1), Some(2), Some(2), Some(1), None]);

    assert_eq!(table.delete_vanished_specs().await?, (2, 0));
    assert_eq!(
        table.evolve_spec(&[Field::identity("event.kind")]).await?,
        3
    );
    table.evolve_spec_as(1, &[Field::hour("event.at")]).await?;
    assert_eq!(table.live_spec().await?, Some(1));
    let fields: Vec<(i64, i32, i64, String, Option<i32>)> = sqlx::query_as(
        "SELECT spec_id, key_index, source_field_id, transform, transform_param
           FROM hog_partition_field ORDER BY spec_id, key_index",
    )
    .fetch_all(catalog.pool())
    .await?;
    assert_eq!(
        fields,
        [
            (1, 0, 2, "hour".to_owned(), None),
            (3, 0, 3, "identity".to_owned(), None)
        ]
    );
    Ok(())
}

#[tokio::test]
async fn versions_of_tables_and_columns_begin_where_the_last_one_ended() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("c").await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    let other = catalog.namespace("archive").await?;
    assert_eq!(
        catalog.namespace("archive").await?.namespace_id,
        other.namespace_id
    );
    let policy = r#"{"field":"at","keep":"30 days"}"#;
    let set = table.set_property("retention", Some(policy)).await?;
    table.set_property("owner", Some("me")).await?;
    table.set_property("owner", None).await?;
    table.rename("t2").await?;
    let moved = table.move_to(&other).await?;
    assert_eq!(moved, set + 4);
    type Version = (
        i64,
        Option<i64>,
        i64,
        String,
        sqlx::types::Json<BTreeMap<String, String>>,
    );
    let versions: Vec<Version> = sqlx::query_as(
        "SELECT begin_snapshot, end_snapshot, namespace_id, name, properties
           FROM hog_table_version ORDER BY begin_snapshot",
    )
    .fetch_all(catalog.pool())
    .await?;
    let ends: Vec<_> = versions.iter().map(|version| version.1).collect();
    let mut begins: Vec<_> = versions
        .iter()
        .skip(1)
        .map(|version| Some(version.0))
        .collect();
    begins.push(None);
    assert_eq!(ends, begins);
    let last = versions.last().context("a version")?;
    assert_eq!((last.2, last.3.as_str()), (other.namespace_id, "t2"));
    assert_eq!(
        last.4.0,
        [("retention".to_owned(), policy.to_owned())].into()
    );

    let renamed = table.rename_column("at", "happened").await?;
    let added = table
        .add_column(None, Column::structure("s", vec![Column::new("x", "int")]))
        .await?;
    assert_eq!(added, [("s".to_owned(), 3), ("s.x".to_owned(), 4)].into());
    table.add_column(Some("s"), Column::new("y", "int")).await?;
    let dropped = table.drop_column("s").await?;
    assert!(matches!(
        table.drop_column("at").await,
        Err(LakeError::NotFound(_))
    ));
    let columns: Vec<(i64, String, Option<i64>, i32)> = sqlx::query_as(
        "SELECT field_id, name, end_snapshot, ordinal FROM hog_column
          ORDER BY field_id, begin_snapshot",
    )
    .fetch_all(catalog.pool())
    .await?;
    let expected = [
        (1, "at", Some(renamed), 0),
        (1, "happened", None, 0),
        (2, "kind", None, 1),
        (3, "s", Some(dropped), 2),
        (4, "x", Some(dropped), 0),
        (5, "y", Some(dropped), 1),
    ]
    .map(|(id, name, end, ordinal)| (id, name.to_owned(), end, ordinal));
    assert_eq!(columns, expected);
    Ok(())
}

#[tokio::test]
async fn a_dropped_table_is_dead_while_its_files_look_live() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("c").await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["20713"])]).await?;
    let columns = [Column::new("at", "date")];
    let next = table.replace_table(&columns, &[Field::day("at")]).await?;
    let snapshot = catalog.head().await?;
    let expected = [
        ("table_created", next.table_id),
        ("table_dropped", table.table_id),
    ];
    assert_eq!(
        kinds(&catalog, snapshot).await?,
        expected.map(|(kind, id)| (kind.to_owned(), id))
    );
    let lineage: Vec<(i64, Option<i64>, Option<i64>)> = sqlx::query_as(
        "SELECT table_id, dropped_snapshot, replaced_table_id FROM hog_table ORDER BY table_id",
    )
    .fetch_all(catalog.pool())
    .await?;
    let expected = [
        (table.table_id, Some(snapshot), None),
        (next.table_id, None, Some(table.table_id)),
    ];
    assert_eq!(lineage, expected);
    assert_eq!(table.all_files().await?[0].end_snapshot, None);
    assert_ne!(table.table_uuid, next.table_uuid);

    let namespace = catalog.namespace("events").await?;
    let dropped = namespace.drop_namespace().await?;
    one_change(
        &catalog,
        dropped,
        "namespace_dropped",
        namespace.namespace_id,
    )
    .await?;
    let refused = next.append(vec![NewFile::of(["20713"])]).await;
    assert!(matches!(refused, Err(LakeError::TableDropped { .. })));
    assert_ne!(
        catalog.namespace("events").await?.namespace_id,
        namespace.namespace_id
    );
    Ok(())
}

#[tokio::test]
async fn dumps_differ_by_exactly_the_rows_that_changed() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("c").await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    let before = database.lake.dump().await?;
    assert_eq!(before.len(), 21);
    assert_eq!(
        differences(&before, &database.lake.dump().await?),
        BTreeMap::new()
    );
    table
        .append(vec![NewFile::of(["20713"]), NewFile::of(["20714"])])
        .await?;
    let changed = differences(&before, &database.lake.dump().await?);
    let counts: Vec<_> = changed
        .iter()
        .map(|(table, Difference { gone, new })| (table.as_str(), gone.len(), new.len()))
        .collect();
    let expected = [
        ("hog_catalog", 1, 1),
        ("hog_data_file", 0, 2),
        ("hog_file_partition_value", 0, 2),
        ("hog_snapshot", 0, 1),
        ("hog_snapshot_change", 0, 1),
        ("hog_table_stats", 1, 1),
    ];
    assert_eq!(counts, expected);
    let time: DateTime<Utc> = "2026-01-01T00:00:00Z".parse()?;
    catalog.backdate_snapshot(1, time).await?;
    let times: Vec<DateTime<Utc>> =
        sqlx::query_scalar("SELECT snapshot_time FROM hog_snapshot ORDER BY snapshot_id")
            .fetch_all(catalog.pool())
            .await?;
    assert_eq!(times[0], time);
    assert!(times[1..].iter().all(|other| *other > time));
    Ok(())
}

#[tokio::test]
async fn an_older_server_is_written_to_as_a_newer_one() -> Result<()> {
    for version in [
        6, 9, 10, 11, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
    ] {
        let database = TestDatabase::in_schema("public").await?;
        database.lake.downgrade(version).await?;
        let catalog = database.catalog("c").await?;
        let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
        let file = table.append(vec![NewFile::of(["20713"])]).await?.file_ids[0];
        table.register_vector(file, 1, None).await?;
        table.rename("t2").await?;
        table.evolve_spec(&[Field::month("at")]).await?;
        let there: [bool; 6] = [
            (7, "hog_commit_receipt"),
            (15, "hog_compaction_claim"),
            (16, "hog_file_removal_undrained_path"),
            (17, "hog_data_file_path"),
            (19, "hog_data_file_ended"),
            (23, "hog_file_partition_value_lookup"),
        ]
        .map(|(since, _)| version >= since);
        let found: Vec<bool> = sqlx::query_scalar(
            "SELECT to_regclass(name) IS NOT NULL FROM unnest(ARRAY['hog_commit_receipt',
               'hog_compaction_claim', 'hog_file_removal_undrained_path', 'hog_data_file_path',
               'hog_data_file_ended', 'hog_file_partition_value_lookup']) AS name",
        )
        .fetch_all(catalog.pool())
        .await?;
        assert_eq!(found, there, "V{version}");
        let claims: Vec<String> = sqlx::query_scalar(
            "SELECT column_name::text FROM information_schema.columns
              WHERE column_name IN ('replaced_table_id', 'properties', 'retirement_eligible_at')
              ORDER BY 1",
        )
        .fetch_all(catalog.pool())
        .await?;
        let expected: Vec<&str> = [
            (11, "properties"),
            (14, "replaced_table_id"),
            (20, "retirement_eligible_at"),
        ]
        .into_iter()
        .filter_map(|(since, name)| (version >= since).then_some(name))
        .collect();
        assert_eq!(claims, expected, "V{version}");
    }
    Ok(())
}

#[tokio::test]
async fn another_schema_and_several_catalogs_do_not_meet() -> Result<()> {
    let database = TestDatabase::in_schema("Hog lake").await?;
    assert_eq!(database.lake.schema(), "Hog lake");
    let (one, two) = (
        database.catalog("one").await?,
        database.catalog("two").await?,
    );
    let table = database.table(&one, "t", &[Field::day("at")]).await?;
    let twin = database.table(&two, "t", &[Field::day("at")]).await?;
    assert_eq!(table.table_id, twin.table_id);
    table.append(vec![NewFile::of(["20713"])]).await?;
    assert_eq!(twin.all_files().await?, []);
    assert_eq!(two.head().await? + 1, one.head().await?);
    let place: String = sqlx::query_scalar(
        "SELECT relnamespace::regnamespace::text FROM pg_class WHERE relname = 'hog_catalog'",
    )
    .fetch_one(&database.pool)
    .await?;
    assert_eq!(place, "\"Hog lake\"");
    let again = Lake::attach(&database.pool, "Hog lake")
        .open_catalog("one")
        .await?;
    assert_eq!(again.catalog_id, one.catalog_id);
    assert!(
        database
            .lake
            .catalog("one", CatalogOptions::default())
            .await
            .is_err()
    );
    Ok(())
}

#[tokio::test]
async fn packed_files_raise_when_they_are_ended() -> Result<()> {
    let database = TestDatabase::new().await?;
    database.lake.add_packed_tables().await?;
    let catalog = database.catalog("c").await?;
    let (packed, plain) = (
        database.table(&catalog, "packed", &[]).await?,
        database.table(&catalog, "plain", &[]).await?,
    );
    let file = packed.append(vec![NewFile::new(vec![])]).await?.file_ids[0];
    let other = plain.append(vec![NewFile::new(vec![])]).await?.file_ids[0];
    packed.pack().await?;
    let read = catalog.head().await?;
    assert!(packed.overwrite(read, &[file], vec![]).await.is_err());
    plain.overwrite(read, &[other], vec![]).await?;
    Ok(())
}
