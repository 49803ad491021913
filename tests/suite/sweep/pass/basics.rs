//! Tests the way from a policy to a committed drop.

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile};

use crate::support::TestDatabase;
use crate::support::program::days_ago;

#[tokio::test]
async fn a_pass_ends_what_expired_and_nothing_else() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let mut files = Vec::new();
    for age in [0, 6, 7, 8, 9] {
        files.push(NewFile::of([days_ago(age)]).records(10).bytes(100));
        files.push(NewFile::of([days_ago(age)]).records(1).bytes(1));
    }
    let appended = table.append(files).await?;
    table.register_vector(appended.file_ids[6], 3, None).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;

    let report = database.sweep_one().await?;

    assert_eq!(report.outcome, Outcome::Dropped, "{report:?}");
    let [snapshot] = report.snapshots.as_slice() else { panic!("{report:?}") };
    assert_eq!(snapshot.snapshot_id, catalog.head().await?);
    assert_eq!((snapshot.files_ended, snapshot.delete_files_ended), (4, 1));
    assert_eq!((snapshot.records, snapshot.bytes), (22, 202));
    let partitions: Vec<_> = snapshot
        .partitions
        .iter()
        .map(|p| (p.partition_values[0].clone(), p.counts.files, p.counts.delete_files))
        .collect();
    assert_eq!(partitions, [(Some(days_ago(9)), 2, 0), (Some(days_ago(8)), 2, 1)]);
    let live: Vec<_> = table.live_files().await?.iter().map(|file| file.data_file_id).collect();
    assert_eq!(live, appended.file_ids[..6]);

    let again = database.sweep_one().await?;
    assert_eq!(again.outcome, Outcome::NothingToDo);
    Ok(())
}
