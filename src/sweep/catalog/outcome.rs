//! What is recorded and logged of a table when a pass is through with it.

use super::QueuedTable;
use crate::catalog::triage::outcome::{Through, note_through, note_unlooked, note_woken};
use crate::events;
use crate::policy::Policy;
use crate::sweep::context::Context;
use crate::sweep::lease::LeasedSession;
use crate::sweep::report::{Outcome, TableReport};
use crate::sweep::settings::Kind;
use crate::sweep::triage::stands;
use crate::sweep::wakes::quiet_after;

/// What is noted beside the report.
#[derive(Debug, Clone, Copy)]
pub(super) struct Noted {
    /// The catalog's, read before anything of the table was.
    pub schema_version: i64,
    /// What was due was looked at, and something else is to be gone on with.
    pub is_unfinished: bool,
}

/// Notes what came of a table, for the pass that comes next to know whether it has work. Where that cannot be
/// noted, what is noted of it before stands, and nothing is lost: what is left to do is still there.
pub(super) async fn record_outcome(
    session: &mut LeasedSession<'_>,
    noted: Noted,
    queued: &QueuedTable,
    policy: Option<&Policy>,
    report: &TableReport,
    context: &Context<'_>,
) {
    let Noted { schema_version, is_unfinished } = noted;
    let identity = &queued.table.identity;
    let (catalog_id, table_uuid) = (identity.catalog_id, identity.table_uuid);
    let connection = session.connection();
    let is_cut_short = is_unfinished && report.outcome == Outcome::Partial;
    let noted = match policy.filter(|_| is_cut_short || stands(report.outcome.name())) {
        Some(policy) => {
            // Whether the policy dates anything of what is left is told by the next pass.
            let is_told = report.outcome != Outcome::Dropped
                || report.counted.is_some_and(|it| it.undatable_files + it.uncovered_files == 0);
            let through = Through {
                outcome: (is_told && !is_unfinished).then_some(report.outcome.name()),
                error: report.error.as_deref(),
                cutoff: report.cutoff,
                policy_revision: policy.revision,
                guard_revision: policy.guards.revision,
                schema_version,
                shape: queued.shape.as_deref(),
                property: queued.table.property.as_ref().and_then(|text| text.as_str()),
                counted: report.counted.map(|it| (it.undatable_files, it.uncovered_files)),
            };
            match context.settings.kind {
                Kind::Regular if !is_unfinished => {
                    note_through(connection, catalog_id, table_uuid, &through).await
                }
                _ => note_woken(connection, catalog_id, table_uuid, &through).await,
            }
        }
        None => {
            let times = queued.governed.unlooked.saturating_add(1);
            let passed = context.pacing.now().saturating_duration_since(context.began);
            let quiet = quiet_after(times, context.settings.every);
            let quiet_until = context.now.plus(passed).plus(quiet);
            note_unlooked(connection, catalog_id, table_uuid, times, quiet_until).await
        }
    };
    if let Err(error) = noted {
        tracing::debug!(%error, table = identity.table, "the outcome of a table could not be recorded");
    }
}

/// The one line that every table gets, and one more for those that no other line names.
pub(super) fn log_outcome(report: &TableReport) {
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
            "A table failed"
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
        "A pass finished a table"
    );
}
