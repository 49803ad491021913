//! When a value leaves, through real rows, and not a microsecond earlier. The same table as in
//! `src/rules/expiry/tests.rs`, where it is held to the pure rules.

use anyhow::Result;
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Column, Field, NewFile};

use crate::support::TestDatabase;
use crate::support::governed::{expired, kept, live_values, values};

struct Row {
    transform: &'static str,
    col_type: &'static str,
    text: &'static str,
    keep: &'static str,
    leaves: &'static str,
    display: &'static str,
}

const fn row(
    transform: &'static str,
    col_type: &'static str,
    text: &'static str,
    keep: &'static str,
    leaves: &'static str,
    display: &'static str,
) -> Row {
    Row { transform, col_type, text, keep, leaves, display }
}

const ROWS: [Row; 27] = [
    row("year", "timestamp", "54", "7d", "2025-01-08T00:00:00Z", "2024"),
    row("year", "timestamptz", "0", "1d", "1971-01-02T00:00:00Z", "1970"),
    row("year", "date", "-1", "1d", "1970-01-02T00:00:00Z", "1969"),
    row("year", "timestamp_s", "-70", "1d", "1901-01-02T00:00:00Z", "1900"),
    row("month", "timestamp", "680", "7d", "2026-10-08T00:00:00Z", "2026-09"),
    row("month", "date", "361", "1d", "2000-03-02T00:00:00Z", "2000-02"),
    row("month", "timestamptz", "-1", "1d", "1970-01-02T00:00:00Z", "1969-12"),
    row("month", "timestamp_ns", "-23", "1h", "1968-03-01T01:00:00Z", "1968-02"),
    row("day", "timestamptz", "20713", "7d", "2026-09-25T00:00:00Z", "2026-09-17"),
    row("day", "date", "19782", "1d", "2024-03-02T00:00:00Z", "2024-02-29"),
    row("day", "timestamp", "0", "7d", "1970-01-09T00:00:00Z", "1970-01-01"),
    row("day", "timestamp_ms", "-1", "36h", "1970-01-02T12:00:00Z", "1969-12-31"),
    row("day", "timestamp_ns", "-365", "1d", "1969-01-03T00:00:00Z", "1969-01-01"),
    row("hour", "timestamp", "497117", "1h", "2026-09-17T07:00:00Z", "2026-09-17T05"),
    row("hour", "timestamptz", "0", "90m", "1970-01-01T02:30:00Z", "1970-01-01T00"),
    row("hour", "date", "-1", "1h", "1970-01-01T01:00:00Z", "1969-12-31T23"),
    row("hour", "timestamp_s", "-25", "1h 1s", "1969-12-31T01:00:01Z", "1969-12-30T23"),
    row("identity", "date", "2024-02-29", "1d", "2024-03-02T00:00:00Z", "2024-02-29"),
    row("identity", "date", "1969-12-31", "1d", "1970-01-02T00:00:00Z", "1969-12-31"),
    row(
        "identity",
        "timestamp",
        "2026-09-17T05:00:00",
        "7d",
        "2026-09-24T05:00:00Z",
        "2026-09-17T05:00:00Z",
    ),
    row(
        "identity",
        "timestamp",
        "2026-09-17T05:00:00.000001",
        "7d",
        "2026-09-24T05:00:00.000001Z",
        "2026-09-17T05:00:00.000001Z",
    ),
    row(
        "identity",
        "timestamp_s",
        "1969-12-31T23:59:59",
        "1d",
        "1970-01-01T23:59:59Z",
        "1969-12-31T23:59:59Z",
    ),
    row(
        "identity",
        "timestamp_ms",
        "2026-09-17T05:00:00.250000",
        "1d",
        "2026-09-18T05:00:00.25Z",
        "2026-09-17T05:00:00.25Z",
    ),
    row(
        "identity",
        "timestamptz",
        "2026-09-17T05:00:00+00:00",
        "1d",
        "2026-09-18T05:00:00Z",
        "2026-09-17T05:00:00Z",
    ),
    row(
        "identity",
        "timestamptz",
        "1969-12-31T23:59:59.999999+00:00",
        "1d",
        "1970-01-01T23:59:59.999999Z",
        "1969-12-31T23:59:59.999999Z",
    ),
    row(
        "identity",
        "timestamp_ns",
        "1789621200000000000",
        "1d",
        "2026-09-18T05:00:00Z",
        "2026-09-17T05:00:00Z",
    ),
    row(
        "identity",
        "timestamp_ns",
        "-1000",
        "1d",
        "1970-01-01T23:59:59.999999Z",
        "1969-12-31T23:59:59.999999Z",
    ),
];

