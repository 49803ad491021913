//! Tests of what passes read.

use std::time::Duration;

use anyhow::Result;
use tailrace::catalog::connect::Database;
use tailrace::sweep::report::{Outcome, TableReport};
use tailrace::sweep::{Scope, Settings, run_pass};
use tailrace_kit::lake::NewFile;
use tailrace_kit::simulated_loops::HeldFiles;
use tokio_util::sync::CancellationToken;

use super::crowd::{Crowd, EXPIRED, Statistics};
use super::pins::{Most, assert_keeps_to, by, drop_of};
use super::watch::{Planned, Watch};
use super::{
    CHANGES, DATA_LOOKUP, FEED, FILE_KEY, LIVE, LIVE_OR_FEED, LOOKUP, MAINTENANCE_SCAN,
    SNAPSHOT_KEY, STATS_KEY, VALUE_KEY,
};
use crate::support::program::{days_ago, settings};

/// The reports of `raw` and of `small`.
pub async fn pass(database: &Database, settings: &Settings) -> Result<[TableReport; 2]> {
    let stop = CancellationToken::new();
    let report = run_pass(database, settings, &Scope::default(), &stop, &|_| {}).await?;
    Ok(report.tables.try_into().expect("two tables"))
}

fn ended(reports: &[TableReport; 2]) -> [(Outcome, i64); 2] {
    reports.each_ref().map(|report| (report.outcome, report.counts().files))
}

/// A day that has expired.
fn old() -> String {
    days_ago(*EXPIRED.start())
}

const IDLE: [(Outcome, i64); 2] = [(Outcome::NothingToDo, 0), (Outcome::NothingToDo, 0)];

