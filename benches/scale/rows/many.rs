//! Measures passes over many tables with policies, of which none or a few have an expired partition.

use std::time::Duration;

use anyhow::{Result, ensure};
use tailrace::catalog::connect::close;
use tailrace::sweep::Settings;

use super::{Measured, spread};
use crate::bare;
use crate::bench::{Bench, Db};
use crate::database_time;
use crate::finding::{Finding, Verdict, grouped, ms};
use crate::many::{govern_all, ungovern_others};
use crate::program::{DAY, first_passes, pass_over_all, steady_settings_at};
use crate::scale::{DAYS_OF_MANY, FILES_OF_MANY, Fixture, TABLES_OF_A_CATALOG};
use crate::statistics::Sample;

/// Days that expire, one after another.
const DAYS: usize = 3;

/// How many passes with nothing to do run before each day.
const IDLE_PASSES: usize = 2;

/// The times of passes of one kind, in milliseconds.
#[derive(Default)]
struct Passes {
    in_database: Sample,
    by_the_clock: Sample,
}

/// The results for one fixture with many tables.
struct Found {
    tables: i64,
    few: i64,
    /// The time of the first passes over all tables, by the clock.
    first: Duration,
    /// Passes over all tables, with nothing to do.
    idle: Passes,
    /// Passes over all tables, of which a few have an expired day.
    with_work: Passes,
    /// Passes over these few tables in a database where no other table has a policy.
    alone: Passes,
    statements: usize,
    wal: Sample,
}

pub async fn measure(bench: &mut Bench) -> Result<Measured> {
    let in_one = measure_one(bench, Fixture::Tables).await?;
    let in_many = measure_one(bench, Fixture::Catalogs).await?;
    let catalogs = in_many.tables / TABLES_OF_A_CATALOG;
    let names = [
        format!("{} tables in one catalog", grouped(in_one.tables)),
        format!("{} catalogs of {TABLES_OF_A_CATALOG} tables each", grouped(catalogs)),
    ];
    let both = |told: fn(&Found) -> String| format!("{} and {}", told(&in_one), told(&in_many));
    let findings = names.iter().zip([&in_one, &in_many]);
    Ok(Measured {
        title: "Many tables",
        how: format!(
            "{} tables in one catalog, and {} catalogs of {TABLES_OF_A_CATALOG} tables. Each table has \
             {DAYS_OF_MANY} days of {FILES_OF_MANY} files. The first pass takes {} by the clock. Then {} \
             days are measured. For each, the time of two passes is set to one minute before a day of one \
             table in a hundred expires ({} statements), and that of a third pass to one minute after. In \
             turn with it, one pass runs in a copy of the database where only those tables have a policy. \
             Times are measured in the database, as above, and by the clock. The median WAL of a pass \
             with nothing to do is {} bytes. No full pass comes due meanwhile.",
            grouped(in_one.tables),
            grouped(catalogs),
            both(|found| ms(found.first.as_secs_f64() * 1e3)),
            in_one.with_work.by_the_clock.len(),
            both(|found| grouped(found.statements as i64)),
            both(|found| grouped(found.wal.median() as i64)),
        ),
        findings: findings.flat_map(|(name, found)| told(name, found)).collect(),
    })
}

