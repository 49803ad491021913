//! Which tables and catalogs a pass works on, and in which order. Pure: [`crate::catalog::triage`] reads the
//! facts.
//!
//! A table is left out only where every fact that could bring work says that there is none; where a fact is
//! unknown, the table is worked on. A table that is left out has the report of its last pass.

use std::time::Duration;

use uuid::Uuid;

use super::memory::{RULES_NUMBER, full_pass_due_at};
use super::report::{Counted, Outcome, TableReport};
use super::settings::Kind;
use crate::catalog::triage::catalogs::CatalogLook;
use crate::catalog::triage::tables::{PolicyLook, StateLook, TableLook};
use crate::catalog::triage::work::EarliestEnds;
use crate::policy::Mode;
use crate::rules::clock_guard::{Memory, Reading, decide};
use crate::rules::fair_queue::Steps;
use crate::rules::instant::UtcInstant;

#[cfg(test)]
pub(crate) mod tests;

/// Why a table has work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Somebody named it.
    Named,
    /// Its catalog is in doubt: see [`CatalogReason::is_doubt`].
    Catalog,
    /// It is governed in a way that is not followed, or that this program does not know.
    Policy,
    /// Its property says something else than was mirrored.
    Property,
    /// No pass remembers anything of the table with this UUID.
    Unknown,
    /// What is remembered is of another column.
    OtherField,
    /// The policy is another one than that of the last pass that looked at everything.
    PolicyRevision,
    /// A pause or a hold of the catalog was added or taken away since that pass.
    GuardRevision,
    /// Names, specs or columns may have changed.
    Shape,
    /// The calendar is of a program that dated values by other rules.
    Rules,
    /// Something has fallen due, and its pause is over.
    Due,
    /// Live files began after the watermark.
    NewFiles,
    /// All of its files are being read.
    FullScan,
    /// A full pass is owed or due.
    FullPass,
    /// The last pass did not look at everything.
    Unfinished,
}

/// Why a catalog is leased and looked after, whether or not a table of it has work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CatalogReason {
    /// It lacks what it must have.
    NotWhole,
    /// It was restored to an earlier time.
    Restored,
    /// Its clock is refused, was so, was accepted by a person, or was never asked.
    Clock,
    /// Specs are to be copied, or copies to be dated.
    Specs,
    /// Marks of specs are to be noted or taken back.
    Marks,
}

impl CatalogReason {
    /// Whether it may be that nothing is as it was noted, so that every table of the catalog has work.
    pub fn is_doubt(self) -> bool {
        matches!(self, Self::NotWhole | Self::Restored | Self::Clock)
    }
}

/// What a table is judged by.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The table, its policy, and what was noted of it.
    pub look: &'a TableLook,
    /// The catalog's `schema_version`.
    pub schema_version: i64,
    /// The table's shape; asked where that version moved since it was noted.
    pub shape: Option<&'a str>,
    /// What is in its calendar.
    pub ends: EarliestEnds,
    /// A live file began after its watermark.
    pub has_new_files: bool,
    /// Somebody named it.
    pub is_named: bool,
    /// Its catalog is in doubt.
    pub is_in_doubt: bool,
}

/// By what a pass judges.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The time of every decision.
    pub now: UtcInstant,
    /// What the pass is for.
    pub kind: Kind,
    /// The shortest `keep` that is acted upon.
    pub min_keep: Duration,
    /// How long after a full pass over a table the next one is due.
    pub full_pass_every: Duration,
    /// Whether those of many tables are spread.
    pub spreads_full_passes: bool,
}

/// That a table has work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    pub reasons: Vec<Reason>,
    /// What is done of it.
    pub steps: Steps,
}

/// Whether a table has work; `None` where it is left out.
pub fn work(facts: &Facts<'_>, rules: &Rules) -> Option<Work> {
    let reasons = match rules.kind {
        Kind::Regular => reasons(facts, rules),
        Kind::Wake => wakes_for(facts, rules).then_some(Reason::Due).into_iter().collect(),
    };
    let is_for_more = |reason: &Reason| !matches!(reason, Reason::Due | Reason::NewFiles);
    let steps = Steps {
        // Rows of another column say nothing of this one.
        due: overdue(facts, rules).filter(|_| !reasons.contains(&Reason::OtherField)),
        late: facts.has_new_files,
        rest: reasons.iter().any(is_for_more),
    };
    (!reasons.is_empty()).then_some(Work { reasons, steps })
}

