//! A pass over one table: what is expired goes, batch by batch.

use std::time::Duration;

use super::context::Context;
use super::lease::LeasedSession;
use super::plan::{Health, TablePlan, plan_table};
use super::report::{Outcome, PartitionReport, TableReport};
use super::round::Round;
use super::work::Work;
use crate::catalog::deadline::within;
use crate::catalog::failure::in_words;
use crate::catalog::tables::TableIdentity;
use crate::events;
use crate::policy::{Mode, Policy};
use crate::window::KeptReason;

/// The longest that planning a table may take, however large it is: then the session is given up.
const PLANNING: Duration = Duration::from_secs(1_800);

/// Works on one table by its policy. Errors end up in the report.
pub async fn sweep_table(
    session: &mut LeasedSession<'_>,
    table: &TableIdentity,
    policy: &Policy,
    context: &Context<'_>,
) -> TableReport {
    if policy.mode == Mode::Paused {
        return TableReport::new(table, Outcome::Paused, None);
    }
    let planned = plan_table(session.connection(), table, policy, context.now, context.settings);
    let plan = within(PLANNING, planned).await;
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => {
            let error = format!("planning failed, nothing was dropped: {}", in_words(&error));
            return TableReport::new(table, Outcome::Failed, Some(error));
        }
    };
    tell_kept(&plan);
    if plan.health() == Health::Unhealthy {
        let error = format!(
            "the policy's field {} dates none of the table's live files: see `tailrace plan`",
            policy.field
        );
        return TableReport::new(table, Outcome::Unhealthy, Some(error));
    }
    if policy.mode == Mode::Observe {
        return observed(&plan);
    }
    if plan.expired.is_empty() {
        return TableReport::new(table, Outcome::NothingToDo, None);
    }
    let mut work = Work::new(table, policy, plan.cutoff, context);
    work.run(session, &Round::of(plan.expired)).await;
    work.report()
}

fn observed(plan: &TablePlan) -> TableReport {
    let TableIdentity { catalog, namespace, table, .. } = &plan.table;
    let counts = plan.expired_counts();
    tracing::info!(
        event = events::TABLE_OBSERVED,
        catalog, namespace, table,
        tuples = plan.expired.len(),
        files = counts.files, delete_files = counts.delete_files,
        records = counts.records, bytes = counts.bytes,
        oldest = plan.expired.first().map(|tuple| tuple.display.as_str()),
        newest = plan.expired.last().map(|tuple| tuple.display.as_str()),
        cutoff = %plan.cutoff,
        "Would drop these partitions, were the policy enforced"
    );
    let mut report = TableReport::new(&plan.table, Outcome::Observed, None);
    report.would_drop =
        plan.expired.iter().map(|tuple| PartitionReport::of(tuple, tuple.counts)).collect();
    report
}

/// One line for each kind of file that stays for another reason than that it is young.
fn tell_kept(plan: &TablePlan) {
    let TableIdentity { catalog, namespace, table, .. } = &plan.table;
    let Some(census) = &plan.census else { return };
    for (reason, group) in &census.kept {
        if *reason == KeptReason::NotExpired {
            continue;
        }
        let samples: Vec<_> = group.samples.iter().map(|sample| sample.display.as_str()).collect();
        tracing::warn!(
            event = events::KEPT_UNDATABLE,
            catalog,
            namespace,
            table,
            reason = reason.name(),
            files = group.files,
            samples = serde_json::to_string(&samples).unwrap_or_default(),
            "Files are kept because nobody can tell that they are expired, or their time has not begun"
        );
    }
}
