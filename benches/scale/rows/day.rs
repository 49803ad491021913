//! What a daemon meets at midnight: one more day has expired.

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
    let files = bench.scale.files_of_day(0);
    govern(&db, &bench.scale.keep(DAYS, 0)).await?;
    // Those of few files; the pass before each drops the day of many that precedes it.
    let places = (0..DAYS).step_by(2).take(bench.scale.times(TIMES));
    let found = new_days(bench, &db, places, files).await?;
    bench.remove(db).await?;
    let (whole, hold) = (found.whole.median(), found.hold.median());
    Ok(Measured {
        title: "A newly expired day",
        how: format!(
            "A pass that decides by the time a minute before the day expires has dealt with all else, and \
             the next one decides by that a minute after: it is timed from its first session to the end \
             of its last, with the settings of a daemon; {} days. In the database it takes {}.",
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

/// Lets days expire, by their places from the oldest on, and times the pass that drops each. Each
/// has so many files. The policy is that by which none has expired yet.
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
