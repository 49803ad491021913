//! Tests of the order of work: first what is due in all tables, then late files of all tables, then
//! the rest. The rest is interrupted for what falls due meanwhile.

use std::sync::Mutex;
use std::time::Duration;

use anyhow::Result;
use tailrace::sweep::report::{PassReport, TableReport};
use tailrace::sweep::{Kind, Progress, Scope, Settings, run_paced_pass};
use tailrace_kit::lake::{Field, NewFile, Table};
use tokio_util::sync::CancellationToken;

use super::{Scene, small_steps};
use crate::support::TestDatabase;
use crate::support::governed::of_table;
use crate::support::program::settings;
use crate::support::timer::{TestTimer, pacing};

const NOON: &str = "2026-11-30T12:00:00Z";
const MIDNIGHT: &str = "2026-12-01T00:00:00Z";

/// Seven days before that midnight, the end of a day that is due then; and one long before.
const DUE: &str = "20780";
const LATE: &str = "20000";

fn at(time: &str) -> Result<Settings> {
    Ok(Settings { as_of: Some(time.parse()?), lock_duty: 1.0, ..settings() })
}

fn partitions(report: &TableReport) -> Vec<&str> {
    let all = report.snapshots.iter().flat_map(|snapshot| &snapshot.partitions);
    all.filter_map(|partition| partition.partition_values[0].as_deref()).collect()
}

/// Three governed tables in two catalogs, each with a day that falls due at midnight and, since a pass has seen
/// that, a file of long ago.
async fn lake(database: &TestDatabase) -> Result<Vec<Table>> {
    let mut tables = Vec::new();
    for (catalog, names) in [("a", &["one", "two"][..]), ("b", &["one"])] {
        let catalog = database.catalog(catalog).await?;
        for name in names {
            let table = database.table(&catalog, name, &[Field::day("at")]).await?;
            table.append(vec![NewFile::of([DUE])]).await?;
            database.govern(&table, "at", "7d").await?;
            tables.push(table);
        }
    }
    database.sweep_with(&at(NOON)?).await?;
    for table in &tables {
        table.append(vec![NewFile::of([LATE])]).await?;
    }
    Ok(tables)
}

/// A pass, and of which tables it made commits, in their order.
async fn pass(database: &TestDatabase, settings: &Settings) -> Result<(PassReport, Vec<String>)> {
    let order = Mutex::new(Vec::new());
    let note = |progress: Progress<'_>| {
        if let Progress::Dropped { table, .. } = progress {
            order.lock().expect("no panic").push(format!("{}.{}", table.catalog, table.table));
        }
    };
    let (stop, timer) = (CancellationToken::new(), TestTimer::new());
    let (place, scope) = (database.tailrace(), Scope::default());
    let swept = run_paced_pass(&place, settings, &scope, &stop, &note, &pacing(&timer)).await?;
    Ok((swept, order.into_inner()?))
}

#[tokio::test]
async fn what_is_due_of_all_comes_before_what_is_late_of_any() -> Result<()> {
    let database = TestDatabase::new().await?;
    lake(&database).await?;
    let settings = Settings { parallel_catalogs: 1, ..at(MIDNIGHT)? };
    let (report, order) = pass(&database, &settings).await?;
    // The last one with something due goes on to its late files: nobody waits with an earlier step.
    assert_eq!(order, ["a.one", "a.two", "b.one", "b.one", "a.one", "a.two"]);
    for table in &report.tables {
        assert_eq!(partitions(table), [DUE, LATE], "{}.{}", table.catalog, table.table);
    }
    assert!(!report.gave_way);
    let (report, order) = pass(&database, &settings).await?;
    assert_eq!((report.counts().files, order.len()), (0, 0));
    Ok(())
}

/// Where values cannot be looked up, a full scan finds what is due of each table, in the same pass.
#[tokio::test]
async fn without_the_index_nothing_that_is_due_is_left_by_one_pass() -> Result<()> {
    let database = TestDatabase::new().await?;
    let tables = lake(&database).await?;
    database.sql("DROP INDEX hog_file_partition_value_lookup").await?;
    let settings = Settings { scan_limits: small_steps(), ..at(MIDNIGHT)? };
    let (report, _) = pass(&database, &settings).await?;
    assert_eq!(report.counts().files, 6);
    for table in &tables {
        assert_eq!(table.live_files().await?.len(), 0);
    }
    Ok(())
}

