//! Measures passes after a change of `keep`, which makes other partitions due and changes nothing
//! else.

use anyhow::{Result, ensure};
use tailrace::sweep::Settings;
use tailrace_kit::lake::NewFile;

use super::{Measured, spread};
use crate::bench::{Bench, Db};
use crate::calendar::{self, Writes};
use crate::database_time;
use crate::finding::{Finding, Verdict, grouped, ms};
use crate::fixture::{CATALOG, NAMESPACE};
use crate::program::{DAY, brief, first_passes, govern, pass, steady_settings_at};
use crate::scale::{DAYS, Fixture, HOURS, SUBJECT, Scale};
use crate::statistics::Sample;

/// Rounds of measurements.
const ROUNDS: usize = 3;

/// The files of each of the days that are dropped here.
const FILES_OF_A_DAY: i64 = 10;

/// The most milliseconds that a pass may take longer after a change of `keep`.
const GOAL: f64 = 50.0;

/// Partitions that expire one after another, with a moment before the first expires and the `keep` for it.
struct Partitions {
    /// The name of one such partition: day or hour.
    name: &'static str,
    /// The seconds that each partition covers.
    seconds: i64,
    /// The letter of this unit in `keep`.
    letter: char,
    /// The `keep`, in this unit, by which the oldest partition expires a minute after the moment.
    keep: i64,
    /// The files of each partition.
    files: i64,
}

impl Partitions {
    /// The `keep` by which `expired` more partitions have expired.
    fn keep(&self, expired: i64) -> String {
        format!("{}{}", self.keep - expired, self.letter)
    }

    /// The settings of passes at the time at which so many more partitions have expired.
    fn at(&self, scale: Scale, expired: i64) -> Result<Settings> {
        steady_settings_at((scale.today + 1) * DAY + expired * self.seconds - 60)
    }
}

/// The times of passes, by what happened before them.
#[derive(Default)]
struct Found {
    /// Nothing happened.
    idle: Passes,
    /// `keep` was changed, and nothing more has expired by it.
    changed: Passes,
    /// The time came at which one more partition expires.
    due_by_time: Passes,
    /// `keep` was changed, and one more partition has expired by it.
    due_by_keep: Passes,
}

/// Passes of one kind.
#[derive(Default)]
struct Passes {
    by_the_clock: Sample,
    in_database: Sample,
    /// The most rows that a pass wrote to the calendar.
    written: i64,
    gone: i64,
}

pub async fn measure(bench: &mut Bench) -> Result<Measured> {
    let rounds = bench.scale.times(ROUNDS);
    let db = bench.built(Fixture::FiveMillion).await?;
    // The drop of a day of the fixture takes so long that nothing else would be visible in the times.
    let small = 2 * rounds as i64;
    append_small_days(&db, bench.scale, small).await?;
    let days = Partitions {
        name: "day",
        seconds: DAY,
        letter: 'd',
        keep: DAYS + small + 1,
        files: FILES_OF_A_DAY,
    };
    let by_day = changes(bench, &db, &days, rounds).await?;
    let many = db.live_files(&db.table(SUBJECT).await?).await?;
    db.leave().await;

    let db = bench.built(Fixture::Hours).await?;
    let files = bench.scale.files(20);
    let hours = Partitions { name: "hour", seconds: 3_600, letter: 'h', keep: HOURS + 47, files };
    let by_hour = changes(bench, &db, &hours, rounds).await?;
    bench.remove(db).await?;

    let million = format!("{} files by day", grouped(many));
    let values = format!("{} values by hour", grouped(HOURS));
    let mut findings = told(&million, &days, &by_day);
    findings.extend(told(&values, &hours, &by_hour));
    Ok(Measured {
        title: "A changed keep",
        how: format!(
            "Passes of four kinds take turns, in {rounds} rounds. First, one after `keep` was made longer \
             and one after it was made shorter again; nothing expires by either. Second, one with nothing \
             changed. Third, one at the time at which one more partition expires ({FILES_OF_A_DAY} files \
             of a day, {files} of an hour). Fourth, one after `keep` was changed so that one more partition \
             has expired. Whole passes are timed by the clock. In the database the four kinds take {} by \
             day and {} by hour. Calendar rows are counted by the transactions that wrote them, with the \
             change of the policy. No full pass comes due meanwhile.",
            in_database(&by_day),
            in_database(&by_hour),
        ),
        findings,
    })
}