/// The lines of the table.
fn told(name: &str, found: &Found) -> Vec<Finding> {
    let Found { idle, with_work, alone, .. } = found;
    let bound = |of: fn(&Passes) -> &Sample| of(idle).median() + 1.1 * of(alone).median();
    let (most_in_database, most) =
        (bound(|passes| &passes.in_database), bound(|passes| &passes.by_the_clock));
    let (work_in_database, work) =
        (with_work.in_database.median(), with_work.by_the_clock.median());
    let (idle_in_database, idle_clock) = (idle.in_database.median(), idle.by_the_clock.median());
    vec![
        Finding {
            what: format!("pass with nothing to do, {name}"),
            ours: format!("{} in the database", spread(&idle.in_database)),
            beside: format!("{} by the clock", spread(&idle.by_the_clock)),
            figure: format!("{} and {}", ms(idle_in_database), ms(idle_clock)),
            goal: "<= 1 s in the database, <= 2 s by the clock".to_owned(),
            verdict: Verdict::all(&[idle_in_database <= 1_000.0, idle_clock <= 2_000.0]),
        },
        Finding {
            what: format!(
                "pass over {name}, {} of them with an expired day, against these alone",
                found.few
            ),
            ours: format!("{}, {}", ms(work_in_database), ms(work)),
            beside: format!(
                "{}, {}",
                ms(alone.in_database.median()),
                ms(alone.by_the_clock.median())
            ),
            figure: format!(
                "{} of at most {} in the database, {} of {} by the clock",
                ms(work_in_database),
                ms(most_in_database),
                ms(work),
                ms(most)
            ),
            goal: "<= nothing to do + 1.1 x these alone".to_owned(),
            verdict: Verdict::all(&[work_in_database <= most_in_database, work <= most]),
        },
    ]
}

async fn measure_one(bench: &mut Bench, fixture: Fixture) -> Result<Found> {
    let db = bench.built(fixture).await?;
    let (tables, few) = govern_all(&db, DAYS_OF_MANY + 1).await?;
    let at = |day: usize, second: i64| {
        steady_settings_at((bench.scale.today + 1 + day as i64) * DAY + second)
    };
    let first = first_passes(&db, &at(0, -60)?).await?;
    let days = bench.scale.times(DAYS);
    let settings: Vec<(Settings, Settings)> =
        (0..days).map(|day| Ok((at(day, -60)?, at(day, 60)?))).collect::<Result<_>>()?;
    let (all, alone) = bench.copy_of(db).await?;
    ungovern_others(&alone).await?;
    database_time::log_statements(bench, &all).await?;
    database_time::log_statements(bench, &alone).await?;

    let mut found = Found {
        tables,
        few,
        first,
        idle: Passes::default(),
        with_work: Passes::default(),
        alone: Passes::default(),
        statements: 0,
        wal: Sample::default(),
    };
    for (round, (before, after)) in settings.iter().enumerate() {
        let mut ignored = Passes::default();
        timed(bench, &all, before, &mut ignored, 0).await?;
        timed(bench, &alone, before, &mut ignored, 0).await?;
        for _ in 0..IDLE_PASSES {
            let mut session = all.database().session().await?;
            bare::checkpoint(&mut session).await?;
            let wal = bare::wal(&mut session).await?;
            found.statements = timed(bench, &all, before, &mut found.idle, 0).await?;
            found.wal.push((bare::wal(&mut session).await? - wal) as f64);
            close(session).await;
        }
        // The first of the two may have additional costs, so they take turns in being first.
        for with_others in [round % 2 == 0, round % 2 != 0] {
            let (db, passes) = match with_others {
                true => (&all, &mut found.with_work),
                false => (&alone, &mut found.alone),
            };
            timed(bench, db, after, passes, few * FILES_OF_MANY).await?;
        }
    }
    bench.remove(all).await?;
    bench.remove(alone).await?;
    Ok(found)
}

/// Runs one pass, which must drop this number of files; returns the number of its statements.
async fn timed(
    bench: &Bench,
    db: &Db,
    settings: &Settings,
    passes: &mut Passes,
    files: i64,
) -> Result<usize> {
    let mark = database_time::mark(bench)?;
    let (report, took) = pass_over_all(db, settings).await?;
    let spent = database_time::since(bench, db, mark)?;
    let dropped = report.counts().files;
    ensure!(dropped == files, "{dropped} files were dropped in place of {files}");
    passes.in_database.push(spent.ms);
    passes.by_the_clock.push_time(took);
    Ok(spent.statements)
}
