//! Compares every row of every table of the server before and after a pass.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tailrace_kit::lake::{Difference, Field, differences};

use crate::support::TestDatabase;

use super::file;

/// The rows, those of files by id.
fn rows(rows: &[String]) -> Result<Vec<Value>> {
    let mut rows: Vec<Value> =
        rows.iter().map(|row| serde_json::from_str(row)).collect::<Result<_, _>>()?;
    rows.sort_by_key(|row| row["data_file_id"].as_i64());
    Ok(rows)
}

/// The one row that changed, as it was and as it is.
fn change(difference: &Difference) -> Result<(Value, Value)> {
    let (gone, new) = (rows(&difference.gone)?, rows(&difference.new)?);
    assert_eq!((gone.len(), new.len()), (1, 1), "{difference:?}");
    Ok((gone[0].clone(), new[0].clone()))
}

#[tokio::test]
async fn a_drop_writes_what_the_contract_names_and_nothing_else() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let spec = [Field::day("at"), Field::identity("kind")];
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let ids = table.append([0, 8, 9, 8].map(file).to_vec()).await?.file_ids;
    table.evolve_spec(&spec).await?;
    // Neighbours: the same texts in another table and in another catalog, and ended rows.
    let other = database.table(&catalog, "other", &[Field::day("at")]).await?;
    other.append([0, 8].map(file).to_vec()).await?;
    let pond = database.catalog("pond").await?;
    let far = database.table(&pond, "raw", &[Field::day("at")]).await?;
    far.append([8].map(file).to_vec()).await?;
    let first = table.register_vector(ids[1], 1, None).await?;
    let live_vector = table.register_vector(ids[1], 2, None).await?;
    table.register_vector(ids[0], 1, None).await?;
    table.overwrite(catalog.head().await?, &[ids[3]], vec![]).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;

    let before = database.lake.dump().await?;
    let report = database.sweep_one().await?;
    let after = database.lake.dump().await?;
    let drop = super::only(&report).snapshot_id;
    assert!(first < live_vector);
    let mut differences = differences(&before, &after);

    let (was, is) = change(&differences.remove("hog_catalog").context("the head")?)?;
    assert_eq!(was["name"], "lake");
    let mut expected = was.clone();
    expected["last_snapshot_id"] = json!(drop);
    assert_eq!(was["last_snapshot_id"], drop - 1);
    assert_eq!(is, expected);

    let snapshot = differences.remove("hog_snapshot").context("a snapshot")?;
    assert_eq!(snapshot.gone, Vec::<String>::new());
    let snapshot = rows(&snapshot.new)?;
    assert_eq!(snapshot.len(), 1);
    let mut expected = json!({
        "catalog_id": catalog.catalog_id, "snapshot_id": drop,
        "schema_version": catalog.schema_version().await?, "author": "tailrace",
    });
    for told in ["snapshot_time", "commit_message"] {
        expected[told] = snapshot[0][told].clone();
        assert!(expected[told].is_string());
    }
    assert_eq!(snapshot[0], expected);

    let changes = differences.remove("hog_snapshot_change").context("a change")?;
    let expected = json!({
        "catalog_id": catalog.catalog_id, "snapshot_id": drop,
        "kind": "table_deleted_from", "object_id": table.table_id,
    });
    assert_eq!((rows(&changes.new)?, changes.gone), (vec![expected], vec![]));

    let (was, is) = change(&differences.remove("hog_delete_file").context("a vector")?)?;
    assert_eq!((&was["delete_file_id"], &was["end_snapshot"]), (&json!(live_vector), &Value::Null));
    let mut expected = was.clone();
    expected["end_snapshot"] = json!(drop);
    assert_eq!(is, expected);

    let files = differences.remove("hog_data_file").context("files")?;
    let mut expected = rows(&files.gone)?;
    let gone: Vec<_> = expected.iter().map(|row| row["data_file_id"].as_i64()).collect();
    assert_eq!(gone, [Some(ids[1]), Some(ids[2])]);
    for row in &mut expected {
        assert_eq!(row["end_snapshot"], Value::Null);
        row["end_snapshot"] = json!(drop);
    }
    assert_eq!(rows(&files.new)?, expected);
    assert_eq!(differences, Default::default(), "nothing else");
    Ok(())
}

/// A pass that has nothing to drop writes nothing at all.
#[tokio::test]
async fn a_pass_without_work_and_a_plan_write_nothing() -> Result<()> {
    let scene = super::Scene::new(&[0, 3]).await?;
    let before = scene.database.lake.dump().await?;
    scene.sweep().await?;
    scene.table.append(vec![file(8)]).await?;
    let appended = scene.database.lake.dump().await?;
    let by_the_append = differences(&before, &appended);
    assert!(by_the_append.values().map(|table| table.new.len()).sum::<usize>() > 0);
    let output = scene.database.run(&["plan"]).await?;
    assert!(output.status.success());
    let mut observe = vec!["policy", "set", "lake", "events.raw", "--field", "at"];
    observe.extend(["--keep", "7d", "--mode", "observe"]);
    assert!(scene.database.run(&observe).await?.status.success());
    scene.sweep().await?;
    assert_eq!(differences(&appended, &scene.database.lake.dump().await?), Default::default());
    Ok(())
}