fn reasons(facts: &Facts<'_>, rules: &Rules) -> Vec<Reason> {
    let look = facts.look;
    let mut reasons = Vec::new();
    let mut note = |holds: bool, reason: Reason| {
        if holds {
            reasons.push(reason);
        }
    };
    note(facts.is_named, Reason::Named);
    note(facts.is_in_doubt, Reason::Catalog);
    let Some(policy) = look.policy() else {
        note(true, Reason::Property);
        return reasons;
    };
    let mode = policy.mode.parse::<Mode>();
    note(is_refused(look, policy, rules) || mode.is_err(), Reason::Policy);
    note(has_other_property(look), Reason::Property);
    if mode == Ok(Mode::Paused) {
        return reasons;
    }
    let Some(state) = &look.state else {
        note(true, Reason::Unknown);
        return reasons;
    };
    note(state.source_field_id != policy.source_field_id, Reason::OtherField);
    note(state.policy_revision != Some(policy.revision), Reason::PolicyRevision);
    note(state.guard_revision != look.guard_revision, Reason::GuardRevision);
    let is_as_it_was = state.schema_version == Some(facts.schema_version)
        || facts.shape.is_some() && facts.shape == state.shape.as_deref();
    note(!is_as_it_was, Reason::Shape);
    note(state.rules != Some(RULES_NUMBER.into()), Reason::Rules);
    note(overdue(facts, rules).is_some(), Reason::Due);
    note(facts.has_new_files, Reason::NewFiles);
    note(state.is_reading, Reason::FullScan);
    note(owes_full_pass(state, look.identity.table_uuid, rules), Reason::FullPass);
    note(!state.outcome.as_deref().is_some_and(stands), Reason::Unfinished);
    reasons
}

/// Whether a pass refuses to go by the policy: then it says so, each time.
fn is_refused(look: &TableLook, policy: &PolicyLook, rules: &Rules) -> bool {
    let keep = Duration::from_secs(policy.keep_seconds.unsigned_abs());
    policy.problem.is_some() || !look.is_parquet || keep < rules.min_keep
}

/// Whether the property says something that no pass has looked at. Where a stored policy wins over it a
/// pass has nothing more to do with one that cannot be followed than to log it, once.
fn has_other_property(look: &TableLook) -> bool {
    if look.has_property && look.property.is_none() {
        return true;
    }
    let is_known = match (&look.stored, &look.state) {
        (Some(_), Some(state)) => {
            look.property.is_some() && state.property.as_deref() == look.property.as_deref()
        }
        _ => false,
    };
    !is_mirrored(look) && !is_known
}

/// Whether the mirror says what the property does, and is followed; also where there is neither.
pub fn is_mirrored(look: &TableLook) -> bool {
    let mirrored = look.mirror.as_ref().map(|mirror| mirror.property_text.as_deref());
    mirrored.flatten() == look.property.as_deref()
        && mirrored.is_some() == look.has_property
        && look.mirror.as_ref().is_none_or(|mirror| mirror.problem.is_none())
}

/// By how many nanoseconds the earliest row is overdue that is to be looked at, if any is. What a policy that
/// observes would drop is told when it falls due, and not in each pass after that.
fn overdue(facts: &Facts<'_>, rules: &Rules) -> Option<i128> {
    let policy = facts.look.policy()?;
    let ended = match policy.mode.parse::<Mode>().ok()? {
        Mode::Enforce => facts.ends.any,
        Mode::Observe => facts.ends.since_looked,
        Mode::Paused => None,
    };
    let cutoff = cutoff(policy, rules.now);
    let by = cutoff.nanos() - ended?.nanos();
    (by >= 0).then_some(by)
}

fn cutoff(policy: &PolicyLook, now: UtcInstant) -> UtcInstant {
    now.minus(Duration::from_secs(policy.keep_seconds.unsigned_abs()))
}

/// Whether a pass that was woken works on it: it enforces, something is due, and it is not to be quiet.
fn wakes_for(facts: &Facts<'_>, rules: &Rules) -> bool {
    let Some(policy) = facts.look.policy() else { return false };
    let quiet_until = facts.look.state.as_ref().and_then(|state| state.quiet_until);
    policy.mode.parse() == Ok(Mode::Enforce)
        && !is_refused(facts.look, policy, rules)
        && overdue(facts, rules).is_some()
        && quiet_until.is_none_or(|until| UtcInstant::from(until) <= rules.now)
}

