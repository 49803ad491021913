//! Measures a writer that commits regularly while a first pass drops a large backlog.

use std::time::Duration;

use anyhow::{Result, ensure};
use tailrace::sweep::report::TableReport;
use tailrace_kit::lake::{NewFile, Table};
use tokio_util::sync::CancellationToken;

use super::Measured;
use crate::bench::{Bench, Db};
use crate::finding::{Finding, Verdict, grouped, ms};
use crate::fixture::{CATALOG, NAMESPACE};
use crate::program::{govern, pass, settings};
use crate::scale::{DAYS, Fixture, SUBJECT};
use crate::statistics::{Hold, Sample, busiest_share};

/// The time between two commits of the writer.
const PERIOD: Duration = Duration::from_millis(200);
/// How many files each commit adds.
const FILES: usize = 50;
/// For how many seconds the writer is measured without a pass.
const ALONE: usize = 40;
/// The number of expired days.
const EXPIRED: i64 = 120;
/// The length of the time window of the lock share, in seconds.
const WINDOW: f64 = 60.0;

pub async fn measure(bench: &mut Bench) -> Result<Measured> {
    let db = bench.copy(Fixture::Million).await?;
    let lake = db.lake();
    let table = lake.open_catalog(CATALOG).await?.open_table(NAMESPACE, SUBJECT).await?;
    let value = (bench.scale.today - 1).to_string();

    let stop = CancellationToken::new();
    let alone = {
        let writing = tokio::spawn(write(table.clone(), value.clone(), stop.clone()));
        tokio::time::sleep(Duration::from_secs(bench.scale.times(ALONE) as u64)).await;
        stop.cancel();
        writing.await??
    };

    govern(&db, &bench.scale.keep(DAYS, EXPIRED)).await?;
    let settings = settings()?;
    let stop = CancellationToken::new();
    let writing = tokio::spawn(write(table, value, stop.clone()));
    let (report, took) = pass(&db, &settings).await?;
    stop.cancel();
    let beside = writing.await??;
    let begun = begun(&db, &report).await?;
    lake.pool().close().await;
    bench.remove(db).await?;

    let ended = report.counts().files;
    ensure!(ended == bench.scale.files(EXPIRED * 2_500), "{ended} files were ended");
    let held: Sample = report.snapshots.iter().map(|snapshot| snapshot.lock_hold_ms).collect();
    let holds: Vec<Hold> = begun
        .iter()
        .zip(&report.snapshots)
        .map(|(from, snapshot)| Hold { from: *from, to: from + snapshot.lock_hold_ms / 1e3 })
        .collect();
    let share = busiest_share(&holds, WINDOW);
    let bound = alone.percentile(0.99) + 1.2 * held.max();
    let p99 = beside.percentile(0.99);
    let both = |sample: &Sample| {
        format!("p50 {}, p99 {}", ms(sample.median()), ms(sample.percentile(0.99)))
    };
    Ok(Measured {
        title: "A writer beside a first pass",
        how: format!(
            "A writer commits {FILES} files to the same table every {} ms, in a session of its own: {} \
             commits without a pass and {} during the pass. A commit is timed from the moment at which it \
             was due, so a commit that waits also makes the commits behind it late. The pass took {:.0} s \
             for {} snapshots, with a median lock hold of {}. During the whole pass the lock was held \
             {:.1}% of the time. The lock share above is that of the busiest {WINDOW} s, by the lock holds \
             that tailrace measured.",
            PERIOD.as_millis(),
            alone.len(),
            beside.len(),
            took.as_secs_f64(),
            held.len(),
            ms(held.median()),
            busiest_share(&holds, took.as_secs_f64()) * 100.0,
        ),
        findings: vec![Finding {
            what: format!(
                "first pass, {} expired files, a writer committing {FILES} files 5 times a second",
                grouped(ended)
            ),
            ours: format!("writer during the pass: {}", both(&beside)),
            beside: format!("writer alone: {}", both(&alone)),
            figure: format!(
                "p99 {} of at most {}, largest hold {}, lock share {:.2}%",
                ms(p99),
                ms(bound),
                ms(held.max()),
                share * 100.0,
            ),
            goal: format!(
                "p99 <= alone + 1.2 x the largest hold; share <= {:.0}%",
                settings.lock_duty * 100.0
            ),
            verdict: Verdict::all(&[p99 <= bound, share <= settings.lock_duty]),
        }],
    })
}

/// When each commit of a pass held the lock, in seconds: the time of its snapshot, which every commit takes at
/// the same step.
async fn begun(db: &Db, report: &TableReport) -> Result<Vec<f64>> {
    let ids: Vec<i64> = report.snapshots.iter().map(|snapshot| snapshot.snapshot_id).collect();
    let query = "select extract(epoch from snapshot_time)::float8 from hog_snapshot
         where snapshot_id = any($1) order by snapshot_id";
    let begun: Vec<f64> = sqlx::query_scalar(query).bind(&ids).fetch_all(&db.pool).await?;
    ensure!(begun.len() == ids.len(), "{} of {} snapshots are there", begun.len(), ids.len());
    Ok(begun)
}

/// Commits at regular times until `stop`; returns how long each commit took.
async fn write(table: Table, value: String, stop: CancellationToken) -> Result<Sample> {
    let mut ticks = tokio::time::interval(PERIOD);
    // Missed commits are made at once.
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
    let mut times = Sample::default();
    loop {
        let due = tokio::select! {
            due = ticks.tick() => due,
            () = stop.cancelled() => return Ok(times),
        };
        let files = (0..FILES).map(|_| NewFile::of([value.as_str()])).collect();
        table.append(files).await?;
        times.push_time(due.elapsed());
    }
}
