//! Tests of the limit on the length of the server's removal queue.

use std::time::Duration;

use anyhow::Result;
use tailrace::catalog::connect::close;
use tailrace::catalog::removal_queue::undrained;
use tailrace::sweep::Settings;
use tailrace::sweep::report::Outcome;

use super::{governed, one_by_one};
use crate::support::TestDatabase;
use crate::support::governed::outcomes;
use crate::support::timer::{TestTimer, pacing};
use crate::support::wait::until;

/// Puts so many rows into the queue of a catalog.
async fn queue(database: &TestDatabase, catalog_id: i64, rows: i64, drained: bool) -> Result<()> {
    let drained = if drained { "now(), 'deleted'" } else { "null, null" };
    database
        .sql(&format!(
            "insert into hog_file_removal (catalog_id, path, file_kind, reason, drained_at, drained_outcome)
             select {catalog_id}, 'gone' || n, 'data', 'snapshot_expiry', {drained}
             from generate_series(1, {rows}) as n"
        ))
        .await
}

#[tokio::test]
async fn drops_are_held_back_while_the_queue_is_longer() -> Result<()> {
    let database = TestDatabase::new().await?;
    let (lake, pond) = (database.catalog("lake").await?, database.catalog("pond").await?);
    let table = governed(&database, &lake, "raw", [9, 8]).await?;
    governed(&database, &pond, "raw", [8]).await?;
    let settings = Settings { removal_queue_ceiling: Some(3), ..one_by_one() };
    let sweep = async || database.sweep_paced(&settings, &pacing(&TestTimer::new()), &|_| {}).await;
    queue(&database, lake.catalog_id, 4, false).await?;
    queue(&database, lake.catalog_id, 50, true).await?;

    let report = sweep().await?;
    // Another catalog has another queue.
    assert_eq!(outcomes(&report), [("raw", Outcome::HeldBack), ("raw", Outcome::Dropped)]);
    assert_eq!(report.failures(), 0);
    assert_eq!(
        report.tables[0].error.as_deref(),
        Some(
            "at least 4 files wait for the server to delete their objects, more than \
             sweep.removal_queue_ceiling"
        )
    );
    assert_eq!(table.live_files().await?.len(), 2);

    database
        .sql("update hog_file_removal set drained_at = now(), drained_outcome = 'absent' where path = 'gone1'")
        .await?;
    let report = sweep().await?;
    assert_eq!(report.tables[0].outcome, Outcome::Dropped);
    assert_eq!(table.live_files().await?.len(), 0);
    Ok(())
}

#[tokio::test]
async fn the_log_says_how_long_the_queue_is_at_least() -> Result<()> {
    let database = TestDatabase::new().await?;
    let lake = database.catalog("lake").await?;
    governed(&database, &lake, "raw", [9]).await?;
    queue(&database, lake.catalog_id, 9, false).await?;
    let env = [("TAILRACE__SWEEP__REMOVAL_QUEUE_CEILING", "3")];
    let ran = database.ran_with(&["sweep", "--output", "json"], &env).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    let told = ran.events("held_back");
    assert_eq!(told.len(), 1, "{}", ran.err);
    assert_eq!((&told[0]["queue_at_least"], &told[0]["ceiling"]), (&4.into(), &3.into()));
    assert_eq!(told[0]["table"], "raw");
    Ok(())
}

/// Each commit asks for the count, and a long queue takes long to count.
#[tokio::test]
async fn a_count_is_good_for_twenty_times_as_long_as_it_took() -> Result<()> {
    let database = TestDatabase::new().await?;
    let lake = database.catalog("lake").await?;
    governed(&database, &lake, "raw", [9]).await?;
    let settings = Settings { removal_queue_ceiling: Some(3), ..one_by_one() };
    let timer = TestTimer::new();
    let pacing = pacing(&timer);
    let began = pacing.now();
    timer.advance(Duration::from_secs(1));
    pacing.counted(lake.catalog_id, 4, began);
    assert_eq!((pacing.queue(lake.catalog_id), pacing.queue(-1)), (Some(4), None));
    timer.advance(Duration::from_millis(19_999));
    assert_eq!(pacing.queue(lake.catalog_id), Some(4));
    let held = database.sweep_paced(&settings, &pacing, &|_| {}).await?;
    assert_eq!(outcomes(&held), [("raw", Outcome::HeldBack)]);
    timer.advance(Duration::from_millis(1));
    assert_eq!(pacing.queue(lake.catalog_id), None);
    let counted = database.sweep_paced(&settings, &pacing, &|_| {}).await?;
    assert_eq!(outcomes(&counted), [("raw", Outcome::Dropped)]);
    Ok(())
}

/// The count reads no more rows than its limit, and none that is drained.
#[tokio::test]
async fn the_count_is_bounded_and_goes_through_an_index() -> Result<()> {
    let database = TestDatabase::new().await?;
    let lake = database.catalog("lake").await?;
    queue(&database, lake.catalog_id, 20_000, true).await?;
    queue(&database, lake.catalog_id, 2_000, false).await?;
    database.sql("vacuum analyze hog_file_removal").await?;
    let read = async || {
        let counters = "select coalesce(seq_tup_read, 0) || ' ' || coalesce(idx_scan, 0) from pg_stat_user_tables
                        where relname = 'hog_file_removal'";
        database.text(counters).await
    };
    let before = read().await?.unwrap_or_default();
    let mut session = database.tailrace().session().await?;
    assert_eq!(undrained(&mut session, lake.catalog_id, 11).await?, 11);
    assert_eq!(undrained(&mut session, lake.catalog_id, 5_000).await?, 2_000);
    close(session).await;
    // The counters of a session are there a moment after its end.
    until("the statistics are there", async || Ok(read().await? != Some(before.clone()))).await?;
    let entries = database
        .text(
            "select sum(idx_tup_read) from pg_stat_user_indexes where relname = 'hog_file_removal'",
        )
        .await?;
    assert_eq!(entries.as_deref(), Some("2011"));
    let (seq, _) = before.split_once(' ').unwrap_or_default();
    let after = read().await?.unwrap_or_default();
    assert_eq!(after.split_once(' ').map(|(seq, _)| seq), Some(seq), "no sequential scan");
    Ok(())
}
