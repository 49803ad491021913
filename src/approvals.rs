//! Approves partitions that are held for their number: those of a plan that was saved, or of a digest.
//!
//! What is approved is planned anew first. Where it is not what the approver saw, nothing is approved, and the answer
//! says what drifted: another table in the place of the planned one, another policy, another rule (the specs, the
//! column or the keep), a partition with twice its files, or, by a digest, other partitions. A partition that is held
//! no more is left out: it is gone, or goes without an approval.

mod pick;
mod saved;

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::catalog::clock;
use crate::catalog::session::Session;
use crate::catalog::tables::{TableIdentity, catalogs};
use crate::events;
use crate::explicit::problem::Problem;
use crate::guards::approval::{self, Approval, MOST, NewApproval};
use crate::policy::store;
use crate::rules::instant::UtcInstant;
use crate::sweep::Settings;
use crate::sweep::planning::{Plans, plan_catalog};
use pick::{by_digest, by_plan, identity_of};
use saved::unspoiled;
pub use saved::{SavedPartition, SavedPlan, SavedTable};

/// Which tables of a catalog.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalScope<'a> {
    pub catalog: &'a str,
    /// One namespace; all where it is not given.
    pub namespace: Option<&'a str>,
    /// One table of the namespace; all where it is not given.
    pub table: Option<&'a str>,
}

impl ApprovalScope<'_> {
    fn has(&self, namespace: &str, table: &str) -> bool {
        self.namespace.is_none_or(|it| it == namespace) && self.table.is_none_or(|it| it == table)
    }

    fn name(&self) -> String {
        let of = match (self.namespace, self.table) {
            (Some(namespace), Some(table)) => format!(" {namespace}.{table}"),
            (Some(namespace), None) => format!(" {namespace}.*"),
            (None, _) => String::new(),
        };
        format!("{}{of}", self.catalog)
    }
}

/// What the approver saw.
#[derive(Debug, Clone, Copy)]
pub enum Seen<'a> {
    Plan(&'a SavedPlan),
    Digest(&'a str),
}

/// Who approves, and how.
#[derive(Debug, Clone, Copy)]
pub struct Approver<'a> {
    pub name: &'a str,
    pub reason: Option<&'a str>,
    /// How long the approval is valid.
    pub ttl: Duration,
    /// Whether whoever set the policy, or saved the plan, may not approve.
    pub needs_another: bool,
}

/// What was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Approved {
    /// The approvals of the catalog that are valid now, of the tables in question.
    pub approvals: Vec<Approval>,
}

/// Approves what is held in the scope.
///
/// # Errors
/// [`Problem::PlanDrift`] where it is not what the approver saw, [`Problem::NothingHeld`] where nothing is held,
/// [`Problem::FourEyes`] where somebody else has to approve; else as a plan's.
pub async fn approve(
    session: &mut Session,
    settings: &Settings,
    scope: ApprovalScope<'_>,
    seen: Seen<'_>,
    approver: Approver<'_>,
) -> anyhow::Result<Approved> {
    let all = catalogs(session).await?;
    let Some(catalog) = all.into_iter().find(|catalog| catalog.name == scope.catalog) else {
        let missing = format!("there is no catalog {}", scope.catalog);
        return Err(Problem::NotFound(missing).into());
    };
    if let Seen::Plan(plan) = seen {
        unspoiled(plan)?;
    }
    let named = |namespace: &str, table: &str| {
        let is_named = |saved: &SavedTable| {
            saved.catalog == scope.catalog && saved.namespace == namespace && saved.table == table
        };
        let in_plan = match seen {
            Seen::Plan(plan) => plan.tables.iter().any(is_named),
            Seen::Digest(_) => true,
        };
        in_plan && scope.has(namespace, table)
    };
    let plans = plan_catalog(session, &catalog, settings, &named).await?;
    let now = SavedPlan::of(&plans, approver.name);
    let picked = match seen {
        Seen::Digest(digest) => by_digest(&now, digest, &scope)?,
        Seen::Plan(plan) => by_plan(&plans, &now, plan, &scope)?,
    };
    if picked.is_empty() {
        let nothing = format!("nothing of {} is held for its number", scope.name());
        return Err(Problem::NothingHeld(nothing).into());
    }
    for (table, _) in &picked {
        if approver.needs_another {
            other_eyes(session, &plans, table, seen, approver).await?;
        }
    }
    let until = clock::now(session).await?.plus(approver.ttl).to_chrono();
    let until = until.unwrap_or(DateTime::<Utc>::MAX_UTC);
    let mut approvals = Vec::new();
    for (table, partitions) in &picked {
        if partitions.len() > MOST {
            return Err(Problem::Validation(format!(
                "{} partitions of table {}.{} are held, and at most {MOST} can be approved at once: drop the \
                 oldest with `tailrace drop --from --to` first",
                partitions.len(),
                table.namespace,
                table.table
            ))
            .into());
        }
        let identity = identity_of(&plans, table);
        approvals.extend(identity.map(|identity| NewApproval {
            table: identity,
            rule: &table.rule,
            policy_revision: table.policy_revision,
            digest: &table.digest,
            partitions,
            by: approver.name,
            reason: approver.reason,
            until,
        }));
    }
    approval::add(session, catalog.catalog_id, &approvals).await?;
    for new in &approvals {
        let TableIdentity { catalog, namespace, table, .. } = new.table;
        tracing::info!(
            event = events::APPROVED,
            catalog,
            namespace,
            table,
            digest = new.digest,
            partitions = new.partitions.len(),
            files = new.partitions.iter().map(|(_, files)| files).sum::<i64>(),
            until = %UtcInstant::from(until),
            by = approver.name,
            reason = approver.reason,
            "Partitions that are held for their number were approved: passes drop them"
        );
    }
    let mut valid = approval::of_catalog(session, scope.catalog).await?;
    valid.retain(|one| scope.has(&one.namespace, &one.table));
    Ok(Approved { approvals: valid })
}

async fn other_eyes(
    session: &mut Session,
    plans: &Plans,
    table: &SavedTable,
    seen: Seen<'_>,
    approver: Approver<'_>,
) -> anyhow::Result<()> {
    let Some(identity) = identity_of(plans, table) else { return Ok(()) };
    let rows = store::rows(session, identity).await?;
    let setter = rows.stored.or(rows.mirror).map(|row| row.updated_by);
    let saver = match seen {
        Seen::Plan(plan) => Some(plan.saved_by.clone()),
        Seen::Digest(_) => None,
    };
    for (who, did) in [(setter, "set the policy"), (saver, "saved the plan")] {
        if who.as_deref() == Some(approver.name) {
            return Err(Problem::FourEyes(format!(
                "{} {did} of table {}.{}, and guard.four_eyes wants somebody else to approve",
                approver.name, table.namespace, table.table
            ))
            .into());
        }
    }
    Ok(())
}
