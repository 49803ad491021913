//! Tests of how long a pass continues, and of which table has a time slice.

use std::sync::Mutex;
use std::time::Duration;

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace::sweep::{Progress, Settings};
use tailrace_kit::lake::NewFile;

use super::{governed, one_by_one};
use crate::support::TestDatabase;
use crate::support::governed::{live_ids, of_table, outcomes};
use crate::support::program::days_ago;
use crate::support::timer::{TestTimer, pacing};

fn a_minute() -> Settings {
    Settings { max_duration: Duration::from_secs(60), ..one_by_one() }
}

#[tokio::test]
async fn once_time_is_over_no_commit_starts_and_the_next_pass_goes_on() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let first = governed(&database, &catalog, "first", 8..13).await?;
    let second = governed(&database, &catalog, "second", [8]).await?;
    let timer = TestTimer::new();
    // Every commit takes half a minute, so the third one would start at its end.
    let slow = |progress: Progress<'_>| {
        if let Progress::Dropped { .. } = progress {
            timer.advance(Duration::from_secs(30));
        }
    };
    let mut passes = Vec::new();
    for _ in 0..4 {
        let report = database.sweep_paced(&a_minute(), &pacing(&timer), &slow).await?;
        let tables = report.tables.iter();
        passes.push(tables.map(|table| (table.outcome, table.snapshots.len())).collect::<Vec<_>>());
        assert_eq!(report.failures(), 0);
    }
    use Outcome::{Dropped, NothingToDo, Partial};
    // In the first pass each has its turn; what is left is the backlog's alone.
    assert_eq!(passes[0], [(Partial, 1), (Dropped, 1)]);
    assert_eq!(passes[1], [(Partial, 2), (NothingToDo, 0)]);
    assert_eq!(passes[2], [(Dropped, 2), (NothingToDo, 0)]);
    assert_eq!(passes[3], [(NothingToDo, 0), (NothingToDo, 0)]);
    assert_eq!((live_ids(&first).await?.len(), live_ids(&second).await?.len()), (0, 0));
    Ok(())
}

#[tokio::test]
async fn a_table_without_a_turn_is_partial_one_begun_got_somewhere() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    for name in ["first", "second", "third"] {
        governed(&database, &catalog, name, [9, 8]).await?;
    }
    let timer = TestTimer::new();
    // Each table is looked at for longer than its share of the time.
    let slow = |progress: Progress<'_>| {
        if let Progress::Table(_) = progress {
            timer.advance(Duration::from_secs(25));
        }
    };
    let report = database.sweep_paced(&a_minute(), &pacing(&timer), &slow).await?;
    let done: Vec<_> =
        report.tables.iter().map(|table| (table.outcome, table.snapshots.len())).collect();
    let partial = Outcome::Partial;
    assert_eq!(done, [(partial, 1), (partial, 1), (partial, 0)]);
    Ok(())
}

#[tokio::test]
async fn a_huge_backlog_keeps_no_other_table_from_its_turn() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    governed(&database, &catalog, "a_backlog", 8..30).await?;
    governed(&database, &catalog, "small", [8]).await?;
    governed(&database, &catalog, "tiny", [8]).await?;
    let timer = TestTimer::new();
    let order = Mutex::new(Vec::new());
    let slow = |progress: Progress<'_>| {
        if let Progress::Dropped { table, .. } = progress {
            order.lock().expect("no panic").push(table.table.clone());
            timer.advance(Duration::from_secs(10));
        }
    };
    let report = database.sweep_paced(&a_minute(), &pacing(&timer), &slow).await?;
    // A third of the minute, then what the others need, then what they leave over.
    let order = order.into_inner()?;
    assert_eq!(order, ["a_backlog", "a_backlog", "small", "tiny", "a_backlog", "a_backlog"]);
    let expected =
        [("a_backlog", Outcome::Partial), ("small", Outcome::Dropped), ("tiny", Outcome::Dropped)];
    assert_eq!(outcomes(&report), expected);
    let backlog = of_table(&report, "a_backlog");
    assert_eq!((backlog.snapshots.len(), &backlog.error), (4, &None));
    let ids: Vec<_> = backlog.snapshots.iter().map(|snapshot| snapshot.snapshot_id).collect();
    assert!(ids.is_sorted(), "{ids:?}");
    Ok(())
}

#[tokio::test]
async fn the_most_overdue_table_is_first_and_the_report_is_by_name() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let mut tables = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        tables.push(governed(&database, &catalog, name, [0]).await?);
    }
    // The clock is known, and no catalog in doubt.
    database.sweep().await?;
    crate::sweep::triage::settle(&database).await?;
    for (table, days) in [(&tables[0], 8), (&tables[2], 30), (&tables[3], 9)] {
        let due = format!(
            "INSERT INTO tailrace.calendar (catalog_id, table_uuid, spec_id, is_day, value,
               range_end, last_end, span_seconds)
             SELECT catalog_id, table_uuid, 1, false, '18000', now() - interval '{days} days',
                    now() - interval '{days} days', 86400
             FROM hog_table WHERE table_id = {}",
            table.table_id
        );
        database.sql(&due).await?;
    }
    // What came late is next, then a table of which nothing is known.
    tables[1].append(vec![NewFile::of([days_ago(0)])]).await?;
    let forget =
        format!("DELETE FROM tailrace.table_state WHERE table_id = {}", tables[4].table_id);
    database.sql(&forget).await?;
    let order = Mutex::new(Vec::new());
    let note = |progress: Progress<'_>| {
        if let Progress::Table(table) = progress {
            order.lock().expect("no panic").push(table.table.clone());
        }
    };
    let report = database.sweep_paced(&one_by_one(), &pacing(&TestTimer::new()), &note).await?;
    assert_eq!(order.into_inner()?, ["c", "d", "a", "b", "e"]);
    let nothing = ["a", "b", "c", "d", "e"].map(|name| (name, Outcome::NothingToDo));
    assert_eq!(outcomes(&report), nothing);
    Ok(())
}
