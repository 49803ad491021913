//! A pass over one catalog that has work: its tables with work in turn, the most overdue first.

use super::clocks::{Refused, Standing, judge_clock};
use super::context::{Context, Kind, Progress};
use super::effective;
use super::intake::{CatalogIntake, Governed};
use super::lease::LeasedSession;
use super::plan::NOT_PARQUET;
use super::report::{CatalogFailure, Outcome, TableReport};
use super::settings::Scope;
use super::slices::{Slices, Stage, most_overdue_first};
use super::table::sweep_table;
use super::triage::stands;
use super::wakes::quiet_after;
use crate::catalog::connect::Database;
use crate::catalog::failure::{in_words, is_away};
use crate::catalog::marks::{note_marks, revoke_marks_before};
use crate::catalog::restore::settle::{
    PausedPolicy, Settled, Untrusted, lower_trusted_head, settle,
};
use crate::catalog::restore::{Restored, is_whole, note_head, restored, thin_heads};
use crate::catalog::shape::copy_specs;
use crate::catalog::tables::{Catalog, LiveTable, live_tables_among};
use crate::catalog::triage::catalogs::{note_compared, note_copied, schema_version};
use crate::catalog::triage::outcome::{Through, note_through, note_unlooked, note_woken};
use crate::catalog::triage::shapes::shapes;
use crate::events;
use crate::policy::Policy;

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
        }
    }

    /// Works until all is done or the turn is over, with a session of its own that has the lease.
    /// Whether another turn would find something to do. Errors end up in `failure`.
    pub async fn turn(&mut self, database: &Database, context: &Context<'_>) -> bool {
        match self.lease_and_work(database, context).await {
            Ok(has_more) => has_more,
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
                false
            }
        }
    }

    async fn lease_and_work(
        &mut self,
        database: &Database,
        context: &Context<'_>,
    ) -> anyhow::Result<bool> {
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
            return Ok(false);
        };
        let worked = self.work(&mut session, context).await;
        session.close().await;
        worked
    }

    async fn work(
        &mut self,
        session: &mut LeasedSession<'_>,
        context: &Context<'_>,
    ) -> anyhow::Result<bool> {
        let begun = match &mut self.begun {
            Some(begun) => begun,
            begun @ None => {
                let whole = is_whole(session.connection(), self.catalog.catalog_id).await?;
                anyhow::ensure!(whole, NOT_WHOLE);
                begun.insert(begin(session, self.intake, self.scope, context).await?)
            }
        };
        while !context.stop.is_cancelled() {
            let left = context.left();
            if left.is_zero() && !context.pass_is_over() {
                return Ok(true);
            }
            let Some((mut turn, share)) = begun.tables.next(left, 1) else { return Ok(false) };
            let for_table = Context {
                lock_tries: self.lock_tries,
                went_through: turn
                    .so_far
                    .as_ref()
                    .is_some_and(|report| !report.snapshots.is_empty()),
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
                    begun.tables.again(turn);
                    return Err(error);
                }
            };
            let Some(report) = report else { continue };
            if begun.clock.refused.is_none() {
                remember(session, begun.schema_version, &turn, policy.as_ref(), &report, context)
                    .await;
            }
            self.lock_tries = match report.outcome {
                Outcome::LockTimeout => 1,
                _ if report.snapshots.is_empty() => self.lock_tries,
                _ => LOCK_TRIES,
            };
            // With an error to tell, it waits for something that another turn would not wait for.
            let goes_on = report.outcome == Outcome::Partial
                && report.error.is_none()
                && !context.stop.is_cancelled()
                && !context.rest_outlasts_pass(self.catalog.catalog_id);
            if goes_on {
                begun.tables.again(TableTurn { so_far: Some(report), ..turn });
            } else {
                tell(&report);
                self.reports.push((turn.governed.place, report));
            }
        }
        Ok(false)
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

