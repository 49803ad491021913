//! Tests of tables that cannot be read within `discovery.count_timeout`. The same partitions are
//! dropped, found by an index. The counts that need a full read are unknown.

use std::time::Duration;

use anyhow::Result;
use tailrace::catalog::connect::close;
use tailrace::catalog::specs::live_columns;
use tailrace::policy::store;
use tailrace::rules::instant::UtcInstant;
use tailrace::rules::scan_limits::ScanLimits;
use tailrace::sweep::Settings;
use tailrace::sweep::plan::{Health, TablePlan, plan_table};
use tailrace::sweep::plan_report::TablePlanReport;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Column, Field, NewFile, Table};

use crate::support::TestDatabase;
use crate::support::governed::live_values;
use crate::support::program::settings;

/// Some 12,000 files of three specs, nulls and nonsense among them, in a catalog in which a
/// neighbour has the same texts.
async fn a_large_table(database: &TestDatabase) -> Result<Table> {
    let catalog = database.catalog("lake").await?;
    let columns = [Column::new("team", "long"), Column::new("at", "timestamptz")];
    let table = database.table_of(&catalog, "raw", &columns, &[Field::month("at")]).await?;
    table.append((590..600).map(|month| NewFile::of([month.to_string()])).collect()).await?;
    table.evolve_spec(&[Field::identity("team"), Field::day("at")]).await?;
    let day = |n: i64| Some((18_000 + n % 60).to_string());
    let team = |n: i64| (n % 7 > 0).then(|| (n % 7).to_string());
    let mut files: Vec<_> = (0..11_500).map(|n| NewFile::new(vec![team(n), day(n)])).collect();
    files.push(NewFile::new(vec![team(1), None]));
    files.push(NewFile::new(vec![team(1), Some("nonsense".into())]));
    files.push(NewFile::new(vec![team(1), day(0)]).missing(0));
    files.push(NewFile::new(vec![team(1), Some("99999".into())]));
    table.append(files).await?;
    table.evolve_spec(&[Field::day("at")]).await?;
    // 590 as a day is 1971-08-14, as a month 2019-03.
    let texts = ["590", "18000", "18059", "x"].map(|text| NewFile::of([text]));
    table.append(texts.to_vec()).await?;
    let neighbour = database.table(&catalog, "neighbour", &[Field::day("at")]).await?;
    neighbour.append((18_000..18_010).map(|day| NewFile::of([day.to_string()])).collect()).await?;
    database.govern(&table, "at", "7d").await?;
    database.sql("ANALYZE").await?;
    Ok(table)
}

fn hurried() -> Settings {
    let scan_limits =
        ScanLimits { small_table: 0, piece: 1_000, values_at_once: 3, ..ScanLimits::default() };
    Settings { count_timeout: Duration::ZERO, scan_limits, ..settings() }
}

async fn plan_with(
    database: &TestDatabase,
    table: &Table,
    at: &str,
    settings: &Settings,
) -> Result<TablePlan> {
    let live = database.live(table).await?;
    let at: UtcInstant = at.parse()?;
    let mut session = database.tailrace().session().await?;
    let row = store::rows(&mut session, &live.identity).await?.stored.expect("a stored policy");
    let shape = live_columns(&mut session, table.catalog.catalog_id, table.table_id).await?;
    let policy = row.policy(&shape).map_err(anyhow::Error::msg)?;
    let plan = plan_table(&mut session, &live.identity, &policy, at, settings).await;
    close(session).await;
    plan
}

#[tokio::test]
async fn the_index_finds_what_a_full_read_finds() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = a_large_table(&database).await?;
    // Before anything, between the days, within the ambiguity of 590, and after everything.
    for (at, tuples) in [
        ("1970-01-01T00:00:00Z", 0),
        ("2019-03-31T12:00:00Z", 0),
        ("2019-04-21T23:59:59.999999Z", 0),
        ("2019-04-22T00:00:00Z", 0),
        ("2019-05-22T00:00:00Z", 0),
        ("2026-09-25T00:00:00Z", 10 + 60 * 7 + 3),
    ] {
        let full = plan_with(&database, &table, at, &settings()).await?;
        let by_index = plan_with(&database, &table, at, &hurried()).await?;
        assert!(full.kept_counts.is_some());
        assert_eq!(by_index.expired, full.expired, "at {at}");
        if tuples > 0 {
            assert_eq!(full.expired.len(), tuples);
        }
        assert_eq!(by_index.kept_counts, None, "at {at}: all was read");
        let report = TablePlanReport::of(&by_index);
        assert!(report.kept_files.is_none() && report.uncovered_files.is_none());
        assert!(report.undatable.is_none() && report.next_expiry.is_none());
        let health = if full.expired.is_empty() { Health::Unknown } else { Health::Healthy };
        assert_eq!(report.health, Some(health));
    }
    Ok(())
}

#[tokio::test]
async fn a_table_too_large_to_count_is_dropped_from_alike() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = a_large_table(&database).await?;
    let fast = Settings { lock_duty: 1.0, ..hurried() };
    let report = database.sweep_with(&fast).await?;
    assert_eq!(report.tables[0].outcome, Outcome::Dropped, "{:?}", report.tables[0].error);
    assert_eq!(report.tables[0].counts().files, 10 + 11_500 + 3);
    let left = live_values(&table).await?;
    let text = |text: &str| Some(text.to_owned());
    let expected = [
        vec![text("1"), None],
        vec![text("1"), text("nonsense")],
        vec![text("18000")],
        vec![text("1"), text("99999")],
        vec![text("x")],
    ];
    assert_eq!(left, expected);
    Ok(())
}

#[tokio::test]
async fn more_texts_than_max_values_are_told_with_what_to_raise() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = a_large_table(&database).await?;
    let at = "2026-09-25T00:00:00Z";
    // Key 0 has 590..600, six teams, ten days of the neighbour and of specs 3, and an x.
    let texts = database
        .text("SELECT count(DISTINCT value) FROM hog_file_partition_value WHERE key_index = 0")
        .await?
        .unwrap_or_default()
        .parse()?;
    let most = |max_values| Settings { max_values, ..hurried() };
    let enough = database
        .text("SELECT count(DISTINCT value) FROM hog_file_partition_value WHERE key_index = 1")
        .await?
        .unwrap_or_default()
        .parse::<i64>()?
        .max(texts);
    plan_with(&database, &table, at, &most(enough)).await?;
    let plan = plan_with(&database, &table, at, &most(texts - 1)).await?;
    let words = format!(
        "the table has no calendar yet and is too large to be read within discovery.count_timeout, and \
         its catalog has more than discovery.max_values ({}) distinct partition values at the time \
         field's key: passes make the calendar, or raise either",
        texts - 1
    );
    assert_eq!((plan.behind, plan.expired, plan.kept_counts), (Some(words), Vec::new(), None));
    // A pass has the time to read the table.
    let report = database.sweep_with(&Settings { lock_duty: 1.0, ..most(texts - 1) }).await?;
    assert_eq!(report.tables[0].outcome, Outcome::Dropped, "{:?}", report.tables[0].error);
    assert_eq!(report.tables[0].counts().files, 10 + 11_500 + 3);
    Ok(())
}
