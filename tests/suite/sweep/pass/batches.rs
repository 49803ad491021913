//! Tests of how expired tuples are grouped into snapshots.

use anyhow::Result;
use tailrace::sweep::Settings;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile, Table};

use crate::support::TestDatabase;
use crate::support::governed::{live_ids, of_table, snapshots};
use crate::support::program::settings;

/// A governed table with this many files in each day from 2019-04-14 on; in the order of their
/// ids the days alternate.
async fn days(database: &TestDatabase, name: &str, counts: &[usize]) -> Result<Table> {
    let catalog = match database.lake.open_catalog("lake").await {
        Ok(catalog) => catalog,
        Err(_) => database.catalog("lake").await?,
    };
    let table = database.table(&catalog, name, &[Field::day("at")]).await?;
    let mut files = Vec::new();
    for round in 0..counts.iter().copied().max().unwrap_or(0) {
        for (day, _) in (18_000..).zip(counts).filter(|(_, count)| round < **count) {
            files.push(NewFile::of([day.to_string()]).records(1).bytes(10));
        }
    }
    table.append(files).await?;
    database.govern(&table, "day(at)", "7d").await?;
    Ok(table)
}

fn limited(files_per_commit: i64, files_per_tuple: i64, split_oversize: bool) -> Settings {
    let mut settings = settings();
    settings.batch.files_per_commit = files_per_commit;
    settings.batch.files_per_tuple = files_per_tuple;
    settings.batch.split_oversize = split_oversize;
    // Nobody else wants the lock.
    settings.lock_duty = 1.0;
    settings
}

#[tokio::test]
async fn whole_tuples_are_grouped_oldest_first() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = days(&database, "raw", &[4, 6, 1, 3, 7, 3]).await?;
    let before = table.catalog.head().await?;

    let report = database.sweep_with(&limited(10, 20, true)).await?;

    let report = of_table(&report, "raw");
    assert_eq!((report.outcome, &report.error), (Outcome::Dropped, &None));
    let expected = [
        (10, vec!["2019-04-14", "2019-04-15"]),
        (4, vec!["2019-04-16", "2019-04-17"]),
        (10, vec!["2019-04-18", "2019-04-19"]),
    ];
    assert_eq!(snapshots(report), expected);
    let ids: Vec<_> = report.snapshots.iter().map(|snapshot| snapshot.snapshot_id).collect();
    assert_eq!(ids, [before + 1, before + 2, before + 3]);
    assert_eq!(table.catalog.head().await?, before + 3);
    let partitions: Vec<_> = report.snapshots[0].partitions.iter().collect();
    assert_eq!((partitions[0].counts.files, partitions[1].counts.files), (4, 6));
    assert_eq!((report.snapshots[0].records, report.snapshots[0].bytes), (10, 100));
    assert_eq!(live_ids(&table).await?, [] as [i64; 0]);
    Ok(())
}

#[tokio::test]
async fn a_larger_tuple_is_a_commit_of_its_own() -> Result<()> {
    let database = TestDatabase::new().await?;
    days(&database, "raw", &[1, 11, 2, 20, 3]).await?;
    let report = database.sweep_with(&limited(10, 20, false)).await?;
    let report = of_table(&report, "raw");
    assert_eq!(report.outcome, Outcome::Dropped);
    let expected = [
        (1, vec!["2019-04-14"]),
        (11, vec!["2019-04-15"]),
        (2, vec!["2019-04-16"]),
        (20, vec!["2019-04-17"]),
        (3, vec!["2019-04-18"]),
    ];
    assert_eq!(snapshots(report), expected);
    Ok(())
}