/// What a catalog is worked on by: its clock, its specs copied, its tables with work, which are looked up
/// again: one that is gone or renamed since is what it is now.
///
/// Under a clock that is refused nothing is noted, and so nothing is copied; one that is behind the
/// catalog's own snapshots dates nothing, but what the specs say is true all the same.
///
/// Before anything is looked up, what is remembered is compared with the catalog: where it was restored
/// since, what was learned after that is forgotten first, which waits for a clock that is acted by. Then,
/// and where the clock is refused, all governed tables in scope are worked on. A pass that was woken keeps to
/// what fell due.
async fn begin(
    session: &mut LeasedSession<'_>,
    intake: &CatalogIntake,
    scope: &Scope,
    context: &Context<'_>,
) -> sqlx::Result<Begun> {
    let connection = session.connection();
    let catalog = &intake.catalog;
    let catalog_id = catalog.catalog_id;
    let is_regular = context.settings.kind == Kind::Regular;
    let schema_version = schema_version(connection, catalog_id).await?.unwrap_or_default();
    let restored = restored(connection, catalog_id).await?;
    if let Some(restored) = &restored {
        lower_trusted_head(connection, catalog_id, restored).await?;
    }
    let clock = judge_clock(connection, catalog, context).await?;
    if clock.refused.is_none() {
        if let Some(restored) = &restored {
            let window = context.settings.stale_writer_window;
            let settled = settle(connection, catalog_id, restored, context.now, window).await?;
            tell_restored(catalog, restored, &settled);
        }
        if is_regular {
            thin_heads(connection, &[catalog_id]).await?;
        }
        let noted = note_head(connection, catalog_id, context.now).await?;
        if let Some(noted) = noted.filter(|noted| !noted.is_restored) {
            note_compared(connection, catalog_id, noted.marks.through_snapshot).await?;
        }
    }
    if is_regular && !matches!(clock.refused, Some(Refused::Skew { .. })) {
        // Of the moment in which they are read, not of the pass's beginning: what began since was
        // not there before.
        let seen_at = match clock.refused {
            None => Some(context.time_of_moment(connection).await?),
            Some(_) => None,
        };
        copy_specs(connection, catalog_id, seen_at).await?;
        if seen_at.is_some() {
            note_copied(connection, catalog_id, schema_version).await?;
        }
    }
    if is_regular && clock.refused.is_none() {
        let window = context.settings.stale_writer_window;
        revoke_marks_before(connection, catalog_id, clock.epoch, window).await?;
        note_marks(connection, catalog_id, context.now, window).await?;
    }
    let is_all = is_regular && (restored.is_some() || clock.refused.is_some());
    let with_work = |(id, table): (&i64, &Governed)| table.stage.map(|_| *id);
    let with_work: Vec<i64> = intake.governed.iter().filter_map(with_work).collect();
    let these = if is_all { None } else { Some(with_work.as_slice()) };
    let mut live = live_tables_among(connection, catalog, true, these).await?;
    live.retain(|table| scope.has_table(&table.identity.namespace, &table.identity.table));
    let keys: Vec<_> = live.iter().map(|table| (catalog_id, table.identity.table_uuid)).collect();
    let mut shapes = shapes(connection, &keys).await?;
    // One that is new since comes after the others.
    let beyond = intake.governed.values().map(|table| table.place + 1).max().unwrap_or_default();
    let turn = |(number, table): (usize, LiveTable)| TableTurn {
        governed: intake.governed.get(&table.identity.table_id).copied().unwrap_or(Governed {
            place: beyond + number,
            stage: None,
            unlooked: 0,
        }),
        shape: shapes.remove(&(catalog_id, table.identity.table_uuid)),
        table,
        so_far: None,
    };
    let mut turns: Vec<TableTurn> = live.into_iter().enumerate().map(turn).collect();
    most_overdue_first(&mut turns, |turn| turn.governed.stage.unwrap_or(Stage::Rest));
    Ok(Begun { clock, schema_version, tables: Slices::new(turns) })
}

