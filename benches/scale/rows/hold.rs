//! Measures the hold of the commit lock and the WAL of a drop, compared with the plain UPDATE of as
//! many rows.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tailrace::catalog::connect::close;
use tailrace::catalog::session::Session;
use tailrace::catalog::tables::TableIdentity;
use tailrace::catalog::tuples::TupleOfSpec;
use tailrace::drop::{DropOutcome, DropRequest, Limits, drop_tuples, drop_tuples_unwarmed};
use tailrace::rules::expiry::StoredTuple;

use super::{Measured, spread};
use crate::bare;
use crate::bench::Bench;
use crate::finding::{Finding, Verdict, grouped};
use crate::program::settings;
use crate::scale::{DAYS, Fixture, SUBJECT};
use crate::statistics::Sample;

/// Pairs of measurements, after one that does not count.
const PAIRS: usize = 9;

pub async fn measure(bench: &mut Bench) -> Result<Measured> {
    let db = bench.copy(Fixture::Million).await?;
    let table = db.table(SUBJECT).await?;
    let limits = settings()?.limits;
    let mut session = db.database().session().await?;
    bare::prepare(&mut session).await?;
    let mut days = many_file_days(bench);
    let (mut holds, mut bares) = (Sample::default(), Sample::default());
    let (mut our_wal, mut bare_wal) = (Sample::default(), Sample::default());
    let mut files = 0;
    for pair in 0..=bench.scale.times(PAIRS) {
        // The first of the two may have additional costs, so they take turns in being first.
        for ours in [pair % 2 == 0, pair % 2 != 0] {
            let days: Vec<i64> = days.by_ref().take(2).collect();
            let ids = db.file_ids(&table, &texts(&days)).await?;
            files = ids.len() as i64;
            bare::checkpoint(&mut session).await?;
            let before = bare::wal(&mut session).await?;
            let took = if ours {
                drop_days(&mut session, &table, &Days { days, files }, &limits, true).await?
            } else {
                bare::end_files(&mut session, table.catalog_id, &ids).await?
            };
            let wal = (bare::wal(&mut session).await? - before) as f64 / files as f64;
            if pair > 0 {
                let (times, bytes) =
                    if ours { (&mut holds, &mut our_wal) } else { (&mut bares, &mut bare_wal) };
                times.push_time(took);
                bytes.push(wal);
            }
        }
    }
    close(session).await;
    bench.remove(db).await?;
    let (ratio, wal_ratio) =
        (holds.median() / bares.median(), our_wal.median() / bare_wal.median());
    let per_file = |sample: &Sample| sample.median() * 1e3 / files as f64;
    let many = grouped(files);
    Ok(Measured {
        title: "Hold and WAL",
        how: format!(
            "tailrace drops two whole days with {many} files in all, as a pass does, with the planning of \
             the commit. The bare UPDATE ends the files of two other days of the same table: `BEGIN; \
             UPDATE hog_data_file SET end_snapshot ... WHERE data_file_id = ANY (...); COMMIT`. Both use \
             the same session and take turns, {} times each. Each follows a checkpoint, with every page \
             in shared_buffers. The lock hold lasts from the grant of the commit lock to the end of \
             COMMIT, as tailrace measures it. The bare UPDATE is timed from its start to the end of \
             COMMIT. Per file the two take {:.1} us and {:.1} us. One file in a hundred has a deletion \
             vector, which tailrace ends too and the bare UPDATE does not. The WAL is what the server \
             wrote during the drop or the UPDATE.",
            holds.len(),
            per_file(&holds),
            per_file(&bares),
        ),
        findings: vec![
            Finding {
                what: format!("lock hold, {many} files, warm, against the bare UPDATE"),
                ours: spread(&holds),
                beside: spread(&bares),
                figure: format!("{ratio:.2}"),
                goal: "ratio <= 1.10".to_owned(),
                verdict: Verdict::all(&[ratio <= 1.10]),
            },
            Finding {
                what: "WAL per file ended, against the bare UPDATE".to_owned(),
                ours: format!("{:.0} bytes", our_wal.median()),
                beside: format!("{:.0} bytes", bare_wal.median()),
                figure: format!("{wal_ratio:.3}"),
                goal: "ratio <= 1.05".to_owned(),
                verdict: Verdict::all(&[wal_ratio <= 1.05]),
            },
        ],
    })
}

/// The days of many files, oldest first; two of them are 8,000 files.
pub fn many_file_days(bench: &Bench) -> impl Iterator<Item = i64> + use<> {
    let oldest = bench.scale.oldest_day(DAYS);
    (oldest + 1..oldest + DAYS).step_by(2)
}

/// The days as stored partition values.
pub fn texts(days: &[i64]) -> Vec<String> {
    days.iter().map(i64::to_string).collect()
}

/// Whole days, and the exact number of their files.
pub struct Days {
    pub days: Vec<i64>,
    pub files: i64,
}

/// Drops the days as a pass does, and returns how long the lock was held. With `is_prewarmed` the pages are
/// prewarmed before.
pub async fn drop_days(
    session: &mut Session,
    table: &TableIdentity,
    Days { days, files }: &Days,
    limits: &Limits,
    is_prewarmed: bool,
) -> Result<Duration> {
    let tuples: Vec<_> = texts(days)
        .into_iter()
        .map(|text| TupleOfSpec {
            spec_id: 1,
            tuple: StoredTuple { keys: vec![0], values: vec![Some(text)] },
        })
        .collect();
    let lookup_keys = vec![0; tuples.len()];
    let request = DropRequest {
        table,
        tuples: &tuples,
        lookup_keys: &lookup_keys,
        policy: None,
        found: &[],
        found_below: 0,
        late: None,
        is_piece: false,
        fence: false,
        author: "benchmark",
        message: "benchmark",
    };
    let attempt = match is_prewarmed {
        true => drop_tuples(session, &request, limits).await,
        false => drop_tuples_unwarmed(session, &request, limits).await,
    };
    match attempt.result.context("the drop")? {
        DropOutcome::Dropped(receipt) => {
            ensure!(receipt.counts.files == *files, "{receipt:?}, not {files} files");
            Ok(attempt.lock_hold)
        }
        other => bail!("the drop ended with {other:?}"),
    }
}
