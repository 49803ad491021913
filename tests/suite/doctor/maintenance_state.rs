//! Tests of the findings on the maintenance state of a catalog: clocks, retention, the floor, the
//! queue, and the snapshots.

use std::time::Duration;

use anyhow::Result;
use chrono::{TimeDelta, Utc};
use tailrace_kit::lake::{Catalog, CatalogOptions, Field, NewFile};
use tailrace_kit::simulated_loops::{Cleanup, Consumer};

use crate::doctor::text;
use crate::support::TestDatabase;
use crate::support::program::days_ago;

const HOUR: Duration = Duration::from_secs(3600);

async fn keeping(database: &TestDatabase, retention: Option<Duration>) -> Result<Catalog> {
    let options = CatalogOptions { retention, ..CatalogOptions::default() };
    Ok(database.lake.catalog("lake", options).await?)
}

#[tokio::test]
async fn how_long_snapshots_stay() -> Result<()> {
    for (retention, level, what) in [
        (None, "warning", "snapshot_retention_seconds is null: snapshots stay for ever"),
        (
            Some(HOUR),
            "ok",
            "snapshots stay for 60 minutes: an object is deleted that long after its drop at the earliest",
        ),
        (
            Some(24 * HOUR),
            "ok",
            "snapshots stay for 24 hours: an object is deleted that long after its drop at the earliest",
        ),
        (Some(7 * 24 * HOUR), "note", "snapshots stay for 7 days"),
    ] {
        let database = TestDatabase::new().await?;
        keeping(&database, retention).await?;
        let said = database.doctor().await?;
        assert_eq!(said.of("retention"), [(level, what)]);
        let statements: &[&str] = match retention {
            None => &["update public.hog_catalog set snapshot_retention_seconds = SECONDS where \
                       name = 'lake';"],
            Some(_) => &[],
        };
        assert_eq!(said.statements("retention"), statements);
        // One advice, which the documentation has too, and no number to paste.
        let advice = "the longer of two times: the longest read of a table, and the time within which you \
                      want to be able to repair a drop";
        let to_do = text(&said.whole("retention")[0]["to_do"]);
        assert_eq!(to_do.contains(advice), level != "ok", "{to_do}");
        assert!(!to_do.contains(|letter: char| letter.is_ascii_digit()), "{to_do}");
        let page = include_str!("../../../docs/drops.md");
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words.matches(advice).count(), 1);
        // A number has to be put in: as it is printed it sets nothing.
        for statement in statements {
            assert!(database.sql(statement).await.is_err(), "{statement}");
        }
        assert_eq!(said.of("floor").len(), usize::from(retention.is_some()));
    }
    Ok(())
}

#[tokio::test]
async fn a_consumer_that_holds_the_floor_is_named() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = keeping(&database, Some(HOUR)).await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    Consumer::register(&table, "slow").await?;
    let committed = catalog.head().await?;
    database.sql("UPDATE hog_consumer_offset SET updated_at = '2026-09-17T05:00:00Z'").await?;
    let quick = Consumer::register(&table, "quick").await?;
    for _ in 0..3 {
        table.append(vec![NewFile::of([days_ago(0)])]).await?;
    }
    quick.advance(catalog.head().await?).await?;
    let free = [("ok", "the floor is at 0, 5 snapshots behind the head, and no consumer holds it")];
    assert_eq!(catalog.head().await?, committed + 3);
    // Every snapshot is younger than the retention: the floor would be where it is anyway.
    assert_eq!(database.doctor().await?.of("floor"), free);

    let old = Utc::now() - TimeDelta::minutes(90);
    catalog.backdate_through(catalog.head().await? - 1, old).await?;
    let held = "the consumer \"slow\" holds the floor: it is at 2 since 2026-09-17T05:00:00Z (the \
                floor is at 0, 5 snapshots behind the head)";
    assert_eq!(database.doctor().await?.of("floor"), [("warning", held)]);

    // A catalog that does not heed consumers is not held by one.
    database.sql("UPDATE hog_catalog SET consumer_floor = false").await?;
    assert_eq!(database.doctor().await?.of("floor"), free);
    // Nobody moves it.
    let older = Utc::now() - TimeDelta::hours(3);
    catalog.backdate_through(catalog.head().await? - 1, older).await?;
    let said = database.doctor().await?;
    assert_eq!(said.of("floor").len(), 1);
    assert_eq!(said.of("floor")[0].0, "warning");
    let why = text(&said.whole("floor")[0]["why"]);
    assert!(why.starts_with("nothing holds it, so the server's expiry does not run"), "{why}");
    Ok(())
}

