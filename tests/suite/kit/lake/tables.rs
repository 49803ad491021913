//! Tests of the lake's tables: specs, versions, and dropped tables.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use tailrace_kit::lake::{Column, Field, LakeError, NewFile};

use crate::support::TestDatabase;

use super::{kinds, one_change};

#[tokio::test]
async fn files_keep_the_spec_that_they_were_written_under() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("c").await?;
    let namespace = catalog.namespace("events").await?;
    let columns = [
        Column::structure(
            "event",
            vec![Column::new("at", "timestamp"), Column::new("kind", "string")],
        ),
        Column::new("n", "long"),
    ];
    let spec = [Field::month("event.at"), Field::bucket("n", 16)];
    let table = catalog.create_table(&namespace, "t", &columns, &spec).await?;
    let expected = [("event", 1), ("event.at", 2), ("event.kind", 3), ("n", 4)];
    assert_eq!(table.fields, expected.map(|(path, id)| (path.to_owned(), id)).into());
    table.append(vec![NewFile::of(["680", "3"])]).await?;

    let schema_version = catalog.schema_version().await?;
    let day = table.evolve_spec(&[Field::day("event.at"), Field::bucket("n", 16)]).await?;
    assert_eq!((day, table.live_spec().await?), (2, Some(2)));
    assert_eq!(catalog.schema_version().await?, schema_version + 1);
    one_change(&catalog, catalog.head().await?, "table_altered", table.table_id).await?;
    // A blind writer that knows the month spec only, and an honest one.
    table.append(vec![NewFile::of(["680", "3"]), NewFile::of(["20713", "3"])]).await?;
    table.append(vec![NewFile::of(["681", "3"]).spec(1)]).await?;
    table.drop_spec().await?;
    table.append(vec![NewFile::new(vec![])]).await?;
    let specs: Vec<_> = table.live_files().await?.iter().map(|file| file.spec_id).collect();
    assert_eq!(specs, [Some(1), Some(2), Some(2), Some(1), None]);

    assert_eq!(table.delete_vanished_specs().await?, (2, 0));
    assert_eq!(table.evolve_spec(&[Field::identity("event.kind")]).await?, 3);
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
        [(1, 0, 2, "hour".to_owned(), None), (3, 0, 3, "identity".to_owned(), None)]
    );
    Ok(())
}

#[tokio::test]
async fn versions_of_tables_and_columns_begin_where_the_last_ended() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("c").await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    let other = catalog.namespace("archive").await?;
    assert_eq!(catalog.namespace("archive").await?.namespace_id, other.namespace_id);
    let policy = r#"{"field":"at","keep":"30 days"}"#;
    let set = table.set_property("retention", Some(policy)).await?;
    table.set_property("owner", Some("me")).await?;
    table.set_property("owner", None).await?;
    table.rename("t2").await?;
    let moved = table.move_to(&other).await?;
    assert_eq!(moved, set + 4);
    type Version = (i64, Option<i64>, i64, String, sqlx::types::Json<BTreeMap<String, String>>);
    let versions: Vec<Version> = sqlx::query_as(
        "SELECT begin_snapshot, end_snapshot, namespace_id, name, properties
           FROM hog_table_version ORDER BY begin_snapshot",
    )
    .fetch_all(catalog.pool())
    .await?;
    let ends: Vec<_> = versions.iter().map(|version| version.1).collect();
    let mut begins: Vec<_> = versions.iter().skip(1).map(|version| Some(version.0)).collect();
    begins.push(None);
    assert_eq!(ends, begins);
    let last = versions.last().context("a version")?;
    assert_eq!((last.2, last.3.as_str()), (other.namespace_id, "t2"));
    assert_eq!(last.4.0, [("retention".to_owned(), policy.to_owned())].into());

    let renamed = table.rename_column("at", "happened").await?;
    let added =
        table.add_column(None, Column::structure("s", vec![Column::new("x", "int")])).await?;
    assert_eq!(added, [("s".to_owned(), 3), ("s.x".to_owned(), 4)].into());
    table.add_column(Some("s"), Column::new("y", "int")).await?;
    let dropped = table.drop_column("s").await?;
    assert!(matches!(table.drop_column("at").await, Err(LakeError::NotFound(_))));
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
    let again = catalog.open_table("archive", "t2").await?;
    assert_eq!((again.table_id, again.table_uuid), (table.table_id, table.table_uuid));
    assert_eq!(again.fields, [("happened".to_owned(), 1), ("kind".to_owned(), 2)].into());
    assert_eq!(again.field_id("happened")?, 1);
    assert!(matches!(catalog.open_table("events", "t2").await, Err(LakeError::NotFound(_))));
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
    let expected = [("table_created", next.table_id), ("table_dropped", table.table_id)];
    assert_eq!(kinds(&catalog, snapshot).await?, expected.map(|(kind, id)| (kind.to_owned(), id)));
    let lineage: Vec<(i64, Option<i64>, Option<i64>)> = sqlx::query_as(
        "SELECT table_id, dropped_snapshot, replaced_table_id FROM hog_table ORDER BY table_id",
    )
    .fetch_all(catalog.pool())
    .await?;
    let expected =
        [(table.table_id, Some(snapshot), None), (next.table_id, None, Some(table.table_id))];
    assert_eq!(lineage, expected);
    assert_eq!(table.all_files().await?[0].end_snapshot, None);
    assert_ne!(table.table_uuid, next.table_uuid);

    let namespace = catalog.namespace("events").await?;
    let dropped = namespace.drop_namespace().await?;
    one_change(&catalog, dropped, "namespace_dropped", namespace.namespace_id).await?;
    let refused = next.append(vec![NewFile::of(["20713"])]).await;
    assert!(matches!(refused, Err(LakeError::TableDropped { .. })));
    assert_ne!(catalog.namespace("events").await?.namespace_id, namespace.namespace_id);
    Ok(())
}
