//! Tests, with real rows, that a value expires at its time and not a microsecond earlier, by
//! `tests/expiry-table.json`. `src/rules/expiry/tests.rs` tests the pure rules by the same table.

use anyhow::Result;
use serde::Deserialize;
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Column, Field, NewFile};

use crate::support::TestDatabase;
use crate::support::governed::{expired, kept, live_values, values};

#[derive(Deserialize)]
struct Row {
    transform: String,
    #[serde(rename = "type")]
    col_type: String,
    text: String,
    keep: String,
    leaves: String,
    shown: String,
}

#[derive(Deserialize)]
struct Rows {
    rows: Vec<Row>,
}

#[tokio::test]
async fn a_partition_leaves_when_its_last_instant_is_keep_old() -> Result<()> {
    let Rows { rows } = serde_json::from_str(include_str!("../../../expiry-table.json"))?;
    assert_eq!(rows.len(), 38);
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    for (number, row) in rows.iter().enumerate() {
        let column = Column::new("at", &row.col_type);
        let field = Field::new("at", &row.transform, None);
        let name = format!("t{number:02}");
        let table = database.table_of(&catalog, &name, &[column], &[field]).await?;
        table.append(vec![NewFile::of([row.text.as_str()])]).await?;
        database.govern(&table, "at", &row.keep).await?;
    }
    for (number, row) in rows.iter().enumerate() {
        let name = format!("t{number:02}");
        let leaves: UtcInstant = row.leaves.parse()?;
        let said = format!("{} of a {}: {}", row.transform, row.col_type, row.text);

        let before = database.plan(&name, &leaves.plus_nanos(-1_000).to_string()).await?;
        assert_eq!(expired(&before), [], "{said} a microsecond before");
        assert_eq!(kept(&before), [("not_expired", 1)], "{said}");
        let next = before.kept_counts.and_then(|kept_counts| kept_counts.next_expiry);
        assert_eq!(next, Some(leaves), "{said}");

        for at in [leaves, leaves.plus_nanos(1_000)] {
            let plan = database.plan(&name, &at.to_string()).await?;
            assert_eq!(expired(&plan), [(1, values([row.text.as_str()]), 1)], "{said} at {at}");
            assert_eq!(plan.expired[0].display, row.shown, "{said}");
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
