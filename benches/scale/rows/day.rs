//! What a daemon meets at midnight: one more day has expired.

use anyhow::{Result, ensure};

use super::{Measured, spread};
use crate::bench::{Bench, Db};
use crate::database_time;
use crate::finding::{Finding, Verdict, grouped, ms};
use crate::program::{brief, let_expire, pass, settings};
use crate::scale::{DAYS, Fixture, SUBJECT};
use crate::statistics::Sample;

/// How many such days are measured.
const TIMES: usize = 5;

/// What passes over one newly expired day each take.
#[derive(Default)]
pub struct NewDay {
    /// The whole pass by the clock.
    pub whole: Sample,
    /// The hold of the commit lock.
    pub hold: Sample,
    /// In the database.
    pub in_database: Sample,
}

pub async fn measure(bench: &mut Bench) -> Result<Measured> {
    let db = bench.copy(Fixture::Million).await?;
    let all = db.live_files(&db.table(SUBJECT).await?).await?;
    let oldest = bench.scale.oldest_day(DAYS);
    let files = bench.scale.files_of_day(0);
    // Those of few files; the pass before each drops the day of many that precedes it.
    let days = (0..DAYS).step_by(2).take(bench.scale.times(TIMES)).map(|place| oldest + place);
    let found = new_days(bench, &db, days, files).await?;
    bench.remove(db).await?;
    let (whole, hold) = (found.whole.median(), found.hold.median());
    Ok(Measured {
        title: "A newly expired day",
        how: format!(
            "The policy is set so that the day expires by the database's clock a few seconds later, a \
             pass deals with what has expired before, and once the day has, the next pass is timed \
             from its first session to the end of its last; {} days. In the database it takes {}.",
            found.whole.len(),
            spread(&found.in_database)
        ),
        findings: vec![Finding {
            what: format!("one newly expired day of {} files in {}", grouped(files), grouped(all)),
            ours: format!("{} whole pass", spread(&found.whole)),
            beside: format!("{} lock hold", spread(&found.hold)),
            figure: format!("{} and {}", ms(whole), ms(hold)),
            goal: "<= 60 ms whole pass, lock hold <= 30 ms".to_owned(),
            verdict: Verdict::all(&[whole <= 60.0, hold <= 30.0]),
        }],
    })
}

/// Lets one day after the other expire and times the pass that drops it. Each has so many files.
pub async fn new_days(
    bench: &Bench,
    db: &Db,
    days: impl Iterator<Item = i64>,
    files: i64,
) -> Result<NewDay> {
    let settings = settings()?;
    let mut found = NewDay::default();
    database_time::log_statements(bench, db).await?;
    for day in days {
        let_expire(db, day, &settings).await?;
        let mark = database_time::mark(bench)?;
        let (report, took) = pass(db, &settings).await?;
        let spent = database_time::since(bench, db, mark)?;
        let [snapshot] = report.snapshots.as_slice() else {
            anyhow::bail!("not one snapshot for one day: {}", brief(&report));
        };
        ensure!(snapshot.files_ended == files, "not {files} files: {}", brief(&report));
        found.whole.push_time(took);
        found.hold.push(snapshot.lock_hold_ms);
        found.in_database.push(spent.ms);
    }
    Ok(found)
}
