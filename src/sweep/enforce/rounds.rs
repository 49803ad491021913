//! Rounds: what was found is dropped before more is looked for.

use super::{Enforcement, Reached};
use crate::catalog::live_file::LiveFile;
use crate::catalog::tables::TableIdentity;
use crate::events;
use crate::sweep::census::SAMPLES;
use crate::sweep::evidence::Withheld;
use crate::sweep::lease::LeasedSession;
use crate::sweep::lookup::Candidate;
use crate::sweep::plan::{ExpiredTuple, NOT_PARQUET};
use crate::sweep::round::Ended;
use crate::sweep::sorter::Sorter;
use crate::sweep::waiting::WaitReason;

impl Enforcement<'_> {
    /// Looks texts up, oldest first, with the files of ids from `from_id` on, and drops what it
    /// finds and what the sorter has already, round after round. `take` says which of the files
    /// found at a key count.
    pub(super) async fn look_up(
        &mut self,
        session: &mut LeasedSession<'_>,
        candidates: &[Candidate],
        from_id: i64,
        take: impl Fn(i32, &LiveFile) -> bool,
        sorter: &mut Sorter<'_>,
    ) -> anyhow::Result<Reached> {
        let lookup = self.lookup;
        let mut seen = 0;
        for at_key in candidates.chunk_by(|a, b| a.key_index == b.key_index) {
            for texts in at_key.chunks(lookup.reach.texts_at_once) {
                if self.is_over() {
                    self.drop_found(session, sorter).await?;
                    self.work.cut_short();
                    let unseen = candidates[seen..].iter().map(|candidate| candidate.end).min();
                    return Ok(Reached::Until(unseen));
                }
                self.has_begun = true;
                let wanted = |file: &LiveFile| take(texts[0].key_index, file);
                let connection = session.connection();
                lookup.with_texts(connection, texts, from_id, wanted, sorter).await?;
                seen += texts.len();
                if self.is_hand_full(sorter) && !self.drop_found(session, sorter).await?.is_all() {
                    let unseen = candidates[seen..].iter().map(|candidate| candidate.end).min();
                    return Ok(Reached::Until(unseen));
                }
            }
        }
        self.drop_found(session, sorter).await
    }

    /// Whether it is time to stop. Every turn of a table gets somewhere, however short it is.
    pub(super) fn is_over(&self) -> bool {
        let is_turn_over = self.context.is_over() && self.has_begun;
        is_turn_over || self.context.stop.is_cancelled() || self.context.pass_is_over()
    }

    /// Whether it is time to drop before more is looked for.
    pub(super) fn is_hand_full(&self, sorter: &Sorter<'_>) -> bool {
        sorter.files() >= self.lookup.reach.files_at_hand
            || sorter.tuples() >= self.lookup.reach.tuples_at_hand
    }

    /// Drops what has expired of some files.
    pub(super) async fn drop_files(
        &mut self,
        session: &mut LeasedSession<'_>,
        files: Vec<LiveFile>,
    ) -> anyhow::Result<Reached> {
        let mut sorter = Sorter::for_commits(self.lookup.judge);
        files.into_iter().for_each(|file| sorter.add(file));
        self.drop_found(session, &mut sorter).await
    }

    /// Says which tuples are dropped although statistics name newer rows.
    fn tell_newer(&self, tuples: &[ExpiredTuple]) {
        let newer: Vec<_> = tuples.iter().filter(|tuple| tuple.newest.is_some()).collect();
        if newer.is_empty() {
            return;
        }
        let TableIdentity { catalog, namespace, table, .. } = self.lookup.table;
        let samples: Vec<_> = newer.iter().take(SAMPLES).map(|tuple| tuple.with_newest()).collect();
        tracing::warn!(
            event = events::NEWER_ROWS_DROPPED,
            catalog,
            namespace,
            table,
            partitions = newer.len(),
            samples = serde_json::to_string(&samples).unwrap_or_default(),
            "Partitions are dropped whose column statistics name newer rows than their values, for \
             guard.cross_check is warn"
        );
    }

    /// Notes tuples that the evidence keeps: they are looked up again by each pass.
    fn withhold(&mut self, withheld: Vec<Withheld>) {
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
        let examined = self.evidence.examine(session.connection(), tuples, is_whole).await?;
        self.note_writers(session.connection()).await?;
        self.withhold(examined.withheld);
        let round = self.asked_for(examined.expired);
        if round.tuples.is_empty() {
            return Ok(Reached::All);
        }
        self.tell_newer(&round.tuples);
        let end = self.work.run(session, &round).await;
        for expired in end.kept.iter().filter_map(|at| round.tuples.get(*at)) {
            self.stays(expired);
        }
        self.note_end(&round, &end);
        Ok(match end.ended {
            Ended::AllTried => Reached::All,
            Ended::OutOfTime | Ended::Stopped | Ended::GaveUp => Reached::Until(None),
        })
    }
}
