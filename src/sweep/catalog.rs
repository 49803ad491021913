//! A pass over one catalog that has work: its tables with work one after another, the most overdue first.
//!
//! A table may have several time slices in a pass, and the catalog several sessions. The lease is free
//! between them: another daemon may work on the table, a policy may change, files may be added. So a time
//! slice uses nothing that an earlier one found: it reads the policy, the specs and the memory again. Three
//! things are carried over: the report, how far the steps have come, and the shape and `schema_version` from
//! before the first time slice. Those are older, so they can bring work, and they never hide any.

mod begin;
mod outcome;

use super::clocks::Standing;
use super::context::{Context, Progress};
use super::intake::{CatalogIntake, Governed};
use super::lease::LeasedSession;
use super::plan::NOT_PARQUET;
use super::report::{CatalogFailure, Outcome, TableReport};
use super::settings::Scope;
use super::table::sweep_table;
use crate::catalog::connect::Database;
use crate::catalog::errors::{describe, is_connection_error};
use crate::catalog::restore::is_whole;
use crate::catalog::tables::{Catalog, LiveTable};
use crate::events;
use crate::policy::Policy;
use crate::policy::effective;
use crate::rules::fair_queue::{Came, FairQueue, Step, Steps, TimeSlice};
use begin::begin;
use outcome::{Noted, log_outcome, record_outcome};

/// How often a commit asks for the commit lock. Where a table did not get it so, the tables after
/// it ask once each: they would wait for the same one.
const LOCK_TRIES: u32 = 5;

/// Why nothing is done in a catalog that lacks the row of its newest snapshot.
const NOT_WHOLE: &str = "hog_snapshot has no row of the catalog's newest snapshot \
     (hog_catalog.last_snapshot_id): the catalog is being restored, or is damaged; nothing is done in it \
     until the row is there";

/// The work of a pass on one catalog, in one time slice or several.
pub struct CatalogSweep<'a> {
    pub catalog: &'a Catalog,
    /// What came of its tables, in no order; each with its place by namespace and name.
    pub reports: Vec<(usize, TableReport)>,
    /// Another daemon works on it.
    pub is_skipped: bool,
    /// Why it was not finished.
    pub failure: Option<CatalogFailure>,
    intake: &'a CatalogIntake,
    scope: &'a Scope,
    begun: Option<Begun>,
    lock_tries: u32,
    /// It gave way to what fell due meanwhile, with something left to do.
    pub gave_way: bool,
    /// The tables that did.
    aside: Vec<QueuedTable>,
}

/// When a catalog is to have another time slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Another {
    /// In this round, with this step.
    GoesOn(Step),
    /// In the next one.
    Again(Step),
}

/// A catalog that was looked at.
struct Begun {
    clock: Standing,
    /// Read before anything of a table was.
    schema_version: i64,
    tables: FairQueue<QueuedTable>,
}

/// A table that waits for a time slice.
struct QueuedTable {
    governed: Governed,
    table: LiveTable,
    steps: Steps,
    /// The last step that this pass is through with.
    done: Option<Step>,
    /// Its shape before it was worked on.
    shape: Option<String>,
    /// What came of the time slices that it had.
    so_far: Option<TableReport>,
    /// A session was lost in one of them: what it had looked at by then is not remembered.
    is_lost: bool,
    /// The revisions of the policy and of guards by which the first of them went.
    by: Option<(i64, i64)>,
}

impl QueuedTable {
    /// What is done of it next, after a time slice from one step through another that came so far. If a table
    /// could not drop what is due, its late files are still read.
    fn next(&self, step: Step, through: Step, came: Came, report: &TableReport) -> Option<Another> {
        match report.outcome {
            // A table with an error waits for something that another time slice cannot change.
            Outcome::Partial if report.error.is_none() => Some(Another::Again(came.next(step))),
            Outcome::Gone | Outcome::PolicyChanged => None,
            _ if came.through >= Some(through) => self.steps.after(through).map(Another::GoesOn),
            _ => (through == Step::Due && self.steps.late).then_some(Another::GoesOn(Step::Late)),
        }
    }
}

