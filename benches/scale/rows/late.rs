//! Measures a pass that finds many new files, none of which has expired.

use anyhow::{Result, ensure};
use tailrace::catalog::connect::close;
use tailrace::catalog::tables::TableIdentity;
use tailrace::sweep::Settings;
use tailrace::sweep::report::Outcome;

use super::{Measured, spread};
use crate::bare;
use crate::bench::{Bench, Db};
use crate::database_time;
use crate::filling::{Files, fill};
use crate::finding::{Finding, Verdict, grouped, ms};
use crate::program::{DAY, brief, first_passes, govern, pass, steady_settings_at};
use crate::scale::{DAYS, Fixture, SUBJECT};
use crate::statistics::Sample;

/// How often each is measured.
const TIMES: usize = 3;

/// The files of each commit, where there are many commits.
const OF_A_SNAPSHOT: i64 = 270;

/// The files that were committed since the last pass.
struct Late {
    files: i64,
    of_a_snapshot: i64,
    times: usize,
    /// The goal for the time in the database, in milliseconds.
    goal: f64,
}

pub async fn measure(bench: &mut Bench) -> Result<Measured> {
    let (some, many) = (bench.scale.files(135_000), bench.scale.files(810_000));
    let times = bench.scale.times(TIMES);
    let late = [
        Late { files: some, of_a_snapshot: OF_A_SNAPSHOT, times, goal: 500.0 },
        Late { files: some, of_a_snapshot: some, times, goal: 500.0 },
        Late { files: many, of_a_snapshot: many, times: 1, goal: 3_000.0 },
    ];
    let db = bench.built(Fixture::FiveMillion).await?;
    let table = db.table(SUBJECT).await?;
    // A time that no other row of the benchmark uses, and a `keep` by which nothing expires.
    let settings = steady_settings_at((bench.scale.today + 100) * DAY)?;
    govern(&db, &format!("{}d", 2 * DAYS)).await?;
    first_passes(&db, &settings).await?;
    database_time::log_statements(bench, &db).await?;
    let (mut findings, mut clocks) = (Vec::new(), Vec::new());
    let before = db.live_files(&table).await?;
    for late in &late {
        let (mut in_database, mut by_the_clock) = (Sample::default(), Sample::default());
        let mut next = Sample::default();
        for _ in 0..late.times {
            append(bench, &db, &table, late).await?;
            let (ms, clock) = timed(bench, &db, &settings).await?;
            in_database.push(ms);
            by_the_clock.push(clock);
            // The next pass has nothing to do if the first one has read everything.
            next.push(timed(bench, &db, &settings).await?.0);
        }
        clocks.push(ms(by_the_clock.median()));
        let snapshots = (late.files - 1) / late.of_a_snapshot + 1;
        let figure = in_database.median();
        findings.push(Finding {
            what: format!(
                "pass over {} late files in {}",
                grouped(late.files),
                if snapshots == 1 {
                    "one snapshot".to_owned()
                } else {
                    format!("{} snapshots", grouped(snapshots))
                }
            ),
            ours: spread(&in_database),
            beside: format!("{} the next pass", ms(next.median())),
            figure: format!("{}, {:.2} us a file", ms(figure), figure * 1e3 / late.files as f64),
            goal: format!("<= {} in the database", ms(late.goal)),
            verdict: Verdict::all(&[figure <= late.goal]),
        });
    }
    bench.remove(db).await?;
    Ok(Measured {
        title: "Late files",
        how: format!(
            "The files were committed after the last pass, with all rows that a commit writes, in \
             partitions that have not expired: equally many for each of {DAYS} days, in mixed order. The \
             table has {} other files, which the last pass has read. Neither VACUUM nor ANALYZE runs on \
             the new rows; a checkpoint precedes each pass. The times are those of one pass in the \
             database, measured as above. The next pass has nothing to do. By the clock: {}.",
            grouped(before),
            clocks.join(", "),
        ),
        findings,
    })
}

/// Commits the files.
async fn append(bench: &Bench, db: &Db, table: &TableIdentity, late: &Late) -> Result<()> {
    let oldest = bench.scale.oldest_day(DAYS);
    let (table_id, each, more) = (table.table_id, late.files / DAYS, late.files % DAYS);
    let files = Files {
        tuples: format!(
            "select {table_id}::bigint, d, array[d::text],
                    {each} + (d - {oldest} < {more})::int
             from generate_series({oldest}, {oldest} + {DAYS} - 1) d"
        ),
        of_a_snapshot: late.of_a_snapshot,
        days: 0,
        disorder: DAYS,
    };
    fill(&db.pool, table.catalog_id, &files).await?;
    let mut session = db.database().session().await?;
    bare::checkpoint(&mut session).await?;
    close(session).await;
    Ok(())
}

/// Runs a pass that drops nothing; returns its time in the database and by the clock.
async fn timed(bench: &Bench, db: &Db, settings: &Settings) -> Result<(f64, f64)> {
    let mark = database_time::mark(bench)?;
    let (report, took) = pass(db, settings).await?;
    let spent = database_time::since(bench, db, mark)?;
    ensure!(report.outcome == Outcome::NothingToDo, "{}", brief(&report));
    Ok((spent.ms, took.as_secs_f64() * 1e3))
}