#[tokio::test]
async fn an_oversize_tuple_is_split_oldest_files_first() -> Result<()> {
    for (files, sizes) in [(21, vec![10, 10, 1]), (30, vec![10, 10, 10])] {
        let database = TestDatabase::new().await?;
        let table = days(&database, "raw", &[2, files, 3]).await?;
        let old: Vec<i64> = table
            .live_files()
            .await?
            .into_iter()
            .filter(|file| file.values == [Some("18001".to_owned())])
            .map(|file| file.data_file_id)
            .collect();
        let vectored = old[12];
        table.register_vector(vectored, 1, None).await?;

        let report = database.sweep_with(&limited(10, 20, true)).await?;

        let report = of_table(&report, "raw");
        assert_eq!((report.outcome, &report.error), (Outcome::Dropped, &None));
        let mut expected = vec![(2, vec!["2019-04-14"])];
        expected.extend(sizes.iter().map(|size| (*size, vec!["2019-04-15"])));
        expected.push((3, vec!["2019-04-16"]));
        assert_eq!(snapshots(report), expected);
        let vectors: Vec<_> = report.snapshots.iter().map(|s| s.delete_files_ended).collect();
        assert_eq!(vectors.iter().sum::<i64>(), 1);
        assert_eq!(vectors[2], 1);
        let mut ended: Vec<(i64, i64)> = Vec::new();
        for file in table.all_files().await? {
            if file.values == [Some("18001".to_owned())] {
                ended.push((file.end_snapshot.unwrap_or(0), file.data_file_id));
            }
        }
        ended.sort_unstable();
        assert_eq!(ended.iter().map(|(_, id)| *id).collect::<Vec<_>>(), old);
    }
    Ok(())
}

#[tokio::test]
async fn a_split_is_said_in_the_log() -> Result<()> {
    let database = TestDatabase::new().await?;
    days(&database, "raw", &[5]).await?;
    let env = [
        ("TAILRACE__SWEEP__MAX_FILES_PER_COMMIT", "2"),
        ("TAILRACE__SWEEP__MAX_FILES_PER_TUPLE", "4"),
    ];
    let ran = database.ran_with(&["sweep", "--output", "json"], &env).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    let split = ran.events("tuple_split");
    assert_eq!(split.len(), 1, "{}", ran.err);
    assert_eq!((&split[0]["partition"], &split[0]["files"]), (&"2019-04-14".into(), &5.into()));
    let report: serde_json::Value = serde_json::from_str(&ran.out)?;
    let snapshots = report["tables"][0]["snapshots"].as_array().cloned().unwrap_or_default();
    let files: Vec<_> = snapshots.iter().map(|snapshot| snapshot["files_ended"].clone()).collect();
    assert_eq!(files, [2, 2, 1]);
    Ok(())
}

#[tokio::test]
async fn an_oversize_tuple_that_is_skipped_stays_and_the_rest_goes() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = days(&database, "raw", &[2, 5, 1]).await?;
    let other = days(&database, "other", &[1]).await?;
    let env = [
        ("TAILRACE__SWEEP__MAX_FILES_PER_COMMIT", "2"),
        ("TAILRACE__SWEEP__MAX_FILES_PER_TUPLE", "4"),
        ("TAILRACE__SWEEP__OVERSIZE", "skip"),
    ];
    let ran = database.ran_with(&["sweep", "--output", "json"], &env).await?;
    assert_eq!(ran.code, 3, "{ran:?}");
    let report: serde_json::Value = serde_json::from_str(&ran.out)?;
    assert_eq!(report["tables"][0]["outcome"], "dropped");
    assert_eq!(report["tables"][1]["outcome"], "oversize");
    assert_eq!(
        report["tables"][1]["error"],
        "partition 2019-04-15 has 5 files, more than sweep.max_files_per_tuple: raise it, or let \
         sweep.oversize be split"
    );
    let snapshots = report["tables"][1]["snapshots"].as_array().cloned().unwrap_or_default();
    let files: Vec<_> = snapshots.iter().map(|snapshot| snapshot["files_ended"].clone()).collect();
    assert_eq!(files, [2, 1]);
    assert_eq!(live_ids(&table).await?.len(), 5);
    assert_eq!(live_ids(&other).await?.len(), 0);
    Ok(())
}
