//! Tests that the cost of a pass grows with the files that it drops, and not with files times
//! tuples. With such a cost each of these tests would exceed a limit of the server.

use std::time::Duration;

use anyhow::Result;
use tailrace::drop::Limits;
use tailrace::sweep::Settings;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Column, Field, NewFile};
use tailrace_kit::simulated_loops::HeldFiles;

use crate::support::TestDatabase;
use crate::support::gate::while_it_waits;
use crate::support::program::{days_ago, settings};

/// A hold that work in proportion to the files keeps to with ease, and its square does not.
fn short_hold() -> Settings {
    let limits = Limits {
        lock_timeout: Duration::from_secs(50),
        max_hold: Duration::from_secs(6),
        ..settings().limits
    };
    Settings { limits, lock_duty: 1.0, ..settings() }
}

#[tokio::test]
async fn thousands_of_tuples_that_share_a_day_go_in_one_snapshot() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let columns = [Column::new("team", "long"), Column::new("at", "timestamptz")];
    let spec = [Field::identity("team"), Field::day("at")];
    let table = database.table_of(&catalog, "raw", &columns, &spec).await?;
    let day = days_ago(9);
    let files = (0..8_000).map(|team| NewFile::of([team.to_string(), day.clone()]));
    table.append(files.collect()).await?;
    database.govern(&table, "at", "7d").await?;
    let report = database.sweep_with(&short_hold()).await?;
    let report = &report.tables[0];
    assert_eq!(report.outcome, Outcome::Dropped, "{:?}", report.error);
    assert_eq!((report.snapshots.len(), report.counts().files), (1, 8_000));
    assert_eq!(report.snapshots[0].partitions.len(), 8_000);
    Ok(())
}

#[tokio::test]
async fn thousands_of_late_files_that_match_nothing_cost_no_hold() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let columns = [Column::new("at", "timestamptz")];
    let table = database.table_of(&catalog, "raw", &columns, &[Field::hour("at")]).await?;
    table.append((0..8_000).map(|at| NewFile::of([(400_000 + at).to_string()])).collect()).await?;
    database.govern(&table, "at", "7d").await?;
    let settings = short_hold();
    // Whoever holds the commit lock may write what an append would.
    let (c, t) = (catalog.catalog_id, table.table_id);
    let late = format!(
        "insert into hog_data_file (catalog_id, table_id, begin_snapshot, data_file_id, path,
             record_count, file_size_bytes, row_id_start, spec_id)
         select {c}, {t}, last_snapshot_id, next_file_id + n, 'late' || n, 1, 1, 0, 1
         from hog_catalog, generate_series(0, 1999) as n where catalog_id = {c};
         insert into hog_file_partition_value
         select {c}, data_file_id, 0, '999999' from hog_data_file where path like 'late%'"
    );
    let sweep = async { database.sweep_with(&settings).await };
    let (report, ()) = while_it_waits(&catalog, sweep, database.sql(&late)).await?;
    let report = &report.tables[0];
    assert_eq!(report.outcome, Outcome::Dropped, "{:?}", report.error);
    assert_eq!(report.counts().files, 8_000);
    assert_eq!(table.live_files().await?.len(), 2_000);
    Ok(())
}

#[tokio::test]
async fn a_large_tuple_with_a_held_row_is_busy_and_its_neighbour_goes() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let mut files: Vec<_> = (0..19_990).map(|_| NewFile::of([days_ago(9)])).collect();
    files.push(NewFile::of([days_ago(9)]).pending());
    files.push(NewFile::of([days_ago(10)]));
    table.append(files).await?;
    database.govern(&table, "at", "7d").await?;
    let held = HeldFiles::hold(&catalog, 10).await?;
    let report = database.sweep_with(&short_hold()).await?;
    let report = &report.tables[0];
    assert_eq!(report.outcome, Outcome::Busy, "{:?}", report.error);
    assert_eq!(report.counts().files, 1);
    held.release().await?;
    Ok(())
}

/// A catalog that keeps everything never retires what was dropped.
#[tokio::test]
async fn thousands_of_dropped_tables_are_passed_over() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let c = catalog.catalog_id;
    database
        .sql(&format!(
            "insert into hog_table (catalog_id, table_id, created_snapshot, dropped_snapshot)
             select {c}, 1000 + n, 1, 2 from generate_series(1, 8000) as n;
             insert into hog_partition_spec (catalog_id, table_id, spec_id, begin_snapshot)
             select {c}, 1000 + n, 1, 1 from generate_series(1, 8000) as n;
             insert into hog_partition_field
             select {c}, 1000 + n, 1, 0, 1, 'day', null from generate_series(1, 8000) as n"
        ))
        .await?;
    for _ in 0..2 {
        let report = database.sweep().await?;
        assert_eq!((report.tables.len(), report.failed_catalogs.len()), (0, 0));
        let copies = database.text("select count(*) from tailrace.spec_copy").await?;
        assert_eq!(copies.as_deref(), Some("0"));
    }
    Ok(())
}

#[tokio::test]
async fn a_table_too_large_to_count_that_dates_nothing_is_unhealthy() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let text = |n: i64| format!("2020-01-0{}", 1 + n % 9);
    table.append((0..9_000).map(|n| NewFile::of([text(n)])).collect()).await?;
    database.govern(&table, "at", "7d").await?;
    let hurried = Settings { count_timeout: Duration::from_millis(1), ..settings() };
    let report = database.sweep_with(&hurried).await?;
    assert_eq!(report.tables[0].outcome, Outcome::Unhealthy);
    table.append(vec![NewFile::of([days_ago(1)])]).await?;
    let report = database.sweep_with(&hurried).await?;
    assert_eq!(report.tables[0].outcome, Outcome::NothingToDo);
    Ok(())
}
