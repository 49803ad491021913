//! Tests of which files belong to a tuple.

use anyhow::Result;
use tailrace_kit::lake::{Field, NewFile};

use crate::support::TestDatabase;

use super::{Scene, days, drop_of, file, item, ledger, live, per_partition};

/// A day, a team that may be null, a bucket.
const SPEC: fn() -> [Field; 3] =
    || [Field::day("at"), Field::identity("kind"), Field::bucket("kind", 4)];

fn of(values: [Option<&str>; 3]) -> NewFile {
    NewFile::new(values.map(|value| value.map(str::to_owned)).to_vec()).records(10).bytes(100)
}

async fn nulls_are_values(scene: &Scene) -> Result<()> {
    let tuples = [
        [Some("8"), Some("a"), Some("1")],
        [Some("8"), None, Some("1")],
        [Some("8"), None, None],
        [None, Some("a"), Some("1")],
        [None, None, Some("1")],
        [None, None, None],
        [Some("9"), None, Some("1")],
        // Texts that a careless comparison takes for a null.
        [Some("8"), Some(""), Some("1")],
        [Some("8"), Some("null"), Some("1")],
    ];
    let twice: Vec<_> = tuples.iter().chain(&tuples).map(|values| of(*values)).collect();
    let ids = scene.table.append(twice).await?.file_ids;
    // Neighbours of each tuple that lack a row: equal to none.
    let damaged = (0..3)
        .map(|key| of(tuples[0]).missing(key))
        .chain((0..3).map(|key| of(tuples[5]).missing(key)));
    let damaged = scene.table.append(damaged.collect()).await?.file_ids;
    let mut left: Vec<usize> = (0..tuples.len()).collect();
    for gone in [1, 5, 3, 2, 7] {
        let answer = scene.done(&drop_of(vec![item(tuples[gone])])).await?;
        assert_eq!(per_partition(&answer), [2], "{:?}", tuples[gone]);
        left.retain(|at| *at != gone);
        let mut expected: Vec<_> = left.iter().map(|at| ids[*at]).collect();
        expected.extend(left.iter().map(|at| ids[at + tuples.len()]));
        expected.extend(&damaged);
        assert_eq!(scene.live().await?, expected, "after {:?}", tuples[gone]);
    }
    let rest = left.iter().map(|at| item(tuples[*at])).collect();
    assert_eq!(per_partition(&scene.done(&drop_of(rest)).await?), [2; 4]);
    assert_eq!(scene.live().await?, damaged, "incomplete files match nothing");
    ledger::agrees(&scene.catalog).await
}

#[tokio::test]
async fn null_is_a_value_like_any_other_and_damage_is_none() -> Result<()> {
    nulls_are_values(&Scene::of(&SPEC()).await?).await
}

#[tokio::test]
async fn the_same_without_the_lookup_index() -> Result<()> {
    let database = TestDatabase::new().await?;
    database.lake.downgrade(22).await?;
    nulls_are_values(&Scene::within(database, &SPEC()).await?).await
}

#[tokio::test]
async fn the_same_texts_of_another_table_and_catalog_stay() -> Result<()> {
    let scene = Scene::new().await?;
    let sibling = scene.database.table(&scene.catalog, "sibling", &[Field::day("at")]).await?;
    let pond = scene.database.catalog("pond").await?;
    let far = scene.database.table(&pond, "raw", &[Field::day("at")]).await?;
    let null = || NewFile::new(vec![None]);
    let mut kept = Vec::new();
    for table in [&sibling, &far] {
        let ids = table.append(vec![file("8"), null()]).await?.file_ids;
        table.register_vector(ids[0], 1, None).await?;
        kept.push(ids);
    }
    scene.table.append(vec![file("8"), null()]).await?;
    assert_eq!((scene.table.table_id, far.table_id), (1, 1), "the ids are alike too");
    let body = drop_of(vec![item([Some("8")]), item([None])]);
    assert_eq!(per_partition(&scene.done(&body).await?), [1, 1]);
    assert_eq!(scene.live().await?, Vec::<i64>::new());
    assert_eq!([live(&sibling).await?, live(&far).await?].to_vec(), kept);
    let vectors = [sibling.all_vectors().await?, far.all_vectors().await?].concat();
    assert_eq!(vectors.iter().map(|v| v.end_snapshot).collect::<Vec<_>>(), [None, None]);
    Ok(())
}

/// A file that has ended is not ended again, and a file of a table that is packed is not touched.
#[tokio::test]
async fn only_live_parquet_files_end() -> Result<()> {
    let scene = Scene::new().await?;
    let ids = scene.table.append(vec![file("8"), file("8")]).await?.file_ids;
    let read = scene.catalog.head().await?;
    let overwritten = scene.table.overwrite(read, &ids[..1], vec![]).await?;
    assert_eq!(scene.done(&days(["8"])).await?.files_ended, 1);
    let ends: Vec<_> = scene.table.all_files().await?.iter().map(|f| f.end_snapshot).collect();
    assert_eq!(ends, [Some(overwritten.snapshot_id), Some(overwritten.snapshot_id + 1)]);

    let database = TestDatabase::new().await?;
    database.lake.add_packed_tables().await?;
    let packed = Scene::within(database, &[Field::day("at")]).await?;
    packed.table.append(vec![file("8")]).await?;
    packed.table.pack().await?;
    let expected = "table events.raw is not made of parquet files, and has no partitions to drop";
    assert_eq!(packed.refused(&days(["8"])).await?.to_string(), expected);
    let truncated = packed.truncate(&Default::default()).await?;
    assert_eq!(truncated.expect_err("packed").to_string(), expected);
    Ok(())
}
