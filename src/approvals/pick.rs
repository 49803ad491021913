//! What of a plan or a digest is approved, and what drifted since the approver saw it. Pure.

use std::collections::HashMap;

use super::ApprovalScope;
use super::saved::{SavedPlan, SavedTable};
use crate::catalog::tables::TableIdentity;
use crate::explicit::problem::Problem;
use crate::rules::hold::HeldPartition;
use crate::sweep::planning::Plans;

/// A table, with those of its partitions that are approved.
pub type Picked<'a> = Vec<(&'a SavedTable, Vec<(HeldPartition, i64)>)>;

/// All that is held now, if it is what the digest is of.
pub fn by_digest<'a>(
    now: &'a SavedPlan,
    digest: &str,
    scope: &ApprovalScope<'_>,
) -> Result<Picked<'a>, Problem> {
    if now.tables.is_empty() || now.digest == digest {
        let all = |table: &'a SavedTable| {
            let held = table.held.iter().map(|one| (one.partition(), one.files));
            (table, held.collect())
        };
        return Ok(now.tables.iter().map(all).collect());
    }
    let held = now.tables.iter().map(|table| {
        let files: i64 = table.held.iter().map(|one| one.files).sum();
        let SavedTable { namespace, table, held, digest, .. } = table;
        format!("{namespace}.{table} holds {} partitions with {files} files ({digest})", held.len())
    });
    Err(Problem::PlanDrift {
        what: format!(
            "what is held of {} is not what digest {digest} is of, but {} is",
            scope.name(),
            now.digest
        ),
        drift: held.collect(),
    })
}

/// What the plan has and is held now.
pub fn by_plan<'a>(
    plans: &Plans,
    now: &SavedPlan,
    plan: &'a SavedPlan,
    scope: &ApprovalScope<'_>,
) -> Result<Picked<'a>, Problem> {
    let (mut drift, mut picked) = (Vec::new(), Vec::new());
    let of_scope = |table: &&SavedTable| {
        table.catalog == scope.catalog && scope.has(&table.namespace, &table.table)
    };
    for saved in plan.tables.iter().filter(of_scope) {
        let name = format!("{}.{}", saved.namespace, saved.table);
        if identity_of(plans, saved).is_none() {
            drift.push(format!("table {name} is gone, has no policy now, or is another table"));
            continue;
        }
        let is_it = |table: &&SavedTable| table.table_uuid == saved.table_uuid;
        let Some(table) = now.tables.iter().find(is_it) else { continue };
        if table.policy_revision != saved.policy_revision {
            drift.push(format!(
                "the policy of {name} has revision {}, and had {}",
                table.policy_revision, saved.policy_revision
            ));
            continue;
        }
        if table.rule != saved.rule {
            drift.push(format!("the column, the keep or the specs of {name} are others"));
            continue;
        }
        let held: HashMap<HeldPartition, i64> =
            table.held.iter().map(|one| (one.partition(), one.files)).collect();
        let mut partitions = Vec::new();
        for one in &saved.held {
            let partition = one.partition();
            match held.get(&partition) {
                Some(files) if *files >= one.files.saturating_mul(2) => drift.push(format!(
                    "partition {} of {name} has {files} files, and had {}",
                    one.display, one.files
                )),
                Some(_) => partitions.push((partition, one.files)),
                None => {}
            }
        }
        if !partitions.is_empty() {
            picked.push((saved, partitions));
        }
    }
    match drift.is_empty() {
        true => Ok(picked),
        false => Err(Problem::PlanDrift {
            what: format!("what is held of {} is not what the plan has", scope.name()),
            drift,
        }),
    }
}

/// The live table of a saved one.
pub fn identity_of<'p>(plans: &'p Plans, table: &SavedTable) -> Option<&'p TableIdentity> {
    let mut all = plans.tables.iter().map(|(identity, _)| identity);
    all.find(|identity| identity.table_uuid == table.table_uuid)
}
