//! Tests of which files belong to a list of tuples, for each way to find them.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use anyhow::{Context, Result};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Row};
use tailrace::catalog::finder::tuples::{Search, count_files, files_of, visit};
use tailrace::catalog::live_file::Counts;
use tailrace::catalog::session::Session;
use tailrace::catalog::tables::TableIdentity;
use tailrace::catalog::tuples::TupleOfSpec;
use tailrace::rules::expiry::StoredTuple;
use tailrace_kit::lake::{Field, NewFile};

use super::prewarming::read_by;
use super::{Scene, days_of, file};
use crate::explicit::wire::Wire;

async fn found(
    session: &mut Session,
    table: &TableIdentity,
    (tuples, lookup_keys): (&[TupleOfSpec], &[usize]),
    from_id: i64,
) -> Result<Vec<(i64, i32)>> {
    let TableIdentity { catalog_id, table_id, .. } = *table;
    Ok(files_of(session, catalog_id, table_id, tuples, lookup_keys, from_id, i64::MAX).await?)
}

/// With the lookup index and, on a server without it, by the primary key and by the table's files.
#[tokio::test]
async fn each_way_finds_the_same_files() -> Result<()> {
    let scene = Scene::new().await?;
    let spec = [Field::day("at"), Field::identity("kind")];
    let table = scene.database.table(&scene.catalog, "two", &spec).await?;
    let new = |values: [Option<&str>; 2]| {
        NewFile::new(values.map(|value| value.map(str::to_owned)).to_vec())
    };
    let files = vec![
        new([Some("1"), Some("a")]),
        new([Some("1"), Some("b")]),
        new([Some("1"), None]),
        new([None, Some("a")]),
        new([Some("1"), Some("a")]).missing(1),
        new([Some("1"), Some("a")]).spec(7),
        new([Some("1"), Some("a")]),
        new([None, None]),
        new([Some("1"), Some("")]),
    ];
    let ids = table.append(files).await?.file_ids;
    scene.append(["1", "2"]).await?;
    let tuple = |values: [Option<&str>; 2]| TupleOfSpec {
        spec_id: 1,
        tuple: StoredTuple {
            keys: vec![0, 1],
            values: values.map(|value| value.map(str::to_owned)).to_vec(),
        },
    };
    let tuples = [
        tuple([Some("1"), Some("a")]),
        tuple([None, Some("a")]),
        tuple([Some("1"), None]),
        tuple([None, None]),
    ];
    // The first is also to be found by the lookup key of the second, and the third by that of the first.
    let lookup_keys = [0, 1, 0, 0];
    let all = [(ids[0], 0), (ids[2], 2), (ids[3], 1), (ids[6], 0), (ids[7], 3)];
    let identity = scene.database.live(&table).await?.identity;
    let mut session = scene.database.tailrace().session().await?;
    for has_index in [true, false] {
        for (from_id, expected) in [(0, &all[..]), (ids[2], &all[1..]), (ids[6], &all[3..])] {
            let files = found(&mut session, &identity, (&tuples, &lookup_keys), from_id).await?;
            assert_eq!(files, expected, "{has_index} {from_id}");
        }
        let TableIdentity { catalog_id, table_id, .. } = identity;
        let search =
            Search { catalog_id, table_id, tuples: &tuples, lookup_keys: &lookup_keys, from_id: 0 };
        let counts = count_files(&mut session, &search).await?;
        let files: Vec<_> = counts.iter().map(|(number, counts)| (*number, counts.files)).collect();
        assert_eq!(files, [(0, 2), (1, 1), (2, 1), (3, 1)], "each once: {has_index}");
        if has_index {
            scene.database.lake.downgrade(22).await?;
        }
    }
    Ok(())
}

