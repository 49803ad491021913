//! Tests of the simulated compaction beside other writers.

use std::path::Path;

use anyhow::{Context, Result};
use tailrace_kit::lake::{Catalog, Field, NewFile};
use tailrace_kit::simulated_loops::{Cleaned, Cleanup, Compacted, Compaction};

use crate::support::TestDatabase;

use super::{catalog_with, one};

/// Claims that have not expired, as the files that they name.
async fn claimed(catalog: &Catalog) -> Result<Vec<Vec<i64>>> {
    Ok(sqlx::query_scalar(
        "SELECT input_file_ids FROM hog_compaction_claim
          WHERE expires_at > now() + interval '14 minutes' ORDER BY group_key",
    )
    .fetch_all(catalog.pool())
    .await?)
}

#[tokio::test]
async fn compaction_merges_within_a_bucket_and_says_so() -> Result<()> {
    let database = TestDatabase::with_objects().await?;
    let catalog = catalog_with(&database, None).await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    table.append(one("1")).await?;
    let files = vec![
        NewFile::of(["1"]).records(10),
        NewFile::of(["2"]),
        NewFile::new(vec![None]),
        NewFile::of(["1"]).bytes(5000),
        NewFile::new(vec![None]).missing(0),
    ];
    table.append(files).await?;
    table.evolve_spec(&[Field::month("at")]).await?;
    table.append(one("1")).await?;
    table.register_vector(2, 4, None).await?;
    let (before, rows) = (catalog.head().await?, table.rows_at(catalog.head().await?).await?);
    let compaction = Compaction::new(&catalog, 2000);
    let groups = compaction.plan(&table).await?;
    assert_eq!(groups.len(), 1, "one spec, one tuple, small files");
    assert_eq!(groups[0].inputs, [1, 2]);
    assert_eq!(claimed(&catalog).await?, [vec![1, 2]]);
    assert_eq!(catalog.head().await?, before, "a plan is no commit");

    let group = groups.into_iter().next().context("a group")?;
    let output = catalog.next_file_id().await?;
    let done = compaction.commit(group).await?;
    let snapshot_id = before + 1;
    assert_eq!(done, Compacted::Done { snapshot_id, output });
    assert_eq!(claimed(&catalog).await?, Vec::<Vec<i64>>::new());
    assert_eq!(table.rows_at(snapshot_id).await?, rows);
    assert_eq!(table.rows_at(before).await?, rows, "an older reader sees what it saw");
    let files = table.all_files().await?;
    let ended: Vec<_> =
        files.iter().filter(|file| file.end_snapshot == Some(snapshot_id)).collect();
    assert_eq!(ended.iter().map(|file| file.data_file_id).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(table.all_vectors().await?[0].end_snapshot, Some(snapshot_id));
    let merged = files.last().context("a file")?;
    assert_eq!(
        (merged.data_file_id, merged.spec_id, merged.explicit_row_ids),
        (output, Some(1), true)
    );
    assert_eq!((merged.row_id_start, merged.record_count, merged.file_size_bytes), (0, 106, 2000));
    assert_eq!(merged.values, [Some("1".to_owned())]);
    assert_eq!(Path::new(&merged.path).metadata()?.len(), 2000);
    let changes = table.changes(before, snapshot_id).await?;
    assert_eq!((changes.files.len(), changes.delete_files.len()), (0, 0), "no output in the feed");
    Ok(())
}

#[tokio::test]
async fn compaction_leaves_out_groups_with_a_claimed_file() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = catalog_with(&database, None).await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    for value in ["1", "1", "2", "2"] {
        table.append(one(value)).await?;
    }
    sqlx::query(
        "INSERT INTO hog_compaction_claim
                (catalog_id, table_id, group_key, input_file_ids, claimant, expires_at)
         VALUES ($1, $2, 'ours', '{2}', gen_random_uuid(), now() + interval '20 minutes'),
                ($1, $2, 'old', '{3}', gen_random_uuid(), now() - interval '1 second')",
    )
    .bind(catalog.catalog_id)
    .bind(table.table_id)
    .execute(catalog.pool())
    .await?;
    let mut compaction = Compaction::new(&catalog, 2000);
    let inputs = |groups: Vec<_>| -> Vec<Vec<i64>> {
        groups.into_iter().map(|group: tailrace_kit::simulated_loops::Group| group.inputs).collect()
    };
    assert_eq!(inputs(compaction.plan(&table).await?), [[3, 4]]);
    assert_eq!(claimed(&catalog).await?, [[3, 4].to_vec(), vec![2]]);
    assert_eq!(inputs(compaction.plan(&table).await?), Vec::<Vec<i64>>::new());
    compaction.claims = false;
    assert_eq!(inputs(compaction.plan(&table).await?), [[1, 2], [3, 4]]);
    Ok(())
}

#[tokio::test]
async fn compaction_loses_to_whatever_came_first() -> Result<()> {
    let database = TestDatabase::with_objects().await?;
    let catalog = catalog_with(&database, None).await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    for value in ["1", "1", "2", "2", "3", "3"] {
        table.append(one(value)).await?;
    }
    table.register_vector(5, 1, None).await?;
    let compaction = Compaction::new(&catalog, 2000);
    let mut groups = compaction.plan(&table).await?;
    assert_eq!(groups.len(), 3);
    // A drop of one input, a first vector on another, and a second one on a third.
    table.overwrite(catalog.head().await?, &[1], vec![]).await?;
    table.register_vector(3, 1, None).await?;
    table.register_vector(5, 2, None).await?;
    let head = catalog.head().await?;
    let last = groups.pop().context("a group")?;
    for group in groups {
        assert_eq!(compaction.commit(group).await?, Compacted::Lost);
    }
    assert_eq!(compaction.commit(last).await?, Compacted::Lost);
    assert_eq!(catalog.head().await?, head);
    assert_eq!(claimed(&catalog).await?, Vec::<Vec<i64>>::new());
    // What it had written is garbage, and goes.
    let cleaned = Cleanup::new(&catalog).run(100).await?;
    assert_eq!(cleaned, Cleaned { deleted: 3, ..Cleaned::default() });

    assert_eq!(compaction.run(&table).await?, 2);
    table.append(vec![NewFile::of(["9"]), NewFile::of(["9"])]).await?;
    let groups = compaction.plan(&table).await?;
    table.drop_table().await?;
    for group in groups {
        assert_eq!(compaction.commit(group).await?, Compacted::Lost, "a dropped table");
    }
    Ok(())
}
