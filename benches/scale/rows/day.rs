//! Measures a daemon's pass at midnight: one more day has expired.

use anyhow::{Result, ensure};

use super::{Measured, spread};
use crate::bench::{Bench, Db};
use crate::database_time;
use crate::finding::{Finding, Verdict, grouped, ms};
use crate::program::{around_midnight, brief, govern, pass};
use crate::scale::{DAYS, Fixture, SUBJECT};
use crate::statistics::Sample;

/// How many such days are measured.
const TIMES: usize = 5;

/// The times of passes that each drop one newly expired day.
#[derive(Default)]
pub struct NewDay {
    /// The whole pass by the clock.
    pub whole: Sample,
    /// The hold of the commit lock.
    pub hold: Sample,
    /// The time in the database.
    pub in_database: Sample,
}

pub async fn measure(bench: &mut Bench) -> Result<Measured> {
    let db = bench.copy(Fixture::Million).await?;
    let all = db.live_files(&db.table(SUBJECT).await?).await?;
    let files = bench.scale.files_of_day(0);
    govern(&db, &bench.scale.keep(DAYS, 0)).await?;
    // The days of few files. The pass before each one drops the preceding day, which has many files.
    let places = (0..DAYS).step_by(2).take(bench.scale.times(TIMES));
    let found = new_days(bench, &db, places, files).await?;
    bench.remove(db).await?;
    let (whole, hold) = (found.whole.median(), found.hold.median());
    Ok(Measured {
        title: "A newly expired day",
        how: format!(
            "One pass, whose time is set to one minute before the day expires, does all other work. The \
             time of the next pass is set to one minute after the day expires. This pass is measured, \
             from the opening of its first session to the end of its last, with the settings of a \
             daemon, for {} days. In the database it takes {}.",
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

/// Lets days expire, given by their places from the oldest on, and times the pass that drops each. Each day
/// has `files` files. The policy must be one by which no day has expired yet.
pub async fn new_days(
    bench: &Bench,
    db: &Db,
    places: impl Iterator<Item = i64>,
    files: i64,
) -> Result<NewDay> {
    let mut found = NewDay::default();
    database_time::log_statements(bench, db).await?;
    for place in places {
        let (before, after) = around_midnight(bench.scale, place)?;
        pass(db, &before).await?;
        let mark = database_time::mark(bench)?;
        let (report, took) = pass(db, &after).await?;
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
