//! The blast radius of a pass: what is dropped otherwise than by time alone is counted before the first of it is dropped.
//!
//! The count of a new rule is made before anything is dropped, and what had expired by then is counted whether or not
//! something else keeps it as well: what a hold, or evidence, keeps today goes with the rule when that is over. Late
//! files are counted where passes read them (`late`). Until all that came is read, no tuple is dropped that has a file
//! which was not counted, unless all files of the catalog that are not counted may go. Not counted is what lands in a
//! partition between the look at its files and the commit that ends them: a drop ends it with the partition, as the
//! late rule of a drop allows.
//!
//! Only the session with the catalog's lease writes the memory, so counts are not lost to another daemon. Whatever
//! releases kept tuples is a new revision of the policy or of the guards, and a commit checks both under the lock.

use super::Enforcement;
use crate::catalog::tables::TableIdentity;
use crate::events;
use crate::policy::Mode;
use crate::rules::blast_radius::{Cause, Excess, RuleChange};
use crate::rules::expiry::KeptReason;
use crate::sweep::expired::ExpiredTuple;
use crate::sweep::lease::LeasedSession;
use crate::sweep::radius::{
    Counted, Met, command, count_expired, count_late, digest, excess, keep_back, meet, rule_of,
};
use crate::sweep::sorter::Sorter;

