//! The [blast radius](crate::rules::blast_radius) of passes and plans: which rule is followed, how many files have
//! expired, and which of them are kept.

mod count;

use std::collections::{BTreeSet, HashMap};

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::evidence::Withheld;
use super::expired::ExpiredTuple;
use super::memory::{BookDigest, store};
use super::settings::Settings;
use crate::catalog::finder::Finder;
use crate::catalog::session::Session;
use crate::catalog::tables::{TableIdentity, current_watermark};
use crate::catalog::tuples::TupleOfSpec;
use crate::guards::approval;
use crate::policy::command::shell_word;
use crate::policy::{Policy, Source};
use crate::rules::blast_radius::RuleChange;
use crate::rules::expiry::{KeptReason, Retention, SpecBook};
use crate::rules::hold::HeldPartition;
use crate::rules::instant::UtcInstant;
use count::late_of;
pub use count::{Counted, count_expired, count_late, excess};

/// The digest of what decides which files expire and stay by the policy: the column, the keep, how many of the newest
/// values are kept, the specs and how they are read.
pub fn rule_of(book: &SpecBook, retention: Retention, policy: &Policy) -> String {
    let Retention { source_field_id, keep, .. } = retention;
    let specs = hex::encode(BookDigest::of(book, source_field_id).to_bytes());
    let newest = policy.keep_last.unwrap_or_default();
    format!("{source_field_id} {} {newest} {specs}", keep.as_secs())
}

/// What a rule is to those who follow it.
#[derive(Debug)]
pub enum Met {
    /// The rule that was followed before. `is_trusted`: what expired with it is held no more.
    Known { change: Box<RuleChange>, is_trusted: bool },
    /// Another one, and why nothing is counted by it, where somebody has seen what it drops.
    New { seen: Option<&'static str> },
}

/// Meets a rule, after the one that was followed before. It is another one under each new revision of the policy: nobody
/// knows what the policy was in between.
///
/// Somebody has seen what is dropped by a policy whose setter was shown it, or under which an earlier program made
/// drops, when it is met first; and by a property, where all are trusted.
pub fn meet(
    before: Option<RuleChange>,
    rule: &str,
    policy: &Policy,
    trusts_properties: bool,
) -> Met {
    let is_trusted = policy.source == Source::Property && trusts_properties;
    match before {
        Some(mut change) if change.rule == rule && change.policy_revision == policy.revision => {
            let is_trusted = is_trusted && change.held.take().is_some();
            Met::Known { change: Box::new(change), is_trusted }
        }
        // A confirmation is of the rule that was met first under it.
        Some(change) if change.policy_revision == policy.revision => {
            Met::New { seen: is_trusted.then_some("trusted") }
        }
        _ if policy.is_confirmed => Met::New { seen: Some("confirmed") },
        _ => Met::New { seen: is_trusted.then_some("trusted") },
    }
}

/// What the blast radius makes of a plan: the rule as the next pass would meet it. `expired` are all tuples that
/// have expired by their values, with all of their files.
pub async fn in_plan(
    connection: &mut Session,
    finder: Finder<'_>,
    book: &SpecBook,
    policy: &Policy,
    settings: &Settings,
    expired: &[ExpiredTuple],
) -> sqlx::Result<RuleChange> {
    let (table, retention) = (finder.table, finder.judge.retention());
    let (now, limits) = (retention.now, settings.radius);
    let loaded = store::load(connection, table, retention.source_field_id).await?;
    let stored = loaded.and_then(|loaded| loaded.memory.rule_change);
    let rule = rule_of(book, retention, policy);
    let met = meet(stored, &rule, policy, settings.trusts_properties);
    let mut change = match met {
        Met::Known { change, .. } => *change,
        Met::New { seen } => {
            let files = expired.iter().map(|tuple| tuple.counts.files).sum();
            let held = match seen {
                Some(_) => None,
                None => excess(connection, table, files, 0, limits, now).await?,
            };
            let current = current_watermark(connection, table.catalog_id).await?;
            let files_below = current.map_or(i64::MAX, |current| current.files_below);
            return Ok(RuleChange::new(rule, policy.revision, retention, files_below, held));
        }
    };
    let ids = |tuple: &ExpiredTuple| tuple.ids.clone();
    let from = change.late.counted_below;
    let unread = expired.iter().flat_map(ids).filter(|id| *id >= from).count() as i64;
    let files = change.late.files.saturating_add(unread);
    if change.late.held.is_none() && unread > 0 && !limits.allow(files, 0) {
        let ends = late_ends(&change, expired);
        let there = late_of(connection, table, &ends, retention).await?.len() as i64;
        let files = files.min(change.late.files.saturating_add(there));
        change.late.held = excess(connection, table, files, there, limits, now).await?;
    }
    Ok(change)
}

/// The digest of partitions that are held for their number: of a table, under a rule and a revision of its policy.
pub fn digest(
    table_uuid: Uuid,
    rule: &str,
    policy_revision: i64,
    held: &BTreeSet<HeldPartition>,
) -> String {
    let of = (table_uuid, rule, policy_revision, held);
    // Numbers and lists of texts always serialise.
    let digest = Sha256::digest(serde_json::to_vec(&of).unwrap_or_default());
    hex::encode(&digest[..16])
}

/// The command that approves held partitions, by their digest.
pub fn command(table: &TableIdentity, digest: &str) -> String {
    format!(
        "tailrace approve {} {} --digest {digest}",
        shell_word(&table.catalog),
        shell_word(&format!("{}.{}", table.namespace, table.table)),
    )
}

/// Which partition a tuple is.
pub fn partition_of(tuple: &ExpiredTuple) -> HeldPartition {
    let TupleOfSpec { spec_id, tuple } = &tuple.tuple;
    HeldPartition { spec_id: *spec_id, values: tuple.values.clone() }
}

/// The partitions of a table that are held for their number, but for approvals.
#[derive(Debug)]
pub struct HeldBack<'a> {
    change: &'a RuleChange,
    late: BTreeSet<i64>,
    approved: HashMap<HeldPartition, i64>,
}

