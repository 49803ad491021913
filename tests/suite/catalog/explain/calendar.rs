//! Tests that the question when something falls due in any table reads one row of each of two
//! indexes for each table, however long the table's calendar is.

use anyhow::Result;
use tailrace::catalog::connect::close;
use tailrace::catalog::wakes::first_due;
use tailrace::rules::instant::UtcInstant;
use tailrace_kit::lake::Field;

use super::ALL;
use super::crowd::Statistics;
use super::watch::{Planned, Watch};
use crate::support::TestDatabase;

const TABLES: usize = 20;
const HOUR: i64 = 3_600;

/// Tables with 5,000 rows each, by hour, of which one or none falls due within the hour asked for, and 500
/// that wait, two of them until then.
async fn tables(statistics: Statistics) -> Result<TestDatabase> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    for number in 0..TABLES {
        let table = database.table(&catalog, &format!("t{number}"), &[Field::hour("at")]).await?;
        // Of each other one nothing is due but what waits.
        let keep = if number % 2 == 0 { "7d" } else { "8d" };
        database.govern(&table, "at", keep).await?;
    }
    database
        .sql(&format!(
            "INSERT INTO tailrace.table_state (catalog_id, table_uuid, table_id, source_field_id,
               through_snapshot, files_below, book)
             SELECT catalog_id, table_uuid, table_id, source_field_id, 0, 0, '' FROM tailrace.policy;
             INSERT INTO tailrace.calendar
             SELECT catalog_id, table_uuid, 1, false, no::text, ends, ends, {HOUR}, NULL
               FROM tailrace.policy, generate_series(0, 4999) AS no,
                    LATERAL (SELECT timestamptz '2026-11-23T12:30:00Z' + no * interval '1 hour') AS e (ends)
             UNION ALL
             SELECT catalog_id, table_uuid, 2, false, no::text, ends, ends, {HOUR},
                    timestamptz '2026-11-30T12:20:00Z' + no * interval '30 minutes'
               FROM tailrace.policy, generate_series(0, 499) AS no,
                    LATERAL (SELECT timestamptz '2026-11-01T00:00:00Z' - no * interval '1 hour') AS e (ends)"
        ))
        .await?;
    if statistics == Statistics::Gathered {
        database.sql("ANALYZE").await?;
    }
    Ok(database)
}

async fn asked(statistics: Statistics, planned: Planned) -> Result<()> {
    let database = tables(statistics).await?;
    let watch = Watch::begin();
    let mut session = watch.over(&database, planned).read_only_session().await?;
    watch.take()?;
    let since: UtcInstant = "2026-11-30T12:00:00Z".parse()?;
    let until: UtcInstant = "2026-11-30T13:00:00Z".parse()?;
    let every = std::time::Duration::from_secs(HOUR.unsigned_abs());
    let due = first_due(&mut session, since, until, every).await?;
    close(session).await;
    assert_eq!(due.len(), TABLES);
    let first: UtcInstant = "2026-11-30T12:20:00Z".parse()?;
    assert!(due.iter().all(|due| due.at == first && !due.was_due), "{due:?}");

    let executed = watch.take()?;
    let [asked] = &executed[..] else { anyhow::bail!("one statement, not {executed:#?}") };
    let times = TABLES as f64;
    for index in ["calendar_due", "calendar_paused"] {
        let of_it: Vec<_> = asked.scans.iter().filter(|scan| scan.by == index).collect();
        let [scan] = &of_it[..] else { anyhow::bail!("{index}: {:#?}", asked.scans) };
        assert!(scan.times == times && scan.rows <= times, "{scan:?}");
    }
    let by: Vec<&str> = asked.scans.iter().map(|scan| scan.by.as_str()).collect();
    assert!(!by.iter().any(|by| ["calendar", "calendar_pkey"].contains(by)), "{by:?}");
    assert!(asked.scans.iter().all(|scan| scan.rows <= times), "{:#?}", asked.scans);
    Ok(())
}

#[tokio::test]
async fn what_falls_due_next_in_all_tables() -> Result<()> {
    for (statistics, planned) in ALL {
        println!("{statistics:?}, {planned:?}");
        asked(statistics, planned).await?;
    }
    Ok(())
}