/// A value with more entries than a page gives each, nulls among them, is read on; so is one of
/// which a page shows nothing but a neighbour's files, and ended ones.
#[tokio::test]
async fn what_is_more_than_a_page_is_read_on() -> Result<()> {
    let scene = Scene::new().await?;
    let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    other.append((0..70).map(|_| file("5")).collect()).await?;
    let null = || NewFile::new(vec![None]);
    let days = (0..600).map(|day| file(&day.to_string()));
    let more = (0..70).flat_map(|_| [file("5"), null()]);
    scene.table.append(days.chain(more).collect()).await?;
    scene
        .database
        .sql("UPDATE hog_data_file SET end_snapshot = 1000 WHERE data_file_id % 7 = 0")
        .await?;
    let days: Vec<_> = (0..600).map(|day| day.to_string()).collect();
    let mut tuples = days_of(&days.iter().map(String::as_str).collect::<Vec<_>>());
    let null = StoredTuple { keys: vec![0], values: vec![None] };
    tuples.push(TupleOfSpec { spec_id: 1, tuple: null });
    let mut expected: Vec<_> = scene
        .table
        .live_files()
        .await?
        .iter()
        .filter(|file| file.end_snapshot.is_none())
        .map(|file| {
            let number = file.values[0].as_ref().map_or(Ok(600), |day| day.parse());
            Ok((file.data_file_id, number?))
        })
        .collect::<Result<_>>()?;
    expected.sort_unstable();
    assert_eq!(expected.len(), 635);
    let lookup_keys = vec![0; tuples.len()];
    let mut session = scene.database.tailrace().session().await?;
    let files = found(&mut session, &scene.identity, (&tuples, &lookup_keys), 0).await?;
    assert_eq!(files, expected);
    Ok(())
}

/// Without statistics, and however many values are looked up: entries by the lookup index, files and
/// their values by their primary keys, and never all files of a catalog or table.
#[tokio::test]
async fn files_are_found_by_their_keys_whatever_the_planner_believes() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append((0..3000).map(|day| file(&day.to_string())).collect()).await?;
    let days: Vec<_> = (0..600).map(|day| day.to_string()).collect();
    let tuples = days_of(&days.iter().map(String::as_str).collect::<Vec<_>>());
    let lookup_keys = vec![0; tuples.len()];
    let (wire, through) = Wire::to(&scene.database).await?;
    let mut session = through.session().await?;
    let files = found(&mut session, &scene.identity, (&tuples, &lookup_keys), 0).await?;
    assert_eq!(files.len(), 600);
    let asked = wire.asked();
    let sql = asked.iter().find(|sql| sql.starts_with("select f.value_no")).context("asked")?;
    let explain = format!(
        "PREPARE asked (bigint, bigint, int[], text[], bigint[], bigint) AS {sql};
         EXPLAIN (FORMAT JSON) EXECUTE asked ({}, {}, '{{0,0}}', '{{7,9}}', '{{0,0}}', 30)",
        scene.catalog.catalog_id, scene.table.table_id
    );
    let rows = sqlx::raw_sql(AssertSqlSafe(explain)).fetch_all(&mut session).await?;
    let plan: Value = rows.first().context("a plan")?.try_get(0)?;
    let mut names = BTreeSet::new();
    read_by(&plan, &mut names);
    names.retain(|name| !name.starts_with("hog_delete_file"));
    let expected =
        ["hog_data_file_pkey", "hog_file_partition_value_lookup", "hog_file_partition_value_pkey"];
    assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{plan}");
    Ok(())
}

#[tokio::test]
async fn a_visit_ends_when_told_to_and_counts_its_own_files() -> Result<()> {
    let scene = Scene::new().await?;
    let files = scene.append(["1", "2", "2", "3"]).await?;
    scene.table.register_vector(files[2], 1, None).await?;
    let tuples = days_of(&["4", "2", "1"]);
    let search = Search {
        catalog_id: scene.catalog.catalog_id,
        table_id: scene.table.table_id,
        tuples: &tuples,
        lookup_keys: &[0, 0, 0],
        from_id: 0,
    };
    let mut session = scene.database.tailrace().session().await?;
    let counts = |files, delete_files| Counts {
        files,
        delete_files,
        records: 10 * files,
        bytes: 100 * files,
    };
    assert_eq!(count_files(&mut session, &search).await?, [(1, counts(2, 1)), (2, counts(1, 0))]);
    let mut seen = 0;
    visit(&mut session, &search, |_, _| {
        seen += 1;
        ControlFlow::Break(())
    })
    .await?;
    assert_eq!(seen, 1);
    Ok(())
}