impl<'a> CatalogSweep<'a> {
    /// Nothing done yet.
    pub fn new(intake: &'a CatalogIntake, scope: &'a Scope) -> Self {
        CatalogSweep {
            catalog: &intake.catalog,
            intake,
            reports: Vec::new(),
            is_skipped: false,
            failure: None,
            scope,
            begun: None,
            lock_tries: LOCK_TRIES,
            gave_way: false,
            aside: Vec::new(),
        }
    }

    /// Works until all is done, the time slice is over, or somebody waits with an earlier step than any of its tables,
    /// with a session of its own that has the lease. `None` where another time slice would find nothing to do. Errors
    /// end up in `failure`.
    pub async fn run_time_slice(
        &mut self,
        database: &Database,
        context: &Context<'_>,
    ) -> Option<Another> {
        match self.lease_and_work(database, context).await {
            Ok(another) => another,
            Err(error) => {
                let away = is_connection_error(&error);
                let error = describe(&error);
                tracing::error!(
                    event = events::CATALOG_FAILED,
                    catalog = self.catalog.name,
                    error,
                    "A catalog failed"
                );
                let catalog = self.catalog.name.clone();
                self.failure = Some(CatalogFailure { catalog, error, away });
                None
            }
        }
    }

    async fn lease_and_work(
        &mut self,
        database: &Database,
        context: &Context<'_>,
    ) -> anyhow::Result<Option<Another>> {
        let Some(mut session) = LeasedSession::open(database, self.catalog.catalog_id).await?
        else {
            // Whoever has it after our first time slice goes on with it.
            if self.begun.is_none() {
                self.is_skipped = true;
                tracing::info!(
                    event = events::CATALOG_SKIPPED,
                    catalog = self.catalog.name,
                    "Another daemon works on this catalog"
                );
            }
            return Ok(None);
        };
        let worked = self.work(&mut session, context).await;
        session.close().await;
        worked
    }

    async fn work(
        &mut self,
        session: &mut LeasedSession<'_>,
        context: &Context<'_>,
    ) -> anyhow::Result<Option<Another>> {
        let begun = match &mut self.begun {
            Some(begun) => begun,
            begun @ None => {
                let whole = is_whole(session.connection(), self.catalog.catalog_id).await?;
                anyhow::ensure!(whole, NOT_WHOLE);
                begun.insert(begin(session, self.intake, self.scope, context).await?)
            }
        };
        while !context.stop.is_cancelled() && begun.tables.has_more() {
            let (left, others) = (context.left(), (context.first_waiting)());
            let first = begun.tables.first_step().unwrap_or(Step::Rest);
            if left.is_zero() && !context.pass_is_over() {
                return Ok(Some(Another::Again(first)));
            }
            if others.is_some_and(|other| other < first) {
                return Ok(Some(Another::GoesOn(first)));
            }
            if first == Step::Rest && context.gives_way() {
                self.gave_way = true;
                self.aside.extend(begun.tables.take(Step::Rest));
                continue;
            }
            let Some(TimeSlice { whose: mut queued, step, share }) = begun.tables.next(left, 1)
            else {
                break;
            };
            let earliest = others.into_iter().chain(begun.tables.first_step()).min();
            let through = match context.settings.is_wake() {
                true => Step::Due,
                false => step.max(earliest.unwrap_or(Step::Rest)),
            };
            let for_table = Context {
                lock_tries: self.lock_tries,
                went_through: queued
                    .so_far
                    .as_ref()
                    .is_some_and(|report| !report.snapshots.is_empty()),
                done: queued.done,
                through,
                ..context.for_time_slice(share)
            };
            if step == Step::Rest {
                context.begin_rest();
            }
            (context.progress)(Progress::Table(&queued.table.identity));
            let swept = match &begun.clock.refused {
                Some(refused) => Ok(Swept::only(refused.report(&queued.table.identity))),
                None => sweep_one(session, &queued.table, &for_table).await,
            };
            let Swept { report, policy, came, is_lost } = match swept {
                Ok(swept) => swept,
                Err(error) => {
                    begun.tables.again(step, queued);
                    return Err(error);
                }
            };
            // A later one that goes by others does not repeat the steps of the first.
            let by = policy.as_ref().map(|policy| (policy.revision, policy.guards.revision));
            queued.is_lost |= is_lost || queued.by.is_some_and(|first| Some(first) != by);
            queued.by = queued.by.or(by);
            let Some(report) = TableReport::in_slices(queued.so_far.take(), report) else {
                continue;
            };
            self.lock_tries = match report.outcome {
                Outcome::LockTimeout => 1,
                _ if report.snapshots.is_empty() => self.lock_tries,
                _ => LOCK_TRIES,
            };
            let is_partial = report.outcome == Outcome::Partial;
            self.gave_way |=
                came.is_at_rest && context.gives_way() && (is_partial || came.owes_rest);
            queued.steps.rest |= came.owes_rest && !context.settings.is_wake();
            let next = match begun.clock.refused {
                Some(_) => None,
                None => queued.next(step, through, came, &report),
            };
            let is_over = context.stop.is_cancelled()
                || is_partial && context.rest_outlasts_pass(self.catalog.catalog_id);
            let next = next.filter(|_| !is_over);
            // Of a time slice that others cut short, or the time, what was due was looked at all the same.
            let is_unfinished = came.through.is_some() && (is_partial || next.is_some());
            let is_done = next.is_none() || is_unfinished || is_partial;
            if begun.clock.refused.is_none() && is_done {
                let noted = Noted { schema_version: begun.schema_version, is_unfinished };
                // What was looked at and is not remembered is looked at again, by the next pass, whatever its rows say.
                let policy = policy.as_ref().filter(|_| !queued.is_lost);
                record_outcome(session, noted, &queued, policy, &report, context).await;
            }
            match next {
                Some(Another::GoesOn(next)) => {
                    queued.done = came.through.or(Some(through));
                    queued.so_far = Some(report);
                    begun.tables.go_on(next, queued);
                }
                Some(Another::Again(next)) => {
                    queued.done = came.through;
                    queued.so_far = Some(report);
                    begun.tables.again(next, queued);
                }
                None => {
                    log_outcome(&report);
                    self.reports.push((queued.governed.place, report));
                }
            }
        }
        Ok(None)
    }

