//! Tests of what the lists of changes contain, and of the form of each entry.

use anyhow::{Context, Result};
use serde_json::json;
use tailrace_kit::lake::{Column, Field, NewFile};
use tailrace_kit::simulated_loops::Compaction;

use super::{NOTHING, Scene, all_ids, ids, window, with_ends};
use crate::support::TestDatabase;

#[tokio::test]
async fn the_answer_as_bytes() -> Result<()> {
    let scene = Scene::new().await?;
    let before = scene.catalog.head().await?;
    let file = NewFile::of(["20713"]).records(10).bytes(999).path("s3://lake/a.parquet");
    let one = scene.table.append(vec![file.clone()]).await?;
    let file = NewFile { values: vec![None], ..file }.path("s3://lake/b.parquet").pending();
    scene.table.append(vec![file]).await?;
    scene.table.register_vector(one.file_ids[0], 3, None).await?;
    scene
        .database
        .sql(
            "UPDATE hog_data_file SET footer_size = 77 WHERE data_file_id = 1;
              UPDATE hog_delete_file SET path = 's3://lake/c.puffin'",
        )
        .await?;
    let end = scene.drop_day("20713").await?.context("a drop")?;
    let uuid = scene.table.table_uuid;
    let (b, c, d, e) = (before, before + 1, before + 2, before + 3);
    let files = format!(
        r#"{{"data_file_id":1,"path":"s3://lake/a.parquet","file_format":"parquet","record_count":10,"file_size_bytes":999,"footer_size":77,"row_id_start":0,"stats_state":"provided","begin_snapshot":{c},"spec_id":1,"partition_values":["20713"]}},{{"data_file_id":2,"path":"s3://lake/b.parquet","file_format":"parquet","record_count":10,"file_size_bytes":999,"footer_size":null,"row_id_start":10,"stats_state":"pending","begin_snapshot":{d},"spec_id":1,"partition_values":[null]}}"#
    );
    let vectors = format!(
        r#"{{"delete_file_id":3,"data_file_id":1,"path":"s3://lake/c.puffin","file_format":"puffin-dv","delete_count":3,"file_size_bytes":256,"begin_snapshot":{e}}}"#
    );
    let expected = format!(
        r#"{{"table_uuid":"{uuid}","from_snapshot":{b},"to_snapshot":{e},"files":[{files}],"delete_files":[{vectors}]}}"#
    );
    assert_eq!(scene.text(&window(b, e)).await?, expected);
    let (first, _) = files.split_once(",{").context("two files")?;
    let ended = first.trim_end_matches('}');
    let expected = format!(
        r#"{{"table_uuid":"{uuid}","from_snapshot":{e},"to_snapshot":{end},"files":[],"delete_files":[],"ended_files":[{ended},"end_snapshot":{end}}}]}}"#
    );
    assert_eq!(scene.text(&with_ends(e, end)).await?, expected);
    // A window of nothing, with and without the third list.
    let empty = format!(
        r#"{{"table_uuid":"{uuid}","from_snapshot":{end},"to_snapshot":{end},"files":[],"delete_files":[]"#
    );
    assert_eq!(scene.text(&window(end, end)).await?, format!("{empty}}}"));
    assert_eq!(scene.text(&with_ends(end, end)).await?, format!(r#"{empty},"ended_files":[]}}"#));
    Ok(())
}

#[tokio::test]
async fn a_window_excludes_its_first_snapshot_and_has_its_last() -> Result<()> {
    let scene = Scene::new().await?;
    let start = scene.catalog.head().await?;
    scene.append(&["1"]).await?;
    scene.append(&["1"]).await?;
    scene.table.register_vector(1, 1, None).await?;
    scene.table.register_vector(2, 1, None).await?;
    scene.drop_day("1").await?;
    scene.append(&["2"]).await?;
    let end = scene.drop_day("2").await?.context("a drop")?;
    assert_eq!(end, start + 7);
    let begins: [&[(i64, i64)]; 3] =
        [&[(1, 1), (2, 2), (6, 5)], &[(3, 3), (4, 4)], &[(5, 1), (5, 2), (7, 5)]];
    for from in 0..=7 {
        for to in from..=7 {
            let expected = begins.map(|list| {
                let inside =
                    list.iter().filter(|(snapshot, _)| from < *snapshot && *snapshot <= to);
                inside.map(|(_, id)| *id).collect::<Vec<_>>()
            });
            let told = scene.told(&with_ends(start + from, start + to)).await?;
            assert_eq!(all_ids(&told), expected, "({from}, {to}]");
        }
    }
    let open_ended = tailrace::feed::ChangesQuery { to_snapshot: None, ..with_ends(start, 0) };
    let told = scene.told(&open_ended).await?;
    assert_eq!(told, scene.told(&with_ends(start, end)).await?);
    assert_eq!(told["to_snapshot"], end);
    Ok(())
}

#[tokio::test]
async fn compaction_is_in_no_list_and_its_inputs_stay_in_the_first() -> Result<()> {
    let scene = Scene::new().await?;
    let start = scene.catalog.head().await?;
    scene.append(&["1", "1", "2"]).await?;
    let appended = scene.catalog.head().await?;
    assert_eq!(Compaction::new(&scene.catalog, 1 << 40).run(&scene.table).await?, 1);
    let merged = scene.catalog.head().await?;
    for query in [window(start, merged), with_ends(start, merged)] {
        let told = scene.told(&query).await?;
        assert_eq!(all_ids(&told), [vec![1, 2, 3], vec![], vec![]]);
        assert_eq!(told["files"][0].get("end_snapshot"), None);
    }
    let told = scene.told(&window(appended, merged)).await?;
    assert_eq!(all_ids(&told), NOTHING);
    // The output itself is reported when a vector hides rows of it, and when a drop ends it.
    scene.table.register_vector(4, 1, None).await?;
    let end = scene.drop_day("1").await?.context("a drop")?;
    let told = scene.told(&with_ends(appended, end)).await?;
    assert_eq!(all_ids(&told), [vec![], vec![5], vec![4]]);
    assert_eq!(told["ended_files"][0]["begin_snapshot"], merged);
    assert_eq!(told["ended_files"][0]["partition_values"], json!(["1"]));
    Ok(())
}

#[tokio::test]
async fn a_superseded_vector_is_told_like_the_one_that_took_its_place() -> Result<()> {
    let scene = Scene::new().await?;
    let start = scene.append(&["1", "2"]).await?;
    for (file, count) in [(1, 2), (2, 1), (1, 5)] {
        scene.table.register_vector(file, count, None).await?;
    }
    let head = scene.catalog.head().await?;
    for query in [window(start, head), with_ends(start, head)] {
        let told = scene.told(&query).await?;
        assert_eq!(all_ids(&told), [vec![], vec![3, 4, 5], vec![]]);
        let counts: Vec<_> = told["delete_files"]
            .as_array()
            .context("a list")?
            .iter()
            .map(|vector| (vector["data_file_id"].as_i64(), vector["delete_count"].as_i64()))
            .collect();
        assert_eq!(counts, [(Some(1), Some(2)), (Some(2), Some(1)), (Some(1), Some(5))]);
    }
    Ok(())
}

#[tokio::test]
async fn values_are_by_key_index_and_a_hole_is_no_null() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let columns = ["a", "b", "c"].map(|name| Column::new(name, "string"));
    let fields = ["a", "b", "c"].map(Field::identity);
    let table = database.table_of(&catalog, "raw", &columns, &fields).await?;
    let start = catalog.head().await?;
    let some = |text: &str| Some(text.to_owned());
    let file = NewFile::new(vec![some("x"), None, some("")]);
    let missing = [0, 1, 2].map(|key| file.clone().missing(key));
    table.append([vec![file], missing.to_vec()].concat()).await?;
    let scene = Scene { database, catalog, table };
    let told = scene.told(&window(start, scene.catalog.head().await?)).await?;
    let values: Vec<_> = (0..4).map(|at| told["files"][at]["partition_values"].clone()).collect();
    // Without its last row a tuple is short, which its reader can see.
    let expected = [json!(["x", null, ""]), json!(null), json!(null), json!(["x", null])];
    assert_eq!(values, expected);
    Ok(())
}

#[tokio::test]
async fn a_file_that_is_not_partitioned_has_no_values() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[]).await?;
    let start = catalog.head().await?;
    let head = table.append(vec![NewFile::new(vec![])]).await?.snapshot_id;
    let scene = Scene { database, catalog, table };
    let told = scene.told(&window(start, head)).await?;
    let file = &told["files"][0];
    assert_eq!((&file["spec_id"], &file["partition_values"]), (&json!(null), &json!(null)));
    Ok(())
}

#[tokio::test]
async fn the_neighbours_are_not_reported() -> Result<()> {
    let scene = Scene::new().await?;
    let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    let elsewhere = scene.database.catalog("elsewhere").await?;
    let twin = scene.database.table(&elsewhere, "raw", &[Field::day("at")]).await?;
    let start = scene.catalog.head().await?;
    for table in [&other, &scene.table, &twin, &other] {
        let ids = table.append(vec![NewFile::of(["1"]), NewFile::of(["2"])]).await?.file_ids;
        table.register_vector(ids[1], 1, None).await?;
        super::drop_day(&scene.database, table, "1").await?;
    }
    let head = scene.catalog.head().await?;
    let told = scene.told(&with_ends(start, head)).await?;
    let mine = scene.table.all_files().await?;
    assert_eq!(ids(&told, "files"), mine.iter().map(|file| file.data_file_id).collect::<Vec<_>>());
    assert_eq!(ids(&told, "ended_files"), [mine[0].data_file_id]);
    assert_eq!(ids(&told, "delete_files").len(), 1);
    Ok(())
}