/// A wake leaves what came late to the next regular pass, whoever waits.
#[tokio::test]
async fn a_wake_goes_no_further_than_what_is_due() -> Result<()> {
    let database = TestDatabase::new().await?;
    lake(&database).await?;
    let settings = Settings { kind: Kind::Wake, ..at(MIDNIGHT)? };
    let (report, order) = pass(&database, &settings).await?;
    assert_eq!((order.len(), report.counts().files), (3, 3));
    assert!(report.tables.iter().all(|table| partitions(table) == [DUE]));
    let (report, _) = pass(&database, &at(MIDNIGHT)?).await?;
    assert_eq!(report.counts().files, 3);
    assert!(report.tables.iter().all(|table| partitions(table) == [LATE]));
    Ok(())
}

/// A table that is read anew, and beside it one of which a day falls due ten seconds after the pass began.
#[tokio::test]
async fn a_full_scan_gives_way_to_what_falls_due_and_goes_on_after_it() -> Result<()> {
    let mut scene = Scene::new(&[Field::day("at")]).await?;
    scene.table.append(vec![scene.file(1); 60]).await?;
    let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    other.append(vec![NewFile::of([DUE])]).await?;
    scene.database.govern(&other, "at", "7d").await?;
    scene.settings.scan_limits = small_steps();
    scene.sweep().await?;
    let owes = "UPDATE tailrace.table_state SET full_pass_at = NULL, census = NULL WHERE table_id =
        (SELECT table_id FROM hog_table_version WHERE name = 'raw')";
    scene.database.sql(owes).await?;
    let lag = Duration::from_secs(40);
    let settings = Settings {
        as_of: Some("2026-11-30T23:59:50Z".parse()?),
        wakes_within: Some(lag),
        ..scene.settings
    };
    // The clock goes on when the pass has come to the table, by so much.
    let passes = async |settings: &Settings, by: Duration| -> Result<(PassReport, Vec<String>)> {
        let (stop, timer) = (CancellationToken::new(), TestTimer::new());
        let order = Mutex::new(Vec::new());
        let note = |progress: Progress<'_>| {
            if let Progress::Table(table) = progress {
                order.lock().expect("no panic").push(table.table.clone());
                if table.table == "raw" {
                    timer.advance(by);
                }
            }
        };
        let (place, scope) = (scene.database.tailrace(), Scope::default());
        let swept = run_paced_pass(&place, settings, &scope, &stop, &note, &pacing(&timer)).await?;
        Ok((swept, order.into_inner()?))
    };
    let counted = "SELECT reading #>> '{census,kept,not_expired,files}' FROM tailrace.table_state
        WHERE reading IS NOT NULL";

    // Ten seconds and a quarter of the lag: not a moment before that.
    let just_before = Duration::from_millis(19_999);
    let (report, _) = passes(&settings, just_before).await?;
    assert_eq!((report.gave_way, scene.database.text(counted).await?), (false, None));
    scene.database.sql(owes).await?;
    let (report, _) = passes(&settings, Duration::from_secs(20)).await?;
    assert!(report.gave_way);
    // Two pieces of seven files: however short the turn, it gets somewhere.
    assert_eq!(scene.database.text(counted).await?.as_deref(), Some("14"));
    // Nobody counts it among those that what is due was not looked at of.
    let quiet =
        scene.database.text("SELECT count(*)::text FROM tailrace.table_state WHERE unlooked > 0");
    assert_eq!(quiet.await?.as_deref(), Some("0"));

    let later = Settings { as_of: Some(MIDNIGHT.parse()?), ..settings };
    let (report, order) = passes(&later, Duration::ZERO).await?;
    assert_eq!(order, ["other", "raw"]);
    assert_eq!(partitions(of_table(&report, "other")), [DUE]);
    assert_eq!((report.gave_way, scene.database.text(counted).await?), (false, None));
    let kept_counts = "SELECT census #>> '{kept,not_expired,files}' FROM tailrace.table_state
        WHERE table_id = (SELECT table_id FROM hog_table_version WHERE name = 'raw')";
    assert_eq!(scene.database.text(kept_counts).await?.as_deref(), Some("60"));
    Ok(())
}
