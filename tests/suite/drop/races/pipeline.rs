//! Tests the way from a drop to freed disk: the simulated expiry and cleanup continue after the
//! drop.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use chrono::{TimeDelta, Utc};
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{CatalogOptions, Field, FileRow};
use tailrace_kit::simulated_loops::{Cleaned, Cleanup, Consumer, Expiry, FloorMove, Purged};

use crate::support::TestDatabase;

use super::file;

fn on_disk(files: &[FileRow]) -> Vec<bool> {
    files.iter().map(|file| Path::new(&file.path).is_file()).collect()
}

#[tokio::test]
async fn only_dropped_objects_go_once_the_floor_has_passed_the_drop() -> Result<()> {
    let database = TestDatabase::with_objects().await?;
    let retention = Some(Duration::from_secs(3600));
    let options = CatalogOptions { retention, ..CatalogOptions::default() };
    let catalog = database.lake.catalog("lake", options).await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let other = database.table(&catalog, "other", &[Field::day("at")]).await?;
    let ids = table.append([0, 8, 9, 3, 8].map(file).to_vec()).await?.file_ids;
    other.append([0, 8, 9].map(file).to_vec()).await?;
    table.register_vector(ids[1], 2, None).await?;
    table.register_vector(ids[3], 1, None).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;

    let before = catalog.head().await?;
    let (seen, rows) = (table.files_at(before).await?, table.rows_at(before).await?);
    let reader = Consumer::register(&table, "reader").await?;
    let report = database.sweep_one().await?;
    assert_eq!(report.outcome, Outcome::Dropped);
    let drop = super::only(&report).snapshot_id;
    assert_eq!(drop, before + 1);

    // A reader of the older snapshot sees what it saw, but for when that will have ended.
    let open = |files: Vec<FileRow>| -> Vec<FileRow> {
        let open = |mut file: FileRow| {
            file.end_snapshot = None;
            file.vector.iter_mut().for_each(|vector| vector.end_snapshot = None);
            file
        };
        files.into_iter().map(open).collect()
    };
    assert_eq!(open(table.files_at(before).await?), seen);
    assert_eq!((table.rows_at(before).await?, rows), (47, 47));
    assert_eq!(table.rows_at(drop).await?, 19);
    let all = table.all_files().await?;
    assert_eq!(on_disk(&all), [true; 5], "a drop touches no object");

    // As long as the floor is below the drop, nothing of it goes.
    let (expiry, cleanup) = (Expiry::new(&catalog), Cleanup::new(&catalog));
    let later = Utc::now() + TimeDelta::hours(2);
    assert_eq!(expiry.advance_floor(Some(later)).await?, FloorMove { from: 0, to: before });
    assert_eq!(expiry.purge().await?, Purged::default());
    assert_eq!(cleanup.run(1000).await?, Cleaned::default());
    assert_eq!(open(table.files_at(before).await?), seen);

    // The consumer goes on, and takes the floor past the drop.
    reader.advance(drop).await?;
    assert_eq!(expiry.advance_floor(Some(later)).await?, FloorMove { from: before, to: drop });
    assert_eq!(expiry.purge().await?, Purged { files: 3, vectors: 1 });
    assert_eq!(on_disk(&all), [true; 5], "expiry deletes no object");
    assert_eq!(cleanup.run(1000).await?, Cleaned { deleted: 4, ..Cleaned::default() });
    assert_eq!(on_disk(&all), [true, false, false, true, false]);
    let vectors: Vec<_> =
        seen.iter().filter_map(|file| file.vector.as_ref()).map(|v| v.path.clone()).collect();
    let vectors: Vec<_> = vectors.iter().map(|path| Path::new(path).is_file()).collect();
    assert_eq!(vectors, [false, true]);
    assert_eq!(on_disk(&other.live_files().await?), [true; 3]);
    assert_eq!(table.rows_at(drop).await?, 19);
    Ok(())
}