fn owes_full_pass(state: &StateLook, table_uuid: Uuid, rules: &Rules) -> bool {
    let is_due = state.full_pass_at.is_none_or(|at| {
        let (every, are_spread) = (rules.full_pass_every, rules.spreads_full_passes);
        full_pass_due_at(at.into(), table_uuid, every, are_spread) <= rules.now
    });
    state.owes_full_pass || is_due
}

/// Whether an outcome is one after which there is nothing to do until something changes. All others ask for
/// another pass.
pub fn stands(outcome: &str) -> bool {
    standing(outcome).is_some()
}

fn standing(outcome: &str) -> Option<Outcome> {
    const STANDING: [Outcome; 7] = [
        Outcome::Dropped,
        Outcome::NothingToDo,
        Outcome::Observed,
        Outcome::Busy,
        Outcome::Poisoned,
        Outcome::Oversize,
        Outcome::Unhealthy,
    ];
    STANDING.into_iter().find(|standing| standing.name() == outcome)
}

/// The report of a table that is left out: how its last pass ended, and what it counted. `column` is what the
/// policy's column is called now.
pub fn left_out(look: &TableLook, column: Option<&str>, now: UtcInstant) -> Option<TableReport> {
    let policy = look.policy()?;
    let mode = policy.mode.parse::<Mode>().ok()?;
    let state = look.state.as_ref().filter(|_| mode != Mode::Paused);
    let outcome = match (mode, state.and_then(|state| standing(state.outcome.as_deref()?))) {
        (Mode::Paused, _) => Outcome::Paused,
        // What was dropped is told in the report of the pass that did it.
        (_, Some(Outcome::Dropped) | None) => Outcome::NothingToDo,
        (_, Some(outcome)) => outcome,
    };
    let error = state.and_then(|state| state.error.clone());
    let counted = state.and_then(|state| state.counted);
    Some(TableReport {
        field: Some(policy.field.clone()),
        column: column.map(str::to_owned),
        keep: Some(policy.keep.clone()),
        cutoff: Some(cutoff(policy, now)),
        full: (mode == Mode::Enforce).then_some(false),
        counted: counted.filter(|_| mode == Mode::Enforce).map(
            |(undatable_files, uncovered_files, at)| Counted {
                undatable_files,
                uncovered_files,
                at: at.into(),
            },
        ),
        ..TableReport::new(&look.identity, outcome, error)
    })
}

/// What is known of a catalog beside [`CatalogLook`].
#[derive(Debug, Clone, Copy)]
pub struct CatalogFacts<'a> {
    pub look: &'a CatalogLook,
    /// It was compared at length, and was restored.
    pub is_restored: bool,
    /// What is remembered of its clock.
    pub memory: &'a Memory,
    /// A mark is due to be noted.
    pub has_due_marks: bool,
}

/// Why a catalog is leased and looked after, whatever its tables: empty where it need not be.
pub fn catalog_reasons(
    facts: &CatalogFacts<'_>,
    reading: &Reading,
    max_skew: Duration,
) -> Vec<CatalogReason> {
    let look = facts.look;
    let is_clock_fine = decide(reading, facts.memory, max_skew)
        .is_ok_and(|fine| !fine.starts_epoch && !fine.is_by_hand)
        && facts.memory.accepted.is_some()
        && !look.is_behind;
    let has_old_specs = look.specs_copied_at_version != Some(look.schema_version);
    [
        (!look.is_whole, CatalogReason::NotWhole),
        (facts.is_restored, CatalogReason::Restored),
        (!is_clock_fine, CatalogReason::Clock),
        (has_old_specs || look.has_undated_copies, CatalogReason::Specs),
        (look.has_older_epoch || facts.has_due_marks, CatalogReason::Marks),
    ]
    .into_iter()
    .filter_map(|(holds, reason)| holds.then_some(reason))
    .collect()
}

/// How long what is remembered of an accepted clock may stay as it is where nothing else is to be done.
const CLOCK_STANDS: Duration = Duration::from_secs(3_600);

/// Whether it is to be remembered anew that a clock which is accepted was so: what is remembered is old, or
/// of another process, which cannot compare its CLOCK_BOOTTIME with this one's.
pub fn is_stale(memory: &Memory, reading: &Reading) -> bool {
    memory.accepted.is_none_or(|accepted| {
        let of = |boot: Option<crate::rules::clock_guard::Boot>| boot.map(|boot| boot.process);
        accepted.now.plus(CLOCK_STANDS) <= reading.database
            || of(reading.boot).is_some() && of(accepted.boot) != of(reading.boot)
    })
}