#[tokio::test]
async fn a_partition_leaves_when_its_last_instant_is_keep_old() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    for (number, row) in ROWS.iter().enumerate() {
        let column = Column::new("at", row.col_type);
        let field = Field::new("at", row.transform, None);
        let name = format!("t{number:02}");
        let table = database.table_of(&catalog, &name, &[column], &[field]).await?;
        table.append(vec![NewFile::of([row.text])]).await?;
        database.govern(&table, "at", row.keep).await?;
    }
    for (number, row) in ROWS.iter().enumerate() {
        let name = format!("t{number:02}");
        let leaves: UtcInstant = row.leaves.parse()?;
        let said = format!("{} of a {}: {}", row.transform, row.col_type, row.text);

        let before = database.plan(&name, &leaves.plus_nanos(-1_000).to_string()).await?;
        assert_eq!(expired(&before), [], "{said} a microsecond before");
        assert_eq!(kept(&before), [("not_expired", 1)], "{said}");
        let next = before.census.and_then(|census| census.next_expiry);
        assert_eq!(next, Some(leaves), "{said}");

        for at in [leaves, leaves.plus_nanos(1_000)] {
            let plan = database.plan(&name, &at.to_string()).await?;
            assert_eq!(expired(&plan), [(1, values([row.text]), 1)], "{said} at {at}");
            assert_eq!(plan.expired[0].display, row.display, "{said}");
            assert_eq!(plan.expired[0].range_end, leaves.minus(plan.policy.keep.length()));
            assert_eq!(plan.cutoff, at.minus(plan.policy.keep.length()));
            assert_eq!(kept(&plan), [], "{said}");
        }
    }
    Ok(())
}

/// The boundary as somebody meets it who asks the program, with the column inside a struct.
#[tokio::test]
async fn a_leaf_of_a_struct_has_its_boundary_to_the_microsecond() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let columns = [
        Column::new("id", "long"),
        Column::structure("meta", vec![Column::new("ts", "timestamptz")]),
    ];
    let table = database.table_of(&catalog, "raw", &columns, &[Field::day("meta.ts")]).await?;
    table.append(vec![NewFile::of(["20713"]), NewFile::of(["20714"])]).await?;
    for field in ["day(meta.ts)", "meta.ts"] {
        database.policy("lake", "events.raw", field, "7d").await?;
        for (at, days) in [
            ("2026-09-24T23:59:59.999999Z", vec![]),
            ("2026-09-25T00:00:00Z", vec!["2026-09-17"]),
            ("2026-09-25T02:00:00.000001+02:00", vec!["2026-09-17"]),
            ("2026-09-25T23:59:59.999999Z", vec!["2026-09-17"]),
            ("2026-09-26T00:00:00.000000Z", vec!["2026-09-17", "2026-09-18"]),
        ] {
            let plan = database.done(&["plan", "--at", at, "--output", "json"]).await?;
            let expired = plan["tables"][0]["expired"].as_array().cloned().unwrap_or_default();
            let found: Vec<_> = expired.iter().map(|tuple| tuple["display"].clone()).collect();
            assert_eq!(found, days, "{field} at {at}");
        }
    }
    Ok(())
}

/// Files 8 ms apart, from half a second before the boundary on, and so many that even a slow
/// machine comes to its pass before the last of them has expired.
#[tokio::test]
async fn a_pass_decides_by_its_own_now_to_the_microsecond() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let columns = [Column::new("at", "timestamp")];
    let table = database.table_of(&catalog, "raw", &columns, &[Field::identity("at")]).await?;
    database.govern(&table, "at", "1h").await?;
    let hour = std::time::Duration::from_secs(3_600);
    let start = UtcInstant::from(chrono::Utc::now()).minus(hour);
    let times: Vec<_> = (-62..2_438).map(|step| start.plus_nanos(step * 8_000_000)).collect();
    let text = |at: &UtcInstant| at.to_string().trim_end_matches('Z').to_owned();
    table.append(times.iter().map(|at| NewFile::of([text(at)])).collect()).await?;

    let report = database.sweep().await?;

    let cutoff = report.as_of.minus(hour);
    let stays: Vec<_> =
        times.iter().filter(|at| **at > cutoff).map(|at| vec![Some(text(at))]).collect();
    assert!(stays.len() < times.len(), "nothing was old enough");
    assert!(!stays.is_empty(), "the pass came too late to tell");
    assert_eq!(report.tables[0].outcome, Outcome::Dropped, "{:?}", report.tables[0].error);
    assert_eq!(report.tables[0].counts().files as usize, times.len() - stays.len());
    assert_eq!(live_values(&table).await?, stays);
    Ok(())
}