    /// Ends the work: tables that wait for another time slice keep what came of those that they had.
    pub fn finish(&mut self) {
        let Some(begun) = self.begun.take() else { return };
        for queued in begun.tables.left().chain(std::mem::take(&mut self.aside)) {
            if let Some(report) = queued.so_far {
                log_outcome(&report);
                self.reports.push((queued.governed.place, report));
            }
        }
    }
}

/// What came of a time slice of a table.
struct Swept {
    /// None where no policy is in force.
    report: Option<TableReport>,
    /// The policy by which it was worked on.
    policy: Option<Policy>,
    came: Came,
    is_lost: bool,
}

impl Swept {
    fn only(report: TableReport) -> Self {
        Swept { report: Some(report), policy: None, came: Came::default(), is_lost: false }
    }
}

/// One table, with a session that answers.
///
/// # Errors
/// There is no session to be had: the catalog cannot be worked on any further.
async fn sweep_one(
    session: &mut LeasedSession<'_>,
    table: &LiveTable,
    context: &Context<'_>,
) -> anyhow::Result<Swept> {
    session.reestablish().await?;
    let number = session.number();
    let failed = |error: String| {
        Swept::only(TableReport::new(&table.identity, Outcome::Failed, Some(error)))
    };
    let limits = context.settings.policy_limits;
    Ok(match effective::look_and_mirror(session.connection(), table, limits).await {
        Err(error) => failed(format!("its policy could not be read: {error}")),
        Ok(Err(problem)) => failed(problem),
        Ok(Ok(None)) => Swept { report: None, policy: None, came: Came::default(), is_lost: false },
        Ok(Ok(Some(_))) if !table.is_parquet => failed(NOT_PARQUET.to_owned()),
        Ok(Ok(Some(policy))) => {
            let (swept, came) = match context.pass_is_over() {
                true => {
                    let report = TableReport::new(&table.identity, Outcome::Partial, None);
                    (report, Came { through: context.done, ..Came::default() })
                }
                false => sweep_table(session, &table.identity, &policy, context).await,
            };
            let report = Some(swept.by(&policy, context.now));
            let is_lost = session.number() != number;
            Swept { report, policy: Some(policy), came, is_lost }
        }
    })
}
