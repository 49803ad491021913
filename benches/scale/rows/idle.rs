//! Measures a pass with nothing to do. Most passes of a daemon are such passes.

use anyhow::{Result, ensure};
use tailrace::sweep::report::Outcome;

use super::{Measured, spread};
use crate::bench::{Bench, Db};
use crate::database_time;
use crate::finding::{Finding, Verdict, grouped, ms};
use crate::program::{brief, first_passes, govern, pass, settings};
use crate::scale::{DAYS, Fixture, HOURS, SUBJECT};
use crate::statistics::Sample;

/// How many passes are measured.
const PASSES: usize = 11;

/// The times of passes with nothing to do.
pub struct Idle {
    /// The live files of the table.
    pub files: i64,
    /// The time in the database.
    pub in_database: Sample,
    /// The time of whole passes.
    pub by_the_clock: Sample,
    /// The number of statements of the last pass.
    pub statements: usize,
    /// The time by the clock until everything was read once.
    pub first_pass_ms: f64,
}

/// Measures a table of 1,000,000 files, and one of 5,000,000 files of the same days.
pub async fn measure(bench: &mut Bench) -> Result<Measured> {
    let db = bench.copy(Fixture::Million).await?;
    let keep = bench.scale.keep(DAYS, 0);
    let million = idle(bench, &db, &keep).await?;
    bench.remove(db).await?;
    // This fixture is too large to be copied here, or to be built again for later rows.
    let db = bench.built(Fixture::FiveMillion).await?;
    let five = idle(bench, &db, &keep).await?;
    db.leave().await;

    let growth = five.in_database.median() / million.in_database.median();
    let neighbour = grouped(bench.scale.files(600_000));
    let what = format!(
        "pass with nothing to do, {} and {} files of the same 400 days, beside a table of {neighbour}",
        grouped(million.files),
        grouped(five.files)
    );
    let within = million.in_database.median() <= 15.0;
    Ok(Measured {
        title: "A pass with nothing to do",
        how: format!(
            "The first pass looks at everything and drops nothing: {} for the smaller table and {} for \
             the larger, by the clock. Then {} more passes are measured, each in sessions of its own. The \
             time in the database is the sum of the durations that the server logs for the {} statements \
             of a pass, with their parsing. It does not include the opening of the sessions. The time by \
             the clock includes it: {} and {}.",
            ms(million.first_pass_ms),
            ms(five.first_pass_ms),
            million.in_database.len(),
            million.statements,
            spread(&million.by_the_clock),
            spread(&five.by_the_clock),
        ),
        findings: vec![Finding {
            what,
            ours: spread(&million.in_database),
            beside: spread(&five.in_database),
            figure: format!("{growth:.2} times at five times the files"),
            goal: "<= 15 ms in the database, within 1.5 times".to_owned(),
            verdict: Verdict::all(&[within, growth <= 1.5]),
        }],
    })
}

/// Measures the table beside another one with 1,000,000 distinct strings at the same key.
pub async fn measure_beside_strings(bench: &mut Bench) -> Result<Measured> {
    let db = bench.built(Fixture::Strings).await?;
    let found = idle(bench, &db, &bench.scale.keep(DAYS, 0)).await?;
    bench.remove(db).await?;
    let what = format!(
        "pass with nothing to do, beside a table with {} distinct strings at the same key_index",
        grouped(bench.scale.files(1_000_000))
    );
    Ok(alone("Beside many strings", what, 15.0, &found))
}

/// Measures a table by hour, of 5 years.
pub async fn measure_by_hour(bench: &mut Bench) -> Result<Measured> {
    let db = bench.built(Fixture::Hours).await?;
    // One day more than the fixture has, so that it is enough at any hour of the day.
    let found = idle(bench, &db, &bench.scale.keep(HOURS / 24 + 1, 0)).await?;
    db.leave().await;
    let what = format!(
        "pass with nothing to do, hourly partitions of 5 years ({} values, {} files)",
        grouped(HOURS),
        grouped(found.files)
    );
    Ok(alone("By hour", what, 30.0, &found))
}

fn alone(title: &'static str, what: String, goal: f64, found: &Idle) -> Measured {
    Measured {
        title,
        how: format!(
            "Measured in the same way: {} passes of {} statements take {} each by the clock. The first \
             pass took {}.",
            found.in_database.len(),
            found.statements,
            spread(&found.by_the_clock),
            ms(found.first_pass_ms)
        ),
        findings: vec![Finding {
            what,
            ours: spread(&found.in_database),
            beside: "-".to_owned(),
            figure: ms(found.in_database.median()),
            goal: format!("<= {goal} ms in the database"),
            verdict: Verdict::all(&[found.in_database.median() <= goal]),
        }],
    }
}

/// Runs the first pass and passes with nothing to do, over a table in which nothing has expired by `keep`.
pub async fn idle(bench: &Bench, db: &Db, keep: &str) -> Result<Idle> {
    let settings = settings()?;
    let files = db.live_files(&db.table(SUBJECT).await?).await?;
    govern(db, keep).await?;
    let first = first_passes(db, &settings).await?;
    database_time::log_statements(bench, db).await?;
    let mut idle = Idle {
        files,
        in_database: Sample::default(),
        by_the_clock: Sample::default(),
        statements: 0,
        first_pass_ms: first.as_secs_f64() * 1e3,
    };
    for _ in 0..bench.scale.times(PASSES) {
        let mark = database_time::mark(bench)?;
        let (report, took) = pass(db, &settings).await?;
        let spent = database_time::since(bench, db, mark)?;
        ensure!(report.outcome == Outcome::NothingToDo, "{}", brief(&report));
        idle.in_database.push(spent.ms);
        idle.by_the_clock.push_time(took);
        idle.statements = spent.statements;
    }
    Ok(idle)
}
