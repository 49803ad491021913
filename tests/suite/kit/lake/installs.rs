//! Tests of the lake as a whole: dumps, schemas, older servers.

use std::collections::BTreeMap;

use anyhow::Result;
use chrono::{DateTime, Utc};
use tailrace_kit::lake::{CatalogOptions, Difference, Field, Lake, NewFile, differences};

use crate::support::TestDatabase;

#[tokio::test]
async fn dumps_differ_by_exactly_the_rows_that_changed() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("c").await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    let before = database.lake.dump().await?;
    assert_eq!(before.len(), 21);
    assert_eq!(differences(&before, &database.lake.dump().await?), BTreeMap::new());
    table.append(vec![NewFile::of(["20713"]), NewFile::of(["20714"])]).await?;
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
    for version in [9, 10, 11, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27] {
        let database = TestDatabase::in_schema("public").await?;
        database.lake.downgrade(version).await?;
        let catalog = database.catalog("c").await?;
        let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
        let file = table.append(vec![NewFile::of(["20713"])]).await?.file_ids[0];
        table.register_vector(file, 1, None).await?;
        table.rename("t2").await?;
        table.evolve_spec(&[Field::month("at")]).await?;
        let there: [bool; 5] = [
            (15, "hog_compaction_claim"),
            (16, "hog_file_removal_undrained_path"),
            (17, "hog_data_file_path"),
            (19, "hog_data_file_ended"),
            (23, "hog_file_partition_value_lookup"),
        ]
        .map(|(since, _)| version >= since);
        let found: Vec<bool> = sqlx::query_scalar(
            "SELECT to_regclass(name) IS NOT NULL FROM unnest(ARRAY[
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
        let expected: Vec<&str> =
            [(11, "properties"), (14, "replaced_table_id"), (20, "retirement_eligible_at")]
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
    let (one, two) = (database.catalog("one").await?, database.catalog("two").await?);
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
    let again = Lake::attach(&database.pool, "Hog lake").open_catalog("one").await?;
    assert_eq!(again.catalog_id, one.catalog_id);
    assert!(database.lake.catalog("one", CatalogOptions::default()).await.is_err());
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
