//! A pass over one table: what is expired is dropped, batch by batch.

use std::sync::Once;

use super::context::Context;
use super::expired::ExpiredTuple;
use super::lease::LeasedSession;
use super::report::{Counted, Outcome, PartitionReport, TableReport};
use super::table_pass::Enforcement;
use crate::catalog::errors::describe;
use crate::catalog::finder::Finder;
use crate::catalog::live_file::Counts;
use crate::catalog::tables::TableIdentity;
use crate::catalog::values::LOOKUP_INDEX;
use crate::events;
use crate::policy::{Mode, Policy};
use crate::rules::expiry::KeptReason;
use crate::rules::fair_queue::Came;
use crate::rules::instant::UtcInstant;
use crate::rules::kept::{Health, KeptCounts, KeptSample};

/// Works on one table by its policy, and tells how far that came. Errors end up in the report.
pub async fn sweep_table(
    session: &mut LeasedSession<'_>,
    table: &TableIdentity,
    policy: &Policy,
    context: &Context<'_>,
) -> (TableReport, Came) {
    match policy.mode {
        Mode::Paused => (TableReport::new(table, Outcome::Paused, None), Came::default()),
        Mode::Observe | Mode::Enforce => look_after(session, table, policy, context).await,
    }
}

async fn look_after(
    session: &mut LeasedSession<'_>,
    table: &TableIdentity,
    policy: &Policy,
    context: &Context<'_>,
) -> (TableReport, Came) {
    let (book, judge) = match policy.judge(session.connection(), table, context.now).await {
        Ok(read) => read,
        Err(error) => {
            let failed = TableReport::new(table, Outcome::Failed, Some(unfound(&error.into())));
            return (failed, Came::default());
        }
    };
    let finder = Finder { table, judge: &judge, scan_limits: &context.settings.scan_limits };
    let mut enforcement = Enforcement::new(finder, policy, &book, context);
    let swept = enforcement.sweep(session).await;
    let came = enforcement.came();
    let (work, observed) = enforcement.into_work();
    let mut report = work.report();
    match swept {
        Err(error) => report.fail(unfound(&error)),
        Ok(findings) => {
            if let Some((kept_counts, at)) = &findings.kept_counts {
                log_kept(table, kept_counts, *at);
            }
            log_kept(table, &findings.withheld, context.now);
            if findings.health == Health::Unhealthy && report.outcome == Outcome::NothingToDo {
                report.outcome = Outcome::Unhealthy;
                report.error = Some(dates_nothing(policy));
            }
            report.poisoned(&findings.poisoned);
            report.full = Some(findings.is_full);
            report.counted = findings.kept_counts.as_ref().map(|(kept_counts, at)| {
                Counted::of(kept_counts, *at).with(findings.undatable_waiting)
            });
            if let Some(stalled) = &findings.stalled {
                stalled.log(table, policy);
            }
            if !findings.has_index {
                log_missing_index();
            }
        }
    }
    let report = match policy.mode {
        Mode::Observe => as_observed(table, policy, report, &observed, context),
        Mode::Enforce | Mode::Paused => report,
    };
    (report, came)
}

/// The report of a table whose policy observes, with what would have gone.
fn as_observed(
    table: &TableIdentity,
    policy: &Policy,
    mut report: TableReport,
    observed: &[ExpiredTuple],
    context: &Context<'_>,
) -> TableReport {
    if matches!(report.outcome, Outcome::NothingToDo | Outcome::Poisoned) {
        (report.outcome, report.error) = (Outcome::Observed, None);
    }
    report.full = None;
    report.would_drop =
        observed.iter().map(|tuple| PartitionReport::of(tuple, tuple.counts)).collect();
    if let (Some(oldest), Some(newest)) = (observed.first(), observed.last()) {
        let TableIdentity { catalog, namespace, table, .. } = table;
        let mut counts = Counts::default();
        observed.iter().for_each(|tuple| counts += tuple.counts);
        tracing::info!(
            event = events::TABLE_OBSERVED,
            catalog, namespace, table,
            tuples = observed.len(),
            files = counts.files, delete_files = counts.delete_files,
            records = counts.records, bytes = counts.bytes,
            oldest = oldest.display,
            newest = newest.display,
            cutoff = %context.now.minus(policy.keep.length()),
            "A pass would drop these partitions if the policy were enforced"
        );
    }
    report
}

/// Says once in the life of the process what would make passes over large tables short.
fn log_missing_index() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        tracing::warn!(
            event = events::LOOKUP_INDEX_MISSING,
            statement = LOOKUP_INDEX,
            "The server is older than V23 and has no index by partition value: passes read each \
             table's files instead. Upgrade the server, or build the index that it would build"
        );
    });
}

fn unfound(error: &anyhow::Error) -> String {
    format!("looking for expired files failed: {}", describe(error))
}

fn dates_nothing(policy: &Policy) -> String {
    format!(
        "the policy's field {} dates none of the table's live files: see `tailrace plan`",
        policy.field
    )
}

/// One line for each kind of file that stays for another reason than that it is young, or among the newest.
fn log_kept(table: &TableIdentity, kept_counts: &KeptCounts, counted_at: UtcInstant) {
    let TableIdentity { catalog, namespace, table, .. } = table;
    for (reason, group) in &kept_counts.kept {
        if matches!(reason, KeptReason::NotExpired | KeptReason::AmongNewest) {
            continue;
        }
        let samples: Vec<_> = group.samples.iter().map(KeptSample::describe).collect();
        tracing::warn!(
            event = events::KEPT_UNDATABLE,
            catalog,
            namespace,
            table,
            reason = reason.name(),
            files = group.files,
            samples = serde_json::to_string(&samples).unwrap_or_default(),
            %counted_at,
            "Files are kept: nothing proves that they are expired, or their time has not begun"
        );
    }
}