impl<'a> HeldBack<'a> {
    /// Reads what says whether these tuples are held. `ids` are all of their files that were there when they were
    /// looked for.
    pub async fn read(
        connection: &mut Session,
        table: &TableIdentity,
        change: &'a RuleChange,
        retention: Retention,
        tuples: &[ExpiredTuple],
    ) -> sqlx::Result<Self> {
        let (mut late, mut approved) = (BTreeSet::new(), HashMap::new());
        if change.holds_any() {
            let RuleChange { rule, policy_revision, .. } = change;
            approved = approval::of_table(connection, table, rule, *policy_revision).await?;
        }
        if change.late.held.is_some() {
            late = late_of(connection, table, &late_ends(change, tuples), retention).await?;
        }
        Ok(HeldBack { change, late, approved })
    }

    /// Whether a tuple is held unless it is approved: whole, where it had expired with the change, or one of its files is
    /// late.
    fn concerns(&self, tuple: &ExpiredTuple) -> bool {
        self.change.held.is_some() && self.change.came_with(tuple.range_end)
            || tuple.ids.iter().any(|id| self.late.contains(id))
    }

    /// Whether it is approved. With twice the files that it had it is not what was approved.
    fn approves(&self, tuple: &ExpiredTuple) -> bool {
        let files = self.approved.get(&partition_of(tuple));
        files.is_some_and(|files| tuple.counts.files < files.saturating_mul(2))
    }

    /// Whether it is held.
    pub fn holds(&self, tuple: &ExpiredTuple) -> bool {
        self.concerns(tuple) && !self.approves(tuple)
    }
}

/// What of a table is held for its number, as a plan has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptBack {
    pub change: RuleChange,
    /// Which partitions, with how they are read and how many files they have.
    pub partitions: Vec<(HeldPartition, String, i64)>,
    /// Of these partitions.
    pub digest: String,
}

impl KeptBack {
    /// Of all tuples that have expired by their values; `None` where nothing is held.
    pub async fn read(
        connection: &mut Session,
        table: &TableIdentity,
        change: &RuleChange,
        retention: Retention,
        expired: &[ExpiredTuple],
    ) -> sqlx::Result<Option<Self>> {
        if !change.holds_any() {
            return Ok(None);
        }
        let held = HeldBack::read(connection, table, change, retention, expired).await?;
        let tuples = expired.iter().filter(|tuple| held.holds(tuple));
        let named =
            tuples.map(|tuple| (partition_of(tuple), tuple.display.clone(), tuple.counts.files));
        let partitions: Vec<_> = named.collect();
        let set = partitions.iter().map(|(partition, ..)| partition.clone()).collect();
        let RuleChange { rule, policy_revision, .. } = change;
        let digest = digest(table.table_uuid, rule, *policy_revision, &set);
        let is_any = !partitions.is_empty();
        Ok(is_any.then(|| KeptBack { change: change.clone(), partitions, digest }))
    }
}

fn late_ends(change: &RuleChange, tuples: &[ExpiredTuple]) -> HashMap<i64, UtcInstant> {
    let mut ends = HashMap::new();
    for tuple in tuples {
        let may_be = tuple.ids.iter().filter(|id| change.may_be_late(**id));
        ends.extend(may_be.map(|id| (*id, tuple.range_end)));
    }
    ends
}

/// Separates tuples that may go from those that are held for their number; of the former those that are approved are
/// marked.
pub async fn keep_back(
    connection: &mut Session,
    table: &TableIdentity,
    change: &RuleChange,
    retention: Retention,
    expired: Vec<ExpiredTuple>,
) -> sqlx::Result<(Vec<ExpiredTuple>, Vec<Withheld>)> {
    if !change.holds_any() {
        return Ok((expired, Vec::new()));
    }
    let held = HeldBack::read(connection, table, change, retention, &expired).await?;
    let (mut may_go, mut kept) = (Vec::new(), Vec::new());
    for tuple in expired {
        if held.holds(&tuple) {
            let (reason, leaves_at, newest) = (KeptReason::BlastRadius, None, None);
            kept.push(Withheld { tuple, reason, leaves_at, newest });
        } else {
            may_go.push(ExpiredTuple { is_approved: held.concerns(&tuple), ..tuple });
        }
    }
    Ok((may_go, kept))
}
