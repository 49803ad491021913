//! Tests of which row of a table counts.

use anyhow::Result;

use super::Scene;

/// When a row is due, until when it waits, and how many seconds its range is long.
type Row = (&'static str, Option<&'static str>, u64);

const DAY: u64 = 86_400;
const LONG_AGO: &str = "2026-10-01T00:00:00Z";

#[tokio::test]
async fn the_first_row_that_falls_due_before_the_next_pass() -> Result<()> {
    let cases: [(&[Row], Option<&str>); 17] = [
        (&[], None),
        (&[("2026-11-30T12:10:00.000001Z", None, DAY)], None),
        (&[("2026-11-30T12:10:00Z", None, DAY)], Some("12:10:00Z")),
        (&[("2026-11-30T12:00:00.000001Z", None, DAY)], Some("12:00:00.000001Z")),
        (&[("2026-11-30T12:00:00Z", None, DAY)], Some("12:00:00Z, was due")),
        (&[(LONG_AGO, None, DAY)], Some("12:00:00Z, was due")),
        (&[("-infinity", None, DAY)], Some("12:00:00Z, was due")),
        (&[("infinity", None, DAY)], None),
        // Shorter ranges go with the passes.
        (
            &[("2026-11-30T12:01:00Z", None, 599), ("2026-11-30T12:02:00Z", None, 600)],
            Some("12:02:00Z"),
        ),
        (&[(LONG_AGO, None, 0), (LONG_AGO, Some("2026-11-30T12:03:00Z"), 599)], None),
        // What waits counts from the end of its pause on.
        (&[(LONG_AGO, Some("2026-11-30T12:03:00Z"), DAY)], Some("12:03:00Z")),
        (&[(LONG_AGO, Some("2026-11-30T12:00:00Z"), DAY)], Some("12:00:00Z, was due")),
        (&[(LONG_AGO, Some("2026-11-30T12:10:00.000001Z"), DAY)], None),
        (&[("2026-11-30T12:05:00Z", Some("2026-11-30T12:06:00Z"), DAY)], Some("12:06:00Z")),
        // A pause that ends before the row is due.
        (&[("2026-11-30T12:05:00Z", Some("2026-11-30T12:03:00Z"), DAY)], None),
        (
            &[
                ("2026-11-30T12:04:00Z", None, DAY),
                ("2026-11-30T12:09:00Z", None, DAY),
                (LONG_AGO, Some("2026-11-30T12:08:00Z"), DAY),
                (LONG_AGO, Some("2026-11-30T12:03:00Z"), DAY),
            ],
            Some("12:03:00Z"),
        ),
        (
            &[(LONG_AGO, Some("2026-11-30T12:08:00Z"), DAY), ("2026-11-30T12:04:00Z", None, DAY)],
            Some("12:04:00Z"),
        ),
    ];
    let scene = Scene::new().await?;
    let table = scene.table("raw").await?;
    for (rows, expected) in cases {
        scene.database.sql("DELETE FROM tailrace.calendar").await?;
        for (due, pause, span) in rows {
            scene.row(&table, due, *pause, *span).await?;
        }
        let expected: Vec<String> = expected
            .into_iter()
            .map(|expected| format!("lake.raw at 2026-11-30T{expected}"))
            .collect();
        assert_eq!(scene.due().await?, expected, "{rows:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_day_of_ends_and_a_changed_keep() -> Result<()> {
    let scene = Scene::new().await?;
    let table = scene.table("raw").await?;
    scene.row(&table, "2026-11-30T12:04:00Z", None, DAY).await?;
    scene.database.sql("UPDATE tailrace.calendar SET is_day = true").await?;
    assert_eq!(scene.due().await?, ["lake.raw at 2026-11-30T12:04:00Z"]);
    // No row is written for it.
    scene.database.govern(&table, "at", "10086m").await?;
    assert_eq!(scene.due().await?, ["lake.raw at 2026-11-30T12:10:00Z"]);
    scene.database.govern(&table, "at", "10087m").await?;
    assert_eq!(scene.due().await?, [""; 0]);
    // As long as a keep can be.
    scene.database.govern(&table, "at", "1000000d").await?;
    assert_eq!(scene.due().await?, [""; 0]);
    scene.database.govern(&table, "at", "1h").await?;
    assert_eq!(scene.due().await?, ["lake.raw at 2026-11-30T12:00:00Z, was due"]);
    Ok(())
}

#[tokio::test]
async fn a_table_that_is_to_wake_nobody_for_a_while() -> Result<()> {
    let scene = Scene::new().await?;
    let table = scene.table("raw").await?;
    scene.row(&table, LONG_AGO, None, DAY).await?;
    for (until, expected) in [
        ("2026-11-30T12:05:00Z", &["lake.raw at 2026-11-30T12:05:00Z, was due"][..]),
        ("2026-11-30T12:10:00Z", &["lake.raw at 2026-11-30T12:10:00Z, was due"]),
        ("2026-11-30T12:10:00.000001Z", &[]),
        ("infinity", &[]),
        ("2026-11-30T11:59:00Z", &["lake.raw at 2026-11-30T12:00:00Z, was due"]),
    ] {
        let quiet = format!("UPDATE tailrace.table_state SET quiet_until = '{until}'");
        scene.database.sql(&quiet).await?;
        assert_eq!(scene.due().await?, expected, "{until}");
    }
    scene.database.sql("DELETE FROM tailrace.calendar").await?;
    scene.row(&table, "2026-11-30T12:04:00Z", None, DAY).await?;
    let quiet = "UPDATE tailrace.table_state SET quiet_until = '2026-11-30T12:02:00Z'";
    scene.database.sql(quiet).await?;
    assert_eq!(scene.due().await?, ["lake.raw at 2026-11-30T12:04:00Z"]);
    Ok(())
}
