//! A pass over one catalog that has work: its tables with work in turn, the most overdue first.

mod begin;
mod told;

use super::clocks::Standing;
use super::context::{Context, Progress};
use super::effective;
use super::intake::{CatalogIntake, Governed};
use super::lease::LeasedSession;
use super::plan::NOT_PARQUET;
use super::report::{CatalogFailure, Outcome, TableReport};
use super::settings::Scope;
use super::slices::{Slice, Slices, Step, Steps};
use super::table::sweep_table;
use super::triage::stands;
use crate::catalog::connect::Database;
use crate::catalog::failure::{in_words, is_away};
use crate::catalog::restore::is_whole;
use crate::catalog::tables::{Catalog, LiveTable};
use crate::events;
use crate::policy::Policy;
use begin::begin;
use told::{remember, tell};

/// How often a commit asks for the commit lock. Where a table did not get it so, the tables after
/// it ask once each: they would wait for the same one.
const LOCK_TRIES: u32 = 5;

/// Why nothing is done in a catalog that lacks the row of its newest snapshot.
const NOT_WHOLE: &str = "hog_snapshot has no row of the catalog's newest snapshot \
     (hog_catalog.last_snapshot_id): the catalog is being restored, or is damaged; nothing is done in it \
     until the row is there";

/// The work of a pass on one catalog, in one turn or several.
pub struct CatalogSweep<'a> {
    /// The catalog.
    pub catalog: &'a Catalog,
    /// What came of its tables, in no order; each with its place by namespace and name.
    pub reports: Vec<(usize, TableReport)>,
    /// Another daemon works on it.
    pub is_skipped: bool,
    /// Why it could not be worked on to the end.
    pub failure: Option<CatalogFailure>,
    intake: &'a CatalogIntake,
    scope: &'a Scope,
    begun: Option<Begun>,
    lock_tries: u32,
    /// It gave way to what fell due meanwhile, with something left to do.
    pub gave_way: bool,
}

/// When a catalog is to have another turn.
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
    tables: Slices<TableTurn>,
}

/// A table that waits for its turn.
struct TableTurn {
    governed: Governed,
    table: LiveTable,
    steps: Steps,
    /// The last step that this pass is through with.
    done: Option<Step>,
    /// Its shape before it was worked on.
    shape: Option<String>,
    /// What came of the turns that it had.
    so_far: Option<TableReport>,
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
        }
    }

    /// Works until all is done, the turn is over, or somebody waits with an earlier step than any of its tables,
    /// with a session of its own that has the lease. `None` where another turn would find nothing to do. Errors
    /// end up in `failure`.
    pub async fn turn(&mut self, database: &Database, context: &Context<'_>) -> Option<Another> {
        match self.lease_and_work(database, context).await {
            Ok(another) => another,
            Err(error) => {
                let away = is_away(&error);
                let error = in_words(&error);
                tracing::error!(
                    event = events::CATALOG_FAILED,
                    catalog = self.catalog.name,
                    error,
                    "A catalog could not be worked on"
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
            // Whoever has it after our first turn goes on with it.
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
                return Ok(None);
            }
            let Some(Slice { whose: mut turn, step, share }) = begun.tables.next(left, 1) else {
                break;
            };
            let earliest = others.into_iter().chain(begun.tables.first_step()).min();
            let through = step.max(earliest.unwrap_or(Step::Rest));
            let for_table = Context {
                lock_tries: self.lock_tries,
                went_through: turn
                    .so_far
                    .as_ref()
                    .is_some_and(|report| !report.snapshots.is_empty()),
                done: turn.done,
                through: if context.settings.is_wake() { Step::Due } else { through },
                ..context.for_turn(share)
            };
            (context.progress)(Progress::Table(&turn.table.identity));
            let swept = match &begun.clock.refused {
                Some(refused) => Ok((Some(refused.report(&turn.table.identity)), None)),
                None => sweep_one(session, &turn.table, &for_table).await,
            };
            let (report, policy) = match swept {
                Ok((report, policy)) => (TableReport::in_turns(turn.so_far.take(), report), policy),
                Err(error) => {
                    begun.tables.again(step, turn);
                    return Err(error);
                }
            };
            let Some(report) = report else { continue };
            self.lock_tries = match report.outcome {
                Outcome::LockTimeout => 1,
                _ if report.snapshots.is_empty() => self.lock_tries,
                _ => LOCK_TRIES,
            };
            let next = turn.steps.after(through).filter(|_| stands(report.outcome.name()));
            if let Some(next) = next {
                let turn = TableTurn { done: Some(through), so_far: Some(report), ..turn };
                begun.tables.go_on(next, turn);
                continue;
            }
            let gave_way = through == Step::Rest && context.gives_way();
            self.gave_way |= gave_way;
            if begun.clock.refused.is_none() {
                let policy = policy.as_ref();
                remember(session, begun.schema_version, &turn, policy, &report, gave_way, context)
                    .await;
            }
            // With an error to tell, it waits for something that another turn would not wait for.
            let goes_on = report.outcome == Outcome::Partial
                && report.error.is_none()
                && !context.stop.is_cancelled()
                && !context.rest_outlasts_pass(self.catalog.catalog_id);
            if goes_on {
                begun.tables.again(step, TableTurn { so_far: Some(report), ..turn });
            } else {
                tell(&report);
                self.reports.push((turn.governed.place, report));
            }
        }
        Ok(None)
    }

    /// Ends the work: tables that wait for another turn keep what came of those that they had.
    pub fn finish(&mut self) {
        let Some(begun) = self.begun.take() else { return };
        for turn in begun.tables.left() {
            if let Some(report) = turn.so_far {
                tell(&report);
                self.reports.push((turn.governed.place, report));
            }
        }
    }
}

/// One table, with a session that answers, and the policy by which it was worked on. No report where none is
/// in force.
///
/// # Errors
/// There is no session to be had: the catalog cannot be worked on any further.
async fn sweep_one(
    session: &mut LeasedSession<'_>,
    table: &LiveTable,
    context: &Context<'_>,
) -> anyhow::Result<(Option<TableReport>, Option<Policy>)> {
    session.reestablish().await?;
    let failed = |error: String| {
        (Some(TableReport::new(&table.identity, Outcome::Failed, Some(error))), None)
    };
    let min_keep = context.settings.min_keep;
    Ok(match effective::look_and_mirror(session.connection(), table, min_keep).await {
        Err(error) => failed(format!("its policy could not be read: {error}")),
        Ok(Err(problem)) => failed(problem),
        Ok(Ok(None)) => (None, None),
        Ok(Ok(Some(_))) if !table.is_parquet => failed(NOT_PARQUET.to_owned()),
        Ok(Ok(Some(policy))) => {
            let swept = match context.pass_is_over() {
                true => TableReport::new(&table.identity, Outcome::Partial, None),
                false => sweep_table(session, &table.identity, &policy, context).await,
            };
            (Some(swept.by(&policy, context.now)), Some(policy))
        }
    })
}
