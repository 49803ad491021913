//! A pass over all catalogs.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::catalog::{Another, CatalogSweep};
use super::clocks::{log_apart, read_clock};
use super::context::{Budget, Context, GivesWay, Progress};
use super::house::keep_house;
use super::intake::{CatalogIntake, take_in};
use super::pacing::Pacing;
use super::report::{Outcome, PassReport, TableReport, Waits, milliseconds};
use super::settings::Kind;
use super::settings::{Scope, Settings};
use super::waits::{count_waits, release_ended};
use crate::catalog::connect::{Database, close};
use crate::catalog::errors::is_connection_error;
use crate::catalog::session::Session;
use crate::catalog::wakes::first_due;
use crate::events;
use crate::guards::hold::Hold;
use crate::guards::{hold, pause};
use crate::rules::fair_queue::{FairQueue, Step, TimeSlice};
use crate::rules::instant::UtcInstant;

/// What is not due ends so large a part of `schedule.lag` after something has fallen due: rows that are due wait
/// for others as long anyway, and a full scan would get nowhere where one falls due every second.
const GIVES_WAY_AFTER: f64 = 0.25;

/// The database answered in this pass, and was lost before any catalog was worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the database was lost at the beginning of the pass")]
pub struct LostOnTheWay;

/// Runs one pass that shares nothing with another: see [`run_paced_pass`].
///
/// # Errors
/// As there.
pub async fn run_pass(
    database: &Database,
    settings: &Settings,
    scope: &Scope,
    stop: &CancellationToken,
    progress: &(dyn Fn(Progress<'_>) + Send + Sync),
) -> anyhow::Result<PassReport> {
    run_paced_pass(database, settings, scope, stop, progress, &Pacing::default()).await
}

/// Runs one pass: every live table in scope that has a policy. First it is asked what of all of them has work
/// ([`triage`](super::triage)); only those tables are worked on, where the lease of their catalog can be had, and the
/// others have the outcome of their last pass. The time is read once, from the database; where it cannot be trusted in
/// a catalog, nothing is done there, and nothing noted but that.
///
/// Up to `settings.parallel_catalogs` catalogs are worked on side by side, each with a session of
/// its own. Takes no lock but their leases and, for each commit, the catalog's commit lock,
/// at the pace that `pacing` keeps. Once `stop` is cancelled, or the pass has run for
/// `settings.max_duration` by the clock of `pacing`, no commit starts. One table's or catalog's
/// failure is in the report and stops no other.
///
/// # Errors
/// The database is away ([`LostOnTheWay`] where it answered at first), our schema is not there, or the
/// scope names what is not there.
pub async fn run_paced_pass(
    database: &Database,
    settings: &Settings,
    scope: &Scope,
    stop: &CancellationToken,
    progress: &(dyn Fn(Progress<'_>) + Send + Sync),
    pacing: &Pacing,
) -> anyhow::Result<PassReport> {
    let started = pacing.now();
    // A clock that cannot tell so late a time ends no pass within anybody's patience.
    let ends = started.checked_add(settings.max_duration).unwrap_or(started);
    let budget = Budget { slice_ends: ends, pass_ends: ends };
    let mut control = database.session().await?;
    let first_looks = async {
        let clock = read_clock(&mut control, settings).await?;
        log_apart(&clock, settings.max_clock_skew);
        // Not by a clock that is in doubt: what was let go by it would stay so when it is right again.
        let is_trusted = clock.apart(settings.max_clock_skew).is_none();
        let is_regular = settings.kind == Kind::Regular && is_trusted;
        let pauses = pause::all(&mut control).await?;
        let mut holds = hold::all(&mut control).await?;
        let intake = take_in(&mut control, settings, scope, &clock).await?;
        let is_over = |hold: &Hold| hold.until.is_some_and(|until| until <= clock.database);
        let may_go = |hold: &&Hold| is_over(hold) && !intake.untouched.contains(&hold.catalog_id);
        let ended: Vec<i64> = holds.iter().filter(may_go).map(|hold| hold.hold_id).collect();
        if is_regular && !ended.is_empty() {
            release_ended(&mut control, &ended).await;
        }
        holds.retain(|hold| !is_over(hold));
        let waits = count_waits(&mut control).await?;
        anyhow::Ok((clock, intake, pauses, holds.len(), waits))
    };
    let (clock, intake, pauses, holds, waits) =
        first_looks.await.map_err(|error| match is_connection_error(&error) {
            true => error.context(LostOnTheWay),
            false => error,
        })?;
    let (now, max_skew) = (clock.database, settings.max_clock_skew);
    tracing::info!(
        event = events::PASS_STARTED,
        as_of = %now, catalogs = intake.known,
        "A pass began"
    );
    if settings.kind == Kind::Regular && clock.apart(max_skew).is_none() {
        keep_house(&mut control, settings, now, &intake.untouched).await;
    }
    let gives_way = gives_way(&mut control, settings, now, started).await;
    let rest_began = OnceLock::new();
    close(control).await;

    let context = Context {
        now,
        began: started,
        clock,
        settings,
        stop,
        progress,
        pacing,
        budget,
        lock_tries: 1,
        went_through: false,
        done: None,
        through: Step::Rest,
        first_waiting: &|| None,
        gives_way,
        rest_began: &rest_began,
    };
    let with_work = intake.catalogs.iter().enumerate().filter(|(_, catalog)| catalog.has_work());
    let mut with_work: Vec<_> = with_work.collect();
    with_work.sort_by_key(|(_, catalog)| Reverse(catalog.overdue()));
    let sweeps = with_work
        .into_iter()
        .map(|(place, it)| (it.first_step(), (place, CatalogSweep::new(it, scope))));
    let swept = side_by_side(database, sweeps.collect(), &context).await;
    let (report, unchanged) = reported(now, &intake.catalogs, swept);
    let report = PassReport { pauses, holds, waits, ..report };
    let took = pacing.now().saturating_duration_since(started);
    log_finished(&report, unchanged, took, stop.is_cancelled(), context.pass_is_over());
    Ok(report)
}

/// When what is not due is to end: a while after the first row falls due that a daemon wakes for, and that was not
/// when the pass began. Where that is unknown nothing gives way.
async fn gives_way(
    control: &mut Session,
    settings: &Settings,
    now: UtcInstant,
    started: Instant,
) -> Option<GivesWay> {
    let lag = settings.wakes_within?;
    let until = now.plus(settings.max_duration);
    let due = first_due(control, now, until, settings.every).await;
    let due = due.inspect_err(|error| {
        tracing::debug!(%error, "it could not be read when the next partition falls due");
    });
    let first = due.ok()?.into_iter().filter(|due| !due.was_due).map(|due| due.at).min()?;
    let after = lag.mul_f64(GIVES_WAY_AFTER);
    let at = started.checked_add(first.distance(now))?.checked_add(after)?;
    Some(GivesWay { at, after })
}

/// Works on catalogs, so many at a time, until none has anything to do or the pass ends. They
/// come back in no order, each with its place.
async fn side_by_side<'a>(
    database: &Database,
    sweeps: Vec<(Step, (usize, CatalogSweep<'a>))>,
    context: &Context<'_>,
) -> Vec<(usize, CatalogSweep<'a>)> {
    let at_once = context.settings.parallel_catalogs.clamp(1, sweeps.len().max(1));
    let waiting = Mutex::new(FairQueue::new(sweeps));
    let first_waiting = || locked(&waiting).first_step();
    let lane = || async {
        let mut done = Vec::new();
        while !context.stop.is_cancelled() {
            let next = locked(&waiting).next(context.left(), at_once);
            let Some(TimeSlice { whose: (place, mut sweep), step, share }) = next else { break };
            if step == Step::Rest && context.gives_way() {
                sweep.gave_way = true;
                done.push((place, sweep));
                continue;
            }
            let slice = Context { first_waiting: &first_waiting, ..context.for_time_slice(share) };
            match sweep.run_time_slice(database, &slice).await {
                Some(Another::GoesOn(step)) => locked(&waiting).go_on(step, (place, sweep)),
                Some(Another::Again(step)) => locked(&waiting).again(step, (place, sweep)),
                None => done.push((place, sweep)),
            }
        }
        done
    };
    let done = join_all((0..at_once).map(|_| lane())).await;
    let left = waiting.into_inner().unwrap_or_else(PoisonError::into_inner).left();
    done.into_iter().flatten().chain(left).collect()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What came of all catalogs, in their order; and how many tables had no work.
fn reported(
    as_of: UtcInstant,
    catalogs: &[CatalogIntake],
    sweeps: Vec<(usize, CatalogSweep<'_>)>,
) -> (PassReport, usize) {
    let mut report = PassReport {
        as_of,
        tables: Vec::new(),
        pauses: Vec::new(),
        holds: 0,
        waits: Waits::default(),
        skipped_catalogs: Vec::new(),
        failed_catalogs: Vec::new(),
        gave_way: false,
    };
    let mut unchanged = 0;
    let mut sweeps: BTreeMap<usize, CatalogSweep<'_>> = sweeps.into_iter().collect();
    for (place, catalog) in catalogs.iter().enumerate() {
        let mut tables = catalog.left_out.clone();
        let (mut worked, mut gave_way) = (0, false);
        if let Some(mut sweep) = sweeps.remove(&place) {
            sweep.finish();
            gave_way = sweep.gave_way;
            report.gave_way |= gave_way;
            worked = sweep.reports.len();
            // One that was left out and was worked on all the same has its own report.
            tables.extend(sweep.reports);
            report.failed_catalogs.extend(sweep.failure);
            if sweep.is_skipped {
                report.skipped_catalogs.push(catalog.catalog.name.clone());
            }
        }
        unchanged += tables.len() - worked;
        if gave_way {
            for (place, identity) in &catalog.with_work {
                let not_reached = || TableReport::new(identity, Outcome::Partial, None);
                tables.entry(*place).or_insert_with(not_reached);
            }
        }
        report.tables.extend(tables.into_values());
    }
    (report, unchanged)
}

fn log_finished(
    report: &PassReport,
    tables_unchanged: usize,
    took: Duration,
    stopped: bool,
    out_of_time: bool,
) {
    let counts = report.counts();
    tracing::info!(
        event = events::PASS_FINISHED,
        as_of = %report.as_of,
        tables = report.tables.len(),
        tables_unchanged,
        tables_failed = report.failures(),
        catalogs_failed = report.failed_catalogs.len(),
        catalogs_skipped = report.skipped_catalogs.len(),
        snapshots = report.tables.iter().map(|table| table.snapshots.len()).sum::<usize>(),
        files_ended = counts.files,
        delete_files_ended = counts.delete_files,
        records = counts.records,
        bytes = counts.bytes,
        stopped,
        out_of_time,
        gave_way = report.gave_way,
        pauses = report.pauses.len(),
        holds = report.holds,
        pending_policies = report.waits.pending_policies,
        blast_radius_files = report.waits.blast_radius_files,
        duration_ms = milliseconds(took),
        "A pass finished"
    );
}
