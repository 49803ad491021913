//! Which tables a renewal works on. Pure: [`super::intake`] reads the facts.
//!
//! The facts are those that bring work to a pass ([`crate::sweep::triage`]), judged for a time that is
//! `compaction.lead` later; some of them bring work to a renewal. Where a fact is unknown, the table is
//! worked on.

use std::time::Duration;

use crate::catalog::triage::tables::TableLook;
use crate::catalog::window_rules::Enforced;
use crate::policy::Mode;
use crate::rules::instant::UtcInstant;
use crate::sweep::Kind;
use crate::sweep::triage::{Facts, Reason, Rules, is_mirrored, work};

#[cfg(test)]
mod tests;

/// What there is to do in a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Todo {
    /// Its property may say something that is not mirrored.
    pub mirrors: bool,
    /// It may have files to be claimed. Those of a table with claims of ours are looked at in any case.
    pub claims: bool,
}

/// By what a renewal judges: what falls due up to `until` is in the window.
pub fn rules(until: UtcInstant, min_keep: Duration) -> Rules {
    Rules {
        now: until,
        kind: Kind::Regular,
        min_keep,
        // That a pass is to read all files is nothing to claim by.
        full_pass_every: Duration::MAX,
        spreads_full_passes: false,
    }
}

/// What there is to do in a table, by the rules that [`rules`] makes.
///
/// By a catalog that is in doubt nothing is mirrored, as no pass would.
pub fn todo(facts: &Facts<'_>, rules: &Rules) -> Todo {
    let look = facts.look;
    let reasons = work(facts, rules).map(|work| work.reasons).unwrap_or_default();
    let has = |reason| reasons.contains(&reason);
    let is_news = !is_mirrored(look);
    // A text that is mirrored may be refused by now: its column is called otherwise, or it keeps too short.
    let may_be_refused = look.has_property
        && (has(Reason::Unknown)
            || has(Reason::Shape)
            || look.mirror.as_ref().is_some_and(|mirror| {
                Duration::from_secs(mirror.keep_seconds.unsigned_abs()) < rules.min_keep
            }));
    let enforces = look.policy().is_some_and(|policy| policy.mode.parse() == Ok(Mode::Enforce))
        && !has(Reason::Policy);
    // A stored policy wins over whatever the property says.
    let may_enforce = is_news && look.stored.is_none();
    Todo {
        mirrors: !facts.is_in_doubt && (is_news || may_be_refused),
        claims: look.is_parquet
            && (may_enforce || enforces && reasons.into_iter().any(may_have_files)),
    }
}

/// The table, where `tailrace.enforcing_policies` has it: the window in SQL is that of its policy. A property
/// is none before it is mirrored.
pub fn enforced(look: &TableLook, min_keep: Duration) -> Option<Enforced> {
    let mirror = look.mirror.as_ref().filter(|mirror| {
        mirror.problem.is_none() && look.has_property && mirror.property_text == look.property
    });
    let policy = look.stored.as_ref().or(mirror)?;
    let is_enforced = policy.mode.parse() == Ok(Mode::Enforce)
        && Duration::from_secs(policy.keep_seconds.unsigned_abs())
            >= Duration::from_secs(min_keep.as_secs());
    is_enforced.then_some(Enforced {
        catalog_id: look.identity.catalog_id,
        table_id: look.identity.table_id,
        table_uuid: look.identity.table_uuid,
        source_field_id: policy.source_field_id,
    })
}

/// Whether files of the window may have come by what brings work to a pass.
fn may_have_files(reason: Reason) -> bool {
    match reason {
        Reason::Due | Reason::NewFiles => true,
        // What pauses under another policy is looked at by the next pass.
        Reason::PolicyRevision | Reason::GuardRevision => true,
        // The calendar does not tell, or not by how the table is now.
        Reason::Catalog
        | Reason::Unknown
        | Reason::OtherField
        | Reason::Shape
        | Reason::Rules
        | Reason::FullPass => true,
        // What ends is in the calendar all the same, whatever the policy was and whatever a pass has left.
        Reason::Named
        | Reason::Policy
        | Reason::Property
        | Reason::FullScan
        | Reason::Unfinished => false,
    }
}
