//! A pass with nothing to do: what a daemon does nearly all of the time.

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

/// What passes with nothing to do take.
pub struct Idle {
    /// The live files of the table.
    pub files: i64,
    /// The time in the database.
    pub in_database: Sample,
    /// The time of whole passes.
    pub by_the_clock: Sample,
    /// The statements of the last one.
    pub statements: usize,
    /// By the clock, until all was looked at once.
    pub first_pass_ms: f64,
}

/// 1,000,000 files, and 5,000,000 of the same days.
pub async fn measure(bench: &mut Bench) -> Result<Measured> {
    let db = bench.copy(Fixture::Million).await?;
    let keep = bench.scale.keep(DAYS, 0);
    let million = idle(bench, &db, &keep).await?;
    bench.remove(db).await?;
    // Too large to be copied for this, or built again for the rows after it.
    let db = bench.built(Fixture::FiveMillion).await?;
    let five = idle(bench, &db, &keep).await?;
    db.leave().await;

    let growth = five.in_database.median() / million.in_database.median();
    let neighbour = grouped(bench.scale.files(600_000));
    let what = format!(
        "pass with nothing to do, {} files / 400 days / neighbour of {neighbour}, and {} of the same days",
        grouped(million.files),
        grouped(five.files)
    );
    let within = million.in_database.median() <= 15.0;
    Ok(Measured {
        title: "A pass with nothing to do",
        how: format!(
            "After the first pass, which looked at everything and dropped nothing ({} and {} by the \
             clock), {} more: whole passes in sessions of their own. The time in the database is the \
             sum of what the server's log says of the {} statements of a pass (and of their parsing); \
             the opening of the sessions is not in it, but in the time by the clock: {} and {}.",
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

/// Beside a neighbour with 1,000,000 distinct strings at the same key.
pub async fn measure_beside_strings(bench: &mut Bench) -> Result<Measured> {
    let db = bench.built(Fixture::Strings).await?;
    let found = idle(bench, &db, &bench.scale.keep(DAYS, 0)).await?;
    bench.remove(db).await?;
    let what = format!(
        "the same, beside a neighbour with {} distinct strings at the same key_index",
        grouped(bench.scale.files(1_000_000))
    );
    Ok(alone("Beside many strings", what, 15.0, &found))
}

/// By hour, 5 years.
pub async fn measure_by_hour(bench: &mut Bench) -> Result<Measured> {
    let db = bench.built(Fixture::Hours).await?;
    // A day more than there is of them, whatever hour it is now.
    let found = idle(bench, &db, &bench.scale.keep(HOURS / 24 + 1, 0)).await?;
    db.leave().await;
    let what = format!(
        "the same, hourly partitions, 5 years ({} values, {} files)",
        grouped(HOURS),
        grouped(found.files)
    );
    Ok(alone("By hour", what, 30.0, &found))
}

fn alone(title: &'static str, what: String, goal: f64, found: &Idle) -> Measured {
    Measured {
        title,
        how: format!(
            "As above: {} passes of {} statements, by the clock {}; the first pass took {}.",
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

/// The first pass and some with nothing to do, over a table of which nothing has expired by `keep`.
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