/// The guards of one drop, and of two. What came since a moment that a request names is nobody's question.
const GUARDS: [(&str, Most<'_>); 2] = [
    ("guards", Most::By(&[(FEED, 0), (CHANGES, 0), (SNAPSHOT_KEY, 3)])),
    ("guards", Most::By(&[(FEED, 0), (CHANGES, 0), (SNAPSHOT_KEY, 6)])),
];

async fn one_after_another(statistics: Statistics, planned: Planned) -> Result<()> {
    let crowd = Crowd::new(statistics).await?;
    let watch = Watch::begin();
    let database = watch.over(&crowd.database, planned);
    let usual = settings();
    let clock = by("newest snapshots", &[(SNAPSHOT_KEY, 1_000)]);

    // The first: 4,000 entries of files that ended, and those of three days of three tables, lead
    // to the 300 of `raw`; its 34,000 other files are read once. `small` is read at once.
    let reports = pass(&database, &usual).await?;
    assert_eq!(ended(&reports), [(Outcome::Dropped, 300), (Outcome::Dropped, 30)]);
    assert_keeps_to(
        "the first",
        &watch.take()?,
        &[
            by("newest live", &[(LIVE, 1_200), (VALUE_KEY, 2_400), (DATA_LOOKUP, 1_200)]),
            clock,
            by("live since", &[(LIVE, 20_131), (VALUE_KEY, 40_262), (DATA_LOOKUP, 20_131)]),
            by("distinct values", &[(LOOKUP, 20_510)]),
            by(
                "files with values",
                &[(LOOKUP, 4_640), (FILE_KEY, 4_630), (VALUE_KEY, 300), (DATA_LOOKUP, 300)],
            ),
            by(
                "next_piece",
                &[(MAINTENANCE_SCAN, 34_300), (VALUE_KEY, 60_000), (DATA_LOOKUP, 30_000)],
            ),
            by("evidence", &[(FILE_KEY, 330), (STATS_KEY, 330)]),
            GUARDS[1],
            drop_of(300),
        ],
    );

    // Nothing to do: not one file, value or vector is read of anybody.
    assert_eq!(ended(&pass(&database, &usual).await?), IDLE);
    assert_keeps_to("idle", &watch.take()?, &[]);

    // Files that come late are the only ones that are read.
    crowd.raw.append(vec![NewFile::of([old(), "kind 0".to_owned()]); 2]).await?;
    let reports = pass(&database, &usual).await?;
    assert_eq!(ended(&reports), [(Outcome::Dropped, 2), IDLE[1]]);
    let late = by("late values", &[(LIVE_OR_FEED, 2), (VALUE_KEY, 2)]);
    let entries = 210 + 62;
    assert_keeps_to(
        "late",
        &watch.take()?,
        &[
            clock,
            late,
            by("entries of values", &[(LOOKUP, entries)]),
            by(
                "files with values",
                &[(LOOKUP, entries), (FILE_KEY, entries), (VALUE_KEY, 4), (DATA_LOOKUP, 2)],
            ),
            by("evidence", &[(FILE_KEY, 2), (STATS_KEY, 2)]),
            GUARDS[0],
            drop_of(8),
        ],
    );

    // A day of the calendar that has fallen due: as many entries as it has.
    let due = format!(
        "INSERT INTO tailrace.calendar SELECT catalog_id, table_uuid, 1, false, '{}', '2020-01-01 00:00Z',
             '2020-01-01 00:00Z', 86400 FROM tailrace.table_state",
        old()
    );
    crowd.database.sql(&due).await?;
    assert_eq!(ended(&pass(&database, &usual).await?), IDLE);
    let entries = 2 * (210 + 62 + 2);
    assert_keeps_to(
        "due",
        &watch.take()?,
        &[
            clock,
            by("late values", &[(LIVE_OR_FEED, 0)]),
            by("entries of values", &[(LOOKUP, entries)]),
            by("files with values", &[(LOOKUP, entries), (FILE_KEY, entries)]),
        ],
    );

    // A row that somebody has locked is found among those of its drop.
    crowd.raw.append(vec![NewFile::of([old(), "kind 0".to_owned()]).pending(); 2]).await?;
    crowd.raw.append(vec![NewFile::of([days_ago(*EXPIRED.end()), "kind 0".to_owned()])]).await?;
    let held = HeldFiles::hold(&crowd.catalog, 1).await?;
    let mut hasty = settings();
    hasty.limits.row_lock_timeout = Duration::from_millis(10);
    let reports = pass(&database, &hasty).await?;
    assert_eq!(ended(&reports), [(Outcome::Busy, 1), IDLE[1]]);
    held.release().await?;
    let executed = watch.take()?;
    assert!(executed.iter().any(|statement| statement.sql.contains("skip locked")));
    let late = by("late values", &[(LIVE_OR_FEED, 3), (VALUE_KEY, 3)]);
    let entries = 2 * (210 + 62 + 4);
    assert_keeps_to(
        "busy",
        &executed,
        &[
            clock,
            late,
            by("entries of values", &[(LOOKUP, entries)]),
            by(
                "files with values",
                &[(LOOKUP, entries), (FILE_KEY, entries), (VALUE_KEY, 6), (DATA_LOOKUP, 3)],
            ),
            by("evidence", &[(FILE_KEY, 3), (STATS_KEY, 3)]),
            GUARDS[1],
            drop_of(100),
        ],
    );
    Ok(())
}

#[tokio::test]
async fn on_tables_that_nobody_has_analyzed() -> Result<()> {
    one_after_another(Statistics::None, Planned::EachTime).await
}

#[tokio::test]
async fn on_tables_nobody_has_analyzed_with_plans_for_all_parameters() -> Result<()> {
    one_after_another(Statistics::None, Planned::Once).await
}

#[tokio::test]
async fn on_tables_that_were_analyzed() -> Result<()> {
    one_after_another(Statistics::Gathered, Planned::EachTime).await
}

#[tokio::test]
async fn on_tables_that_were_analyzed_with_plans_for_all_parameters() -> Result<()> {
    one_after_another(Statistics::Gathered, Planned::Once).await
}