impl Enforcement<'_> {
    /// Meets the rule of this pass: where it is another one than passes followed so far, and nobody has seen what
    /// it drops, counts what has expired by it.
    pub(super) async fn meet_rule(
        &mut self,
        session: &mut LeasedSession<'_>,
    ) -> anyhow::Result<()> {
        let (policy, settings) = (self.policy, self.context.settings);
        if policy.mode != Mode::Enforce {
            return Ok(());
        }
        let retention = self.finder.judge.retention();
        let rule = rule_of(self.book, retention, policy);
        let before = self.memory.rule_change.take();
        let was_held = before.as_ref().is_some_and(RuleChange::holds_any);
        let trusts = settings.trusts_properties;
        let change = match meet(before, &rule, policy, trusts) {
            Met::Known { change, is_trusted } => {
                if is_trusted {
                    self.log_let_go("trusted");
                }
                *change
            }
            Met::New { seen } => {
                let held = match seen {
                    Some(_) => None,
                    None => self.too_many_expired(session).await?,
                };
                if held.is_none() && was_held {
                    self.log_let_go(seen.unwrap_or("changed"));
                }
                let files_below = self.current_watermark.files_below;
                let (excess, expired) = held.unzip();
                let change = RuleChange::new(rule, policy.revision, retention, files_below, excess);
                if let Some((excess, expired)) = excess.zip(expired) {
                    self.log_kept_back(Cause::Change, excess, &change, &expired);
                }
                change
            }
        };
        self.late_before = change.late.files;
        self.memory.rule_change = Some(change);
        self.remember(session).await?;
        Ok(())
    }

    async fn too_many_expired(
        &self,
        session: &mut LeasedSession<'_>,
    ) -> anyhow::Result<Option<(Excess, Counted)>> {
        let (table, now, limits) =
            (self.finder.table, self.context.now, self.context.settings.radius);
        let expired = count_expired(session.connection(), self.finder).await?;
        let too_many = excess(session.connection(), table, expired.files, 0, limits, now).await?;
        Ok(too_many.map(|excess| (excess, expired)))
    }

    /// Whether the reading at hand begins with the first file that is not counted.
    pub(super) fn is_counted_from_here(&self) -> bool {
        let change = self.memory.rule_change.as_ref();
        change.is_none_or(|it| self.memory.watermark.files_below <= it.late.counted_below)
    }

    /// Counts the late ones of expired tuples that are all of the table's.
    pub(super) async fn count_all_late(
        &mut self,
        session: &mut LeasedSession<'_>,
        sorter: &Sorter<'_>,
    ) -> anyhow::Result<()> {
        let Some(change) = &self.memory.rule_change else { return Ok(()) };
        let from = change.late.counted_below;
        let ids = sorter.expired().flat_map(|tuple| &tuple.ids);
        let files = ids.filter(|id| **id >= from).count() as i64;
        self.count_late(files);
        self.settle_late(session, true).await
    }

    /// Counts files whose values had expired when they were read first.
    pub(super) fn count_late(&mut self, files: i64) {
        if let Some(change) = &mut self.memory.rule_change
            && files > 0
            && self.current_watermark.files_below > change.files_below
        {
            change.count_late(files, self.context.now);
        }
    }

    /// Decides about late files, when all that came is read: `is_counted` says whether each was given to
    /// [`Self::count_late`]. Where they may be too many, those are counted that are there and certainly late.
    pub(super) async fn settle_late(
        &mut self,
        session: &mut LeasedSession<'_>,
        is_counted: bool,
    ) -> anyhow::Result<()> {
        let (finder, now, limits) = (self.finder, self.context.now, self.context.settings.radius);
        let (before, current) = (self.late_before, self.current_watermark.files_below);
        let Some(mut change) = self.memory.rule_change.clone() else {
            return Ok(self.remember(session).await?);
        };
        if change.late.counted_below == current {
            return Ok(self.remember(session).await?);
        }
        let may_be_many = !is_counted || !limits.allow(change.late.files, 0);
        if may_be_many && change.late.held.is_none() {
            let late = count_late(session.connection(), finder, &change).await?;
            let there = late.files;
            let files = before.saturating_add(there);
            change.late.files = if is_counted { files.min(change.late.files) } else { files };
            let (table, files) = (finder.table, change.late.files);
            let held = excess(session.connection(), table, files, there, limits, now).await?;
            if let Some(excess) = held {
                self.log_kept_back(Cause::Late, excess, &change, &late);
            }
            change.late.held = held;
        }
        change.late.counted_below = current;
        self.memory.rule_change = Some(change);
        Ok(self.remember(session).await?)
    }

    /// Those of the tuples that may go; the others are withheld, or left for when all late files are read.
    pub(super) async fn within_radius(
        &mut self,
        session: &mut LeasedSession<'_>,
        expired: Vec<ExpiredTuple>,
    ) -> anyhow::Result<Vec<ExpiredTuple>> {
        let Some(change) = self.memory.rule_change.clone() else { return Ok(expired) };
        let expired = self.counted(&change, expired);
        let (table, retention) = (self.finder.table, self.finder.judge.retention());
        let kept = keep_back(session.connection(), table, &change, retention, expired).await?;
        let (expired, kept) = kept;
        self.withhold(kept);
        Ok(expired)
    }

    /// Tuples without files that are not counted; the others stay due.
    fn counted(&mut self, change: &RuleChange, expired: Vec<ExpiredTuple>) -> Vec<ExpiredTuple> {
        let (limits, late) = (self.context.settings.radius, &change.late);
        let current = self.current_watermark.files_below;
        let unread = current.saturating_sub(late.counted_below).max(0);
        // These came while the pass was at it.
        let newest = expired.iter().flat_map(|tuple| &tuple.ids).filter(|id| **id >= current);
        let newest = newest.count() as i64;
        if unread == 0 && newest == 0 {
            return expired;
        }
        if limits.allow(late.files.saturating_add(unread).saturating_add(newest), 0) {
            self.count_late(newest);
            return expired;
        }
        let is_counted =
            |tuple: &ExpiredTuple| tuple.ids.last().is_none_or(|id| *id < late.counted_below);
        let (expired, others): (Vec<_>, Vec<_>) = expired.into_iter().partition(is_counted);
        self.has_uncounted |= !others.is_empty();
        for tuple in &others {
            self.waiting.meet(tuple, self.context.now);
            self.stays(tuple);
        }
        expired
    }

    /// Forgets that anything is kept, where a pass that has met all that had expired met nothing of it.
    pub(super) fn forget_radius(&mut self) {
        let Some(change) = &mut self.memory.rule_change else { return };
        let is_left = |reason| reason == KeptReason::BlastRadius;
        let any_left = self.withheld.values().any(|kept| is_left(kept.reason));
        if self.has_seen_all && change.holds_any() && !any_left {
            change.let_go();
            self.log_let_go("gone");
        }
    }

    fn log_kept_back(&self, cause: Cause, excess: Excess, change: &RuleChange, held: &Counted) {
        let TableIdentity { catalog, namespace, table, .. } = self.finder.table;
        let RuleChange { rule, policy_revision, .. } = change;
        let uuid = self.finder.table.table_uuid;
        let digest = digest(uuid, rule, *policy_revision, &held.partitions);
        let limits = self.context.settings.radius;
        tracing::warn!(
            event = events::BLAST_RADIUS_HELD,
            catalog,
            namespace,
            table,
            cause = cause.name(),
            files = excess.files,
            live_files = excess.live_files,
            min_drop_files = limits.min_drop_files,
            max_drop_fraction = limits.max_drop_fraction,
            partitions = held.partitions.len(),
            command = command(self.finder.table, &digest),
            "More of the table would go at once than guard.max_drop_fraction allows, and not by time alone: \
             these partitions are held until somebody lets them go; others go"
        );
    }

    fn log_let_go(&self, why: &str) {
        let TableIdentity { catalog, namespace, table, .. } = self.finder.table;
        tracing::info!(
            event = events::BLAST_RADIUS_RELEASED,
            catalog,
            namespace,
            table,
            why,
            "Partitions that were held for their number are held no more"
        );
    }
}
