//! Notes what is kept although it has expired, when a pass comes across it.

use super::Enforcement;
use crate::catalog::tables::TableIdentity;
use crate::events;
use crate::rules::instant::UtcInstant;
use crate::sweep::evidence::Withheld;
use crate::sweep::expired::ExpiredTuple;
use crate::sweep::expired_batch::{ExpiredBatch, ExpiredBatchEnd, Stays};
use crate::sweep::waiting::parts::{PartOf, PartState};
use crate::sweep::waiting::{MOST_POISONED, WaitReason, Waiting};

/// So many tuples that are known to fail are tried again in one time slice of a table: each takes the commit
/// lock, most likely for nothing. The others stay due.
const LOOKS: usize = 100;

impl Enforcement<'_> {
    /// Notes of some tuples that they are still there and are left alone by this pass, for they wait and
    /// pause; the others are returned.
    ///
    /// What waits for evidence and has a file that no pass has seen is not among those: the file may show
    /// that a writer goes on with an earlier spec, which takes the proof from other tuples of the table.
    pub(super) fn set_paused_aside(&mut self, expired: Vec<ExpiredTuple>) -> Vec<ExpiredTuple> {
        let now = self.context.now;
        let mut due = Vec::new();
        for mut expired in expired {
            let newest = expired.ids.last().copied();
            let is_seen = newest.is_none_or(|id| id < self.seen_below);
            let evidence = match self.waiting.paused(&expired.tuple, now).map(|one| one.reason) {
                Some(WaitReason::Evidence(reason)) if is_seen => Some(reason),
                Some(WaitReason::Evidence(_)) | None => {
                    due.push(expired);
                    continue;
                }
                Some(WaitReason::Poisoned | WaitReason::Oversize | WaitReason::Busy) => None,
            };
            self.waiting.meet(&expired, now);
            self.stays(&expired);
            if let Some(reason) = evidence {
                expired.ids = Vec::new();
                let (leaves_at, newest) = (None, None);
                let key = expired.tuple.clone();
                self.withheld.insert(key, Withheld { tuple: expired, reason, leaves_at, newest });
            }
        }
        due
    }

    /// A batch of tuples that are due. Known to fail is what the server refused before.
    pub(super) fn asked_for(&mut self, expired: Vec<ExpiredTuple>) -> ExpiredBatch {
        let now = self.context.now;
        let (mut tuples, mut alone) = (Vec::new(), Vec::new());
        for expired in expired {
            if self.waiting.poison(&expired.tuple).is_none() {
                tuples.push(expired);
                continue;
            }
            if self.looked_again < LOOKS {
                self.looked_again += 1;
                alone.push(expired);
                continue;
            }
            self.waiting.meet(&expired, now);
            self.stays(&expired);
        }
        let known = self.waiting.poisoned() + self.suspects.len();
        self.work.may_find(MOST_POISONED.saturating_sub(known));
        let (mut tuples, parts) = self.waiting.parts.sort(tuples);
        let parts_from = tuples.len();
        let by_index = |PartOf { tuples: mut of_part, halvings, state }: PartOf<_>| {
            let from = tuples.len();
            tuples.append(&mut of_part);
            PartOf { tuples: (from..tuples.len()).collect(), halvings, state }
        };
        let parts = parts.into_iter().map(by_index).collect();
        let alone_from = tuples.len();
        tuples.append(&mut alone);
        let late = Some(self.evidence.late_rule());
        let found_below = self.current_watermark.files_below;
        let newest_as_of = self.evidence.newest_as_of();
        ExpiredBatch { tuples, parts_from, parts, alone_from, found_below, late, newest_as_of }
    }

    /// Notes what became of the tuples of a batch.
    pub(super) fn note_end(&mut self, expired_batch: &ExpiredBatch, end: &ExpiredBatchEnd) {
        let now = self.context.now;
        let mut kept = end.kept.iter().peekable();
        let of = |tuples: &[usize]| {
            tuples.iter().filter_map(|at| expired_batch.tuples.get(*at)).collect()
        };
        for PartOf { tuples, halvings, state } in &end.parts {
            let part = PartOf { tuples: of(tuples), halvings: *halvings, state: *state };
            self.waiting.parts.leave(&part, now);
        }
        for (at, expired) in expired_batch.tuples.iter().enumerate() {
            if kept.next_if(|kept| **kept == at).is_none() {
                let poison = self.waiting.went(&expired.tuple);
                self.log_released(poison);
                continue;
            }
            let is_known = at >= expired_batch.alone_from;
            match end.why.get(&at) {
                Some(Stays::Oversize) => self.waits(expired, WaitReason::Oversize, None),
                Some(Stays::Busy) if !is_known => self.waits(expired, WaitReason::Busy, None),
                Some(Stays::FailedAlone { said, words }) if is_known => {
                    self.refused(expired, said, words);
                }
                Some(Stays::FailedAlone { said, words }) => {
                    self.waiting.meet(expired, now);
                    let (tuples, state) = (vec![expired], PartState::Alone);
                    self.waiting.parts.leave(&PartOf { tuples, halvings: 0, state }, now);
                    self.suspects.push((expired.clone(), said.clone(), words.clone()));
                }
                // It was not tried to its end, or says nothing new of a tuple that is known to fail.
                Some(Stays::Busy) | None => self.waiting.meet(expired, now),
            }
        }
        // Others go through, so it is not the table that is at fault; also where they did only after
        // the tuple had failed.
        if self.work.went_through() {
            for (expired, said, words) in std::mem::take(&mut self.suspects) {
                self.refused(&expired, &said, &words);
            }
        }
    }

    /// Notes that a tuple stays, so that the next pass looks it up again.
    pub(super) fn stays(&mut self, expired: &ExpiredTuple) {
        if let Some((key_index, text)) = expired.lookup_value() {
            self.note_left(&expired.tuple, text);
            self.stayed.insert((key_index, text.to_owned()));
        }
        if !self.has_index {
            self.stayed_here.insert(expired.tuple.clone());
        }
    }

    /// Notes why a tuple stays, and when it goes if nothing changes.
    pub(super) fn waits(
        &mut self,
        expired: &ExpiredTuple,
        reason: WaitReason,
        leaves_at: Option<UtcInstant>,
    ) {
        let poison = self.waiting.keep(expired, reason, leaves_at, self.context.now);
        self.log_released(poison);
    }

    /// Has the report of the table say what still waits, whether or not this pass looked at it.
    pub(super) fn report_waiting(&mut self) {
        let oversize = self.waiting.waiting_for(WaitReason::Oversize);
        let oversize = oversize.into_iter().map(Waiting::describe).collect();
        let is_busy = !self.waiting.waiting_for(WaitReason::Busy).is_empty();
        self.work.still_waits(oversize, is_busy);
    }

    /// Forgets what waited, where this pass has looked up all that had expired and did not meet it. A
    /// full scan that finds expired files itself may have met it in an earlier pass.
    pub(super) fn forget_unmet(&mut self) {
        if self.has_seen_all {
            let poisoned = self.waiting.forget_unmet();
            self.waiting.parts.forget_unmet(self.context.now);
            self.log_released(poisoned);
        }
    }

    /// Forgets what waited and was not met since a full scan began that has now come to its end: it has
    /// met every file that had expired by then.
    pub(super) fn forget_unread(&mut self, began_at: UtcInstant) {
        let poisoned = self.waiting.forget_unseen(began_at);
        self.waiting.parts.forget_unmet(began_at);
        self.log_released(poisoned);
    }

    fn refused(&mut self, expired: &ExpiredTuple, said: &str, error: &str) {
        let TableIdentity { catalog, namespace, table, .. } = self.finder.table;
        let told = self.waiting.refuse(expired, said, error.to_owned(), self.context.now);
        let Some(Waiting { next_look, files, tuple, .. }) = told else { return };
        let partition_values = serde_json::to_string(&tuple.values).unwrap_or_default();
        tracing::warn!(
            event = events::TUPLE_POISONED,
            catalog,
            namespace,
            table,
            partition = expired.display,
            spec_id = expired.tuple.spec_id,
            partition_values,
            files,
            error,
            next_look = next_look.map(tracing::field::display),
            "The database refuses to end the files of a partition, and ends others of the table; the \
             partition is retried alone, after growing pauses"
        );
    }

    pub(super) fn log_released(&self, poisoned: impl IntoIterator<Item = Waiting>) {
        let TableIdentity { catalog, namespace, table, .. } = self.finder.table;
        for Waiting { spec_id, tuple, display: partition, since, tries, .. } in poisoned {
            tracing::info!(
                event = events::TUPLE_RELEASED,
                catalog,
                namespace,
                table,
                partition,
                spec_id,
                partition_values = serde_json::to_string(&tuple.values).unwrap_or_default(),
                %since,
                tries,
                "A partition that the database had refused to end is dropped, or is kept for another reason"
            );
        }
    }
}
