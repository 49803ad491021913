//! Measures the WAL that a pass itself writes, where the pass finds no new partition value and
//! drops nothing.

use anyhow::{Result, ensure};
use tailrace::catalog::connect::close;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::NewFile;

use super::Measured;
use crate::bare;
use crate::bench::{Bench, Db};
use crate::finding::{Finding, Verdict, grouped};
use crate::fixture::{CATALOG, NAMESPACE};
use crate::program::{brief, first_passes, govern, pass, settings};
use crate::scale::{DAYS, Fixture, SUBJECT};
use crate::statistics::Sample;

/// Passes of each kind.
const PASSES: usize = 7;

/// The number of files that a writer commits between two passes.
const FILES: usize = 270;

/// The goal, in bytes.
const GOAL: f64 = 10_000.0;

pub async fn measure(bench: &mut Bench) -> Result<Measured> {
    let db = bench.copy(Fixture::Million).await?;
    let lake = db.lake();
    let table = lake.open_catalog(CATALOG).await?.open_table(NAMESPACE, SUBJECT).await?;
    govern(&db, &bench.scale.keep(DAYS, 0)).await?;
    first_passes(&db, &settings()?).await?;
    let (mut idle, mut beside_files) = (Sample::default(), Sample::default());
    let day = bench.scale.oldest_day(DAYS) + DAYS - 1;
    for _ in 0..bench.scale.times(PASSES) {
        idle.push(written(&db).await?);
        let value = day.to_string();
        table.append((0..FILES).map(|_| NewFile::of([value.as_str()])).collect()).await?;
        beside_files.push(written(&db).await?);
    }
    bench.remove(db).await?;
    let bytes = |sample: &Sample| {
        let whole = |value: f64| grouped(value.round() as i64);
        format!(
            "{} bytes ({} to {})",
            whole(sample.median()),
            whole(sample.min()),
            whole(sample.max())
        )
    };
    Ok(Measured {
        title: "WAL of a pass",
        how: format!(
            "The WAL that the server writes during a pass, with the opening and the end of its sessions, \
             while nothing else uses the server. {} passes with nothing to do take turns with as many \
             passes that each follow a commit of {FILES} files of the newest day.",
            idle.len()
        ),
        findings: vec![Finding {
            what: format!("WAL of a pass that meets {FILES} new files and no new value"),
            ours: bytes(&beside_files),
            beside: format!("{} with nothing to do", bytes(&idle)),
            figure: format!("{} bytes at most", grouped(beside_files.max().max(idle.max()) as i64)),
            goal: "< 10 kB".to_owned(),
            verdict: Verdict::all(&[beside_files.median() < GOAL, idle.median() < GOAL]),
        }],
    })
}

/// The WAL of one pass that drops nothing, in bytes.
async fn written(db: &Db) -> Result<f64> {
    let mut session = db.database().session().await?;
    bare::checkpoint(&mut session).await?;
    let before = bare::wal(&mut session).await?;
    let (report, _) = pass(db, &settings()?).await?;
    let bytes = bare::wal(&mut session).await? - before;
    close(session).await;
    ensure!(report.outcome == Outcome::NothingToDo, "{}", brief(&report));
    Ok(bytes as f64)
}