fn in_database(found: &Found) -> String {
    let all = [&found.changed, &found.idle, &found.due_by_time, &found.due_by_keep];
    all.map(|passes| ms(passes.in_database.median())).join(", ")
}

/// The lines of the table.
fn told(subject: &str, partitions: &Partitions, found: &Found) -> Vec<Finding> {
    let line = |what: String, ours: &Passes, beside: &Passes, gone: i64| {
        let more = ours.by_the_clock.median() - beside.by_the_clock.median();
        Finding {
            what,
            ours: spread(&ours.by_the_clock),
            beside: spread(&beside.by_the_clock),
            figure: format!(
                "{} more, {} calendar rows written and {} beside it",
                ms(more),
                ours.written,
                beside.written
            ),
            // If some of what a calendar row covers is dropped, the row is written again.
            goal: format!("<= {GOAL} ms more, no calendar row more written"),
            verdict: Verdict::all(&[
                more <= GOAL,
                ours.written <= beside.written,
                ours.gone <= gone,
            ]),
        }
    };
    vec![
        line(
            format!("pass after a changed keep, {subject}, against one with nothing to do"),
            &found.changed,
            &found.idle,
            0,
        ),
        line(
            format!(
                "pass after a changed keep that drops one {} of {} files, against its drop by time",
                partitions.name, partitions.files
            ),
            &found.due_by_keep,
            &found.due_by_time,
            1,
        ),
    ]
}

/// Adds days before the oldest one, each in a commit of its own.
async fn append_small_days(db: &Db, scale: Scale, days: i64) -> Result<()> {
    let lake = db.lake();
    let table = lake.open_catalog(CATALOG).await?.open_table(NAMESPACE, SUBJECT).await?;
    let oldest = scale.oldest_day(DAYS);
    for day in oldest - days..oldest {
        let value = day.to_string();
        let files = (0..FILES_OF_A_DAY).map(|_| NewFile::of([value.as_str()])).collect();
        table.append(files).await?;
    }
    Ok(())
}

async fn changes(bench: &Bench, db: &Db, partitions: &Partitions, rounds: usize) -> Result<Found> {
    let scale = bench.scale;
    govern(db, &partitions.keep(0)).await?;
    let mut settings = partitions.at(scale, 0)?;
    first_passes(db, &settings).await?;
    database_time::log_statements(bench, db).await?;
    let mut found = Found::default();
    // As many partitions expire by a changed `keep` as by time.
    for expired in 0..rounds as i64 {
        let (now, longer) = (partitions.keep(expired), partitions.keep(expired - 1));
        for keep in [longer, now] {
            timed(bench, db, &settings, Some(&keep), &mut found.changed, 0).await?;
        }
        timed(bench, db, &settings, None, &mut found.idle, 0).await?;
        settings = partitions.at(scale, expired + 1)?;
        timed(bench, db, &settings, None, &mut found.due_by_time, partitions.files).await?;
        let keep = partitions.keep(expired + 1);
        let due = &mut found.due_by_keep;
        timed(bench, db, &settings, Some(&keep), due, partitions.files).await?;
    }
    Ok(found)
}

/// Runs one pass, after a change of `keep` if one is given. It must drop this number of files.
async fn timed(
    bench: &Bench,
    db: &Db,
    settings: &Settings,
    keep: Option<&str>,
    passes: &mut Passes,
    files: i64,
) -> Result<()> {
    let written = calendar::mark(&db.pool).await?;
    if let Some(keep) = keep {
        govern(db, keep).await?;
    }
    let mark = database_time::mark(bench)?;
    let (report, took) = pass(db, settings).await?;
    let spent = database_time::since(bench, db, mark)?;
    let dropped = report.counts().files;
    ensure!(dropped == files, "{} in place of {files}", brief(&report));
    passes.by_the_clock.push_time(took);
    passes.in_database.push(spent.ms);
    let Writes { written, gone } = calendar::writes_since(&db.pool, written).await?;
    passes.written = passes.written.max(written);
    passes.gone = passes.gone.max(gone);
    Ok(())
}
