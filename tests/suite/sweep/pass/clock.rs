//! Tests of which clock counts: the database's, in UTC, whatever the settings of anybody are.

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile};

use crate::support::TestDatabase;
use crate::support::governed::{live_ids, outcomes};

/// Days and hours around the two nights of 2026 in which Berlin changes its clocks, and the
/// ends of days where the far west and the far east of the world have other dates.
async fn a_lake_with_nights(database: &TestDatabase) -> Result<()> {
    let catalog = database.catalog("lake").await?;
    let days = database.table(&catalog, "days", &[Field::day("at")]).await?;
    days.append((20_500..20_800).map(|day| NewFile::of([day.to_string()])).collect()).await?;
    let hours = database.table(&catalog, "hours", &[Field::hour("at")]).await?;
    // 2026-10-25T00 and the 24 hours on both sides of it.
    hours.append((498_000..498_048).map(|hour| NewFile::of([hour.to_string()])).collect()).await?;
    let identity = database.table(&catalog, "instants", &[Field::identity("at")]).await?;
    let texts = ["2026-10-25T00:30:00+00:00", "2026-10-25T02:30:00+02:00", "2026-10-25T01:30:00Z"];
    identity.append(texts.map(|text| NewFile::of([text])).to_vec()).await?;
    database.govern(&days, "day(at)", "7d").await?;
    database.govern(&hours, "at", "36h").await?;
    database.govern(&identity, "at", "1w").await?;
    Ok(())
}

const NIGHTS: [&str; 5] = [
    "2026-03-29T01:59:59.999999+01:00",
    "2026-03-29T03:00:00+02:00",
    "2026-10-25T02:30:00+02:00",
    "2026-10-25T02:30:00+01:00",
    "2026-11-01T07:00:00Z",
];

#[tokio::test]
async fn no_time_zone_of_the_process_changes_a_plan() -> Result<()> {
    let database = TestDatabase::new().await?;
    a_lake_with_nights(&database).await?;
    for at in NIGHTS {
        let args = ["plan", "--at", at, "--output", "json"];
        let utc = database.ran_with(&args, &[("TZ", "UTC")]).await?;
        assert_eq!(utc.code, 0, "{utc:?}");
        assert!(utc.out.contains("\"expired\":[{"), "{}", utc.out);
        for zone in ["America/Los_Angeles", "Pacific/Kiritimati", "Europe/Berlin"] {
            let env = [("TZ", zone), ("PGTZ", zone), ("PGDATESTYLE", "SQL, DMY")];
            let ran = database.ran_with(&args, &env).await?;
            assert_eq!((ran.code, &ran.out), (0, &utc.out), "{zone} at {at}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn no_setting_of_database_or_role_changes_a_plan_or_a_pass() -> Result<()> {
    let database = TestDatabase::new().await?;
    a_lake_with_nights(&database).await?;
    let mut expected = Vec::new();
    for at in NIGHTS {
        expected.push(database.ran(&["plan", "--at", at, "--output", "json"]).await?.out);
    }
    let settings = [
        ("DATABASE %I", "Pacific/Kiritimati", "SQL, DMY", "serializable"),
        ("ROLE postgres IN DATABASE %I", "America/Los_Angeles", "German", "repeatable read"),
    ];
    for (whose, zone, style, isolation) in settings {
        for (name, value) in [
            ("timezone", zone),
            ("datestyle", style),
            ("intervalstyle", "iso_8601"),
            ("extra_float_digits", "-15"),
            ("default_transaction_isolation", isolation),
        ] {
            let set = format!("ALTER {whose} SET {name} = ''{value}''");
            let run = format!("DO $$ BEGIN EXECUTE format('{set}', current_database()); END $$");
            database.sql(&run).await?;
        }
        for (at, expected) in NIGHTS.iter().zip(&expected) {
            let ran = database.ran(&["plan", "--at", at, "--output", "json"]).await?;
            assert_eq!(&ran.out, expected, "{zone} at {at}");
        }
    }
    let swept = database.sweep().await?;
    assert_eq!(swept.failures(), 0, "{swept:?}");
    // The snapshot's time is the moment of its commit.
    let late = database
        .text(&format!(
            "SELECT count(*) FROM hog_snapshot WHERE author = 'tailrace'
               AND snapshot_time NOT BETWEEN '{}'::timestamptz AND clock_timestamp()",
            swept.as_of
        ))
        .await?;
    assert_eq!(late.as_deref(), Some("0"));
    Ok(())
}

#[tokio::test]
async fn a_database_behind_its_own_snapshots_drops_nothing() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalogs = [database.catalog("ahead").await?, database.catalog("in_time").await?];
    let mut tables = Vec::new();
    for catalog in &catalogs {
        let table = database.table(catalog, "raw", &[Field::day("at")]).await?;
        table.append(vec![NewFile::of(["18000"])]).await?;
        database.govern(&table, "day(at)", "7d").await?;
        tables.push(table);
    }
    let ahead_by = |seconds: i64| chrono::Utc::now() + chrono::Duration::seconds(seconds);
    let head = catalogs[0].head().await?;
    // It need not be the head: where a clock went back, the head is older than what came before.
    catalogs[0].backdate_snapshot(head - 1, ahead_by(3_600)).await?;
    let ran = database.ran(&["sweep", "--output", "json"]).await?;
    assert_eq!(ran.code, 3, "{ran:?}");
    let report: serde_json::Value = serde_json::from_str(&ran.out)?;
    assert_eq!(report["tables"][0]["outcome"], "clock_behind");
    assert_eq!(report["tables"][0]["snapshots"], serde_json::json!([]));
    assert_eq!(report["tables"][1]["outcome"], "dropped");
    assert_eq!(ran.events("clock_behind").len(), 1);
    assert_eq!(catalogs[0].head().await?, head);
    assert_eq!((live_ids(&tables[0]).await?.len(), live_ids(&tables[1]).await?.len()), (1, 0));
    Ok(())
}

/// Sixty seconds are tolerated. The pass reads the clock a moment after the test did, so the
/// margins are those of a slow machine: 61 s are still more than 60 s within a second of it.
#[tokio::test]
async fn sixty_seconds_are_the_tolerance() -> Result<()> {
    for (seconds, outcome) in [(61_000, Outcome::ClockBehind), (59_000, Outcome::Dropped)] {
        let database = TestDatabase::new().await?;
        let catalog = database.catalog("lake").await?;
        let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
        database.govern(&table, "day(at)", "7d").await?;
        let mut report;
        loop {
            table.append(vec![NewFile::of(["18000"])]).await?;
            let head = catalog.head().await?;
            let time = chrono::Utc::now() + chrono::Duration::milliseconds(seconds);
            catalog.backdate_snapshot(head, time).await?;
            report = database.sweep().await?;
            // Where the machine slept in between, the question was another one.
            let ahead = tailrace::rules::instant::UtcInstant::from(time).distance(report.as_of);
            if ahead > std::time::Duration::from_secs(60) || seconds == 59_000 {
                break;
            }
        }
        assert_eq!(outcomes(&report), [("raw", outcome)]);
        let live = usize::from(outcome == Outcome::ClockBehind);
        assert_eq!(live_ids(&table).await?.len(), live);
    }
    Ok(())
}