#[tokio::test]
async fn how_deep_the_queue_is_and_how_long_it_takes() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = keeping(&database, Some(HOUR)).await?;
    let queue = [("ok", "no object waits to be deleted")];
    assert_eq!(database.doctor().await?.of("removal_queue"), queue);
    let other = database.catalog("other").await?;
    let fill = |catalog: &Catalog, rows: i64, drained: &str| {
        format!(
            "INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason, drained_at,
               drained_outcome)
             SELECT {}, 'x' || n, 'data', 'snapshot_expiry', {drained}
               FROM generate_series(1, {rows}) n",
            catalog.catalog_id
        )
    };
    // 600 an hour, for as long as it may take until that is worked out: the rounded figure holds for 2.5 s.
    let half_an_hour_ago = "clock_timestamp() - interval '1799 seconds', 'deleted'";
    // Another catalog's cleanup says nothing of this one's.
    database.sql(&fill(&other, 500, half_an_hour_ago)).await?;
    database.sql(&fill(&catalog, 1_000, "NULL, NULL")).await?;
    let of_lake = async || -> Result<String> {
        let said = database.doctor().await?;
        let found = said.whole("removal_queue");
        let lake: Vec<_> = found.iter().filter(|finding| finding["catalog"] == "lake").collect();
        anyhow::ensure!(lake.len() == 1, "{lake:?}");
        Ok(format!("{}: {}", text(&lake[0]["level"]), text(&lake[0]["what"])))
    };
    assert_eq!(
        of_lake().await?,
        "ok: 1000 objects wait to be deleted: about 15 minutes at 4000 an hour, the server's default, \
         for too few were drained of late"
    );
    // What was drained lies below what was not.
    database.sql("DELETE FROM hog_file_removal WHERE drained_at IS NULL").await?;
    database.sql(&fill(&catalog, 300, half_an_hour_ago)).await?;
    let long_ago = "clock_timestamp() - interval '2 hours', 'deleted'";
    database.sql(&fill(&catalog, 300, long_ago)).await?;
    database.sql(&fill(&catalog, 30_000, "NULL, NULL")).await?;
    assert_eq!(
        of_lake().await?,
        "warning: 30000 objects wait to be deleted: about 2 days at 600 an hour, as of late"
    );
    Ok(())
}

#[tokio::test]
async fn how_many_snapshots_and_how_many_of_ours() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = keeping(&database, Some(HOUR)).await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of([days_ago(9)])]).await?;
    database.govern(&table, "at", "7d").await?;
    assert_eq!(database.sweep_one().await?.counts().files, 1);
    let quiet = [("ok", "4 snapshots in the last hour, 1 of them by tailrace")];
    assert_eq!(database.doctor().await?.of("snapshots"), quiet);
    let old = Utc::now() - TimeDelta::hours(2);
    catalog.backdate_through(catalog.head().await? - 1, old).await?;
    let ours = [("note", "1 snapshots in the last hour, 1 of them by tailrace")];
    assert_eq!(database.doctor().await?.of("snapshots"), ours);
    Ok(())
}

#[tokio::test]
async fn a_clock_behind_the_newest_snapshot() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = keeping(&database, Some(HOUR)).await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of([days_ago(0)])]).await?;
    let agree = "this host's clock and the database's agree";
    let fine = "no snapshot is younger than the database's clock says it is now";
    let said = database.doctor().await?;
    assert_eq!((said.code, said.of("clocks")), (0, vec![("ok", agree), ("ok", fine)]));
    let ahead = Utc::now() + TimeDelta::hours(5);
    catalog.backdate_snapshot(catalog.head().await?, ahead).await?;
    let said = database.doctor().await?;
    let clocks = said.of("clocks");
    assert_eq!((said.code, clocks[0].0, clocks[1]), (3, "problem", ("ok", agree)));
    let behind = "the database's clock is 4 hours behind the newest snapshot (";
    assert!(clocks[0].1.starts_with(behind), "{clocks:?}");
    Ok(())
}