/// Notes what came of a table, for the pass that comes next to know whether it has work. Where that cannot be
/// noted, what is noted of it before stands, and nothing is lost: what is left to do is still there.
async fn remember(
    session: &mut LeasedSession<'_>,
    schema_version: i64,
    turn: &TableTurn,
    policy: Option<&Policy>,
    report: &TableReport,
    context: &Context<'_>,
) {
    let identity = &turn.table.identity;
    let (catalog_id, table_uuid) = (identity.catalog_id, identity.table_uuid);
    let connection = session.connection();
    let noted = match policy.filter(|_| stands(report.outcome.name())) {
        Some(policy) => {
            // Whether the policy dates anything of what is left is told by the next pass.
            let is_told = report.outcome != Outcome::Dropped
                || report.counted.is_some_and(|it| it.undatable_files + it.uncovered_files == 0);
            let through = Through {
                outcome: is_told.then_some(report.outcome.name()),
                error: report.error.as_deref(),
                cutoff: report.cutoff,
                policy_revision: policy.revision,
                schema_version,
                shape: turn.shape.as_deref(),
                property: turn.table.property.as_ref().and_then(|text| text.as_str()),
                counted: report.counted.map(|it| (it.undatable_files, it.uncovered_files)),
            };
            match context.settings.kind {
                Kind::Regular => note_through(connection, catalog_id, table_uuid, &through).await,
                Kind::Wake => note_woken(connection, catalog_id, table_uuid, &through).await,
            }
        }
        None => {
            let times = turn.governed.unlooked.saturating_add(1);
            let passed = context.pacing.now().saturating_duration_since(context.began);
            let quiet = quiet_after(times, context.settings.every);
            let quiet_until = context.now.plus(passed).plus(quiet);
            note_unlooked(connection, catalog_id, table_uuid, times, quiet_until).await
        }
    };
    if let Err(error) = noted {
        tracing::debug!(%error, table = identity.table, "what came of a table was not noted");
    }
}

fn tell_restored(catalog: &Catalog, restored: &Restored, settled: &Settled) {
    let Settled { undone, paused, untrusted } = settled;
    let catalog = &catalog.name;
    tracing::error!(
        event = events::CATALOG_RESTORED,
        catalog,
        head = restored.head,
        agreed = restored.agreed.map(|agreed| agreed.snapshot_id),
        drops_undone = undone,
        "The catalog was restored to an earlier time, and the schema tailrace was not: what was \
         learned after that is forgotten"
    );
    for Untrusted { table, spec_id } in untrusted {
        tracing::warn!(
            event = events::TRUST_WITHDRAWN,
            catalog,
            table,
            spec_id,
            "The restore took a spec of the table back, and a writer may go on with it: the values of \
             this spec are trusted no more"
        );
    }
    for PausedPolicy { namespace, table, field, keep } in paused {
        tracing::warn!(
            event = events::POLICY_PAUSED,
            catalog,
            namespace,
            table,
            field,
            keep,
            "A policy that was set after the time to which the catalog was restored is paused: its column \
             is known by an id that another column may have. Set the policy again"
        );
    }
    if *undone > 0 {
        tracing::error!(
            event = events::DROPS_UNDONE,
            catalog,
            drops = undone,
            "The catalog does not know drops of ours: it was restored, and their data may be back"
        );
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

/// The one line that every table gets, and one more for those that no other line told of.
fn tell(report: &TableReport) {
    let TableReport { catalog, namespace, table, outcome, .. } = report;
    let counts = report.counts();
    let error = report.error.as_deref();
    match outcome {
        Outcome::Failed => tracing::error!(
            event = events::TABLE_FAILED,
            catalog,
            namespace,
            table,
            error,
            "A table could not be worked on"
        ),
        Outcome::Unhealthy => tracing::error!(
            event = events::TABLE_UNHEALTHY,
            catalog,
            namespace,
            table,
            error,
            "A policy can date none of its table's files"
        ),
        _ => {}
    }
    tracing::info!(
        event = events::TABLE_FINISHED,
        catalog,
        namespace,
        table,
        outcome = outcome.name(),
        field = report.field,
        column = report.column,
        keep = report.keep,
        cutoff = report.cutoff.map(tracing::field::display),
        snapshots = report.snapshots.len(),
        files_ended = counts.files,
        delete_files_ended = counts.delete_files,
        records = counts.records,
        bytes = counts.bytes,
        full = report.full,
        undatable_files = report.counted.map(|counted| counted.undatable_files),
        uncovered_files = report.counted.map(|counted| counted.uncovered_files),
        counted_at = report.counted.map(|counted| tracing::field::display(counted.at)),
        "A pass is through with a table"
    );
}
