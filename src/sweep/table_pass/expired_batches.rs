//! Works in batches: what was found is dropped before more is looked for.

use super::{Enforcement, Reached};
use crate::catalog::tables::TableIdentity;
use crate::events;
use crate::policy::Mode;
use crate::rules::kept::SAMPLES;
use crate::sweep::ask::Ask;
use crate::sweep::evidence::Withheld;
use crate::sweep::expired::ExpiredTuple;
use crate::sweep::expired_batch::Ended;
use crate::sweep::lease::LeasedSession;
use crate::sweep::plan::NOT_PARQUET;
use crate::sweep::sorter::Sorter;
use crate::sweep::waiting::WaitReason;

impl Enforcement<'_> {
    /// Looks values up, oldest first, and drops what it finds, batch after batch; settles the rows of those
    /// that it came to. A file is found by the value at the lookup key of its own spec alone.
    pub(super) async fn look_up(
        &mut self,
        session: &mut LeasedSession<'_>,
        ask: &Ask,
    ) -> anyhow::Result<Reached> {
        let (finder, number) = (self.finder, session.number());
        let mut sorter = Sorter::for_a_look(finder.judge);
        let (mut looked, mut reached) = (0, Reached::All);
        for values in ask.candidates.chunks(finder.scan_limits.values_at_once) {
            if self.is_over() {
                self.drop_found(session, &mut sorter).await?;
                self.work.cut_short();
                reached = Reached::Until;
                break;
            }
            self.has_begun = true;
            let mut pages = finder.with_values(values);
            while let Some(files) = pages.next(session.connection()).await? {
                files.into_iter().for_each(|file| sorter.add(file));
            }
            looked += values.len();
            if self.is_hand_full(&sorter) && !self.drop_found(session, &mut sorter).await?.is_all()
            {
                reached = Reached::Until;
                break;
            }
        }
        if reached.is_all() {
            reached = self.drop_found(session, &mut sorter).await?;
        }
        self.unlooked_from = ask.candidates.get(looked).map(|candidate| candidate.end);
        self.forget_looked(&ask.candidates[..looked]);
        self.settle(session, ask, looked, number, &mut sorter).await?;
        Ok(reached)
    }

    /// Whether it is time to stop. Every time slice of a table gets somewhere, however short it is.
    pub(super) fn is_over(&self) -> bool {
        let gives_way = self.came.is_at_rest && self.context.gives_way();
        let is_slice_over = (self.context.is_over() || gives_way) && self.has_begun;
        is_slice_over || self.context.stop.is_cancelled() || self.context.pass_is_over()
    }

    /// Whether it is time to drop before more is looked for.
    pub(super) fn is_hand_full(&self, sorter: &Sorter<'_>) -> bool {
        sorter.files() >= self.finder.scan_limits.files_at_hand
            || sorter.tuples() >= self.finder.scan_limits.tuples_at_hand
    }

    /// Says which tuples are dropped although statistics name newer rows.
    fn log_newer(&self, tuples: &[ExpiredTuple]) {
        let newer: Vec<_> = tuples.iter().filter(|tuple| tuple.newest.is_some()).collect();
        if newer.is_empty() {
            return;
        }
        let TableIdentity { catalog, namespace, table, .. } = self.finder.table;
        let samples: Vec<_> = newer.iter().take(SAMPLES).map(|tuple| tuple.with_newest()).collect();
        tracing::warn!(
            event = events::NEWER_ROWS_DROPPED,
            catalog,
            namespace,
            table,
            partitions = newer.len(),
            samples = serde_json::to_string(&samples).unwrap_or_default(),
            "Partitions are dropped although their column statistics name newer rows, because \
             guard.cross_check is warn"
        );
    }

    /// Notes tuples that would go, were the policy enforced.
    fn observe(&mut self, expired: Vec<ExpiredTuple>) {
        for mut tuple in expired {
            tuple.ids = Vec::new();
            self.stays(&tuple);
            self.observed.insert(tuple.tuple.clone(), tuple);
        }
    }

    /// Notes tuples that the evidence keeps.
    pub(super) fn withhold(&mut self, withheld: Vec<Withheld>) {
        for mut kept in withheld {
            kept.tuple.ids = Vec::new();
            self.stays(&kept.tuple);
            self.waits(&kept.tuple, WaitReason::Evidence(kept.reason), kept.leaves_at);
            self.withheld.insert(kept.tuple.tuple.clone(), kept);
        }
    }

    /// Drops the tuples that the sorter has and the evidence lets go, and notes those that stay.
    pub(super) async fn drop_found(
        &mut self,
        session: &mut LeasedSession<'_>,
        sorter: &mut Sorter<'_>,
    ) -> anyhow::Result<Reached> {
        anyhow::ensure!(sorter.is_parquet, NOT_PARQUET);
        let tuples = sorter.take();
        if tuples.is_empty() {
            return Ok(Reached::All);
        }
        self.found_any = true;
        let is_whole = sorter.is_whole;
        let tuples = self.set_paused_aside(tuples);
        let examined = self.evidence.examine(session.connection(), tuples, is_whole).await?;
        self.note_writers(session.connection()).await?;
        self.withhold(examined.withheld);
        if self.policy.mode != Mode::Enforce {
            self.observe(examined.expired);
            return Ok(Reached::All);
        }
        let expired = self.within_radius(session, examined.expired).await?;
        let expired_batch = self.asked_for(expired);
        if expired_batch.tuples.is_empty() {
            return Ok(Reached::All);
        }
        self.log_newer(&expired_batch.tuples);
        let end = self.work.run(session, &expired_batch).await;
        for expired in end.kept.iter().filter_map(|at| expired_batch.tuples.get(*at)) {
            self.stays(expired);
        }
        self.note_end(&expired_batch, &end);
        Ok(match end.ended {
            Ended::AllTried => Reached::All,
            Ended::OutOfTime | Ended::Stopped | Ended::GaveUp => Reached::Until,
        })
    }
}