/// A queued path that a row names: cleanup skips it at each run. It is named with the row, hides no pace,
/// and what is behind it goes.
#[tokio::test]
async fn a_path_that_a_row_names_is_told_with_the_row() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = keeping(&database, Some(HOUR)).await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let files = [0, 0].map(|age| NewFile::of([days_ago(age)])).to_vec();
    let ids = table.append(files).await?.file_ids;
    table.register_vector(ids[0], 1, None).await?;
    table.register_vector(ids[0], 2, None).await?;
    let ended = catalog.head().await?;
    let vector =
        format!("(SELECT max(delete_file_id) FROM hog_delete_file WHERE end_snapshot = {ended})");
    let queue = |path: &str| {
        format!(
            "INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason, scheduled_at)
             VALUES ({}, {path}, 'data', 'snapshot_expiry', '2026-09-17T05:00:00Z')",
            catalog.catalog_id
        )
    };
    let path_of =
        |file: i64| format!("(SELECT path FROM hog_data_file WHERE data_file_id = {file})");
    let of_vector = format!("(SELECT path FROM hog_delete_file WHERE delete_file_id = {vector})");
    let path = database.text(&format!("SELECT {}", path_of(ids[1]))).await?.unwrap_or_default();
    database.sql(&queue(&path_of(ids[1]))).await?;

    // Nobody has tried it yet.
    let waits = "1 object waits to be deleted: about 1 second at 4000 an hour, the server's default, \
                 for too few were drained of late";
    assert_eq!(database.doctor().await?.of("removal_queue"), [("ok", waits)]);
    let cleanup = Cleanup::new(&catalog);
    for _ in 0..2 {
        assert_eq!(cleanup.run(10).await?.violations, 1);
    }
    let told = format!(
        "1 queued object was tried and not drained: {path} (queued 2026-09-17T05:00:00Z, attempts 2, \
         named by data file {} of events.raw, live)",
        ids[1]
    );
    let rest = "no object waits to be deleted, but what is stuck";
    let said = database.doctor().await?;
    assert_eq!(said.of("removal_queue"), [("warning", &*told), ("ok", rest)]);

    // What was drained behind it tells the pace, and a vector that has ended names its path too.
    database.sql(&queue(&of_vector)).await?;
    for number in 0..150 {
        database.sql(&queue(&format!("'x{number}'"))).await?;
    }
    assert_eq!(cleanup.run(200).await?.absent, 150);
    database.sql(&queue("'y'")).await?;
    let said = database.doctor().await?;
    let [(level, both), (_, pace)] = said.of("removal_queue")[..] else {
        panic!("{:?}", said.findings)
    };
    let vector = database.text(&format!("SELECT {vector}::text")).await?.unwrap_or_default();
    let of_vector =
        format!("attempts 1, named by vector {vector} of events.raw, ended in snapshot {ended})");
    assert!(level == "warning" && both.starts_with("2 queued objects were tried"), "{both}");
    assert!(both.ends_with(&of_vector), "{both}");
    assert!(pace.starts_with("1 object waits") && pace.ends_with("an hour, as of late"), "{pace}");
    Ok(())
}

/// Without the index of paths it is not looked for which row it is.
#[tokio::test]
async fn before_v17_the_row_that_names_a_path_is_unknown() -> Result<()> {
    let database = TestDatabase::new().await?;
    database.lake.downgrade(16).await?;
    let catalog = keeping(&database, Some(HOUR)).await?;
    database
        .sql(&format!(
            "INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason, scheduled_at, attempts)
             VALUES ({}, 'x', 'data', 'snapshot_expiry', '2026-09-17T05:00:00Z', 12)",
            catalog.catalog_id
        ))
        .await?;
    let told = "1 queued object was tried and not drained: x (queued 2026-09-17T05:00:00Z, attempts 12, \
                which row names it is unknown before V17)";
    let rest = "no object waits to be deleted, but what is stuck";
    assert_eq!(database.doctor().await?.of("removal_queue"), [("warning", told), ("ok", rest)]);
    Ok(())
}
