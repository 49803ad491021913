//! The long part of a full pass: it reads all of the table's files, piece by piece, over as many passes as
//! that takes. Without the lookup index, what is due is found in the same way.

use std::collections::BTreeSet;

use super::{Enforcement, Reached};
use crate::catalog::finder::{Candidate, list_expired};
use crate::catalog::live_file::LiveFile;
use crate::catalog::table_files::Place;
use crate::catalog::tuples::TupleOfSpec;
use crate::rules::expiry::Verdict;
use crate::rules::instant::UtcInstant;
use crate::rules::kept::KeptCounts;
use crate::sweep::ask::Ask;
use crate::sweep::calendar::write;
use crate::sweep::lease::LeasedSession;
use crate::sweep::memory::FullScanProgress;
use crate::sweep::plan::NOT_PARQUET;
use crate::sweep::sorter::Sorter;

impl Enforcement<'_> {
    /// Begins a scan of all files, in place of one that only finds what is due where it is to count as a full pass.
    ///
    /// Without the lookup index it takes over what is due by now: the rows go, once it is remembered, and those
    /// of values of which something is left are put in again, by this full scan or, where files land behind it, as
    /// late.
    pub(super) async fn begin_full_scan(
        &mut self,
        session: &mut LeasedSession<'_>,
        is_full: bool,
    ) -> anyhow::Result<()> {
        if !self.is_ours(session) || !is_full && self.memory.full_scan.is_some() {
            return Ok(());
        }
        self.memory.owes_full_pass &= !is_full;
        self.memory.full_scan = Some(FullScanProgress {
            after: Place::START,
            began_at: self.context.now,
            is_listing: !self.has_index,
            list_from: self.has_index.then_some(UtcInstant::EARLIEST),
            is_full,
            kept_counts: KeptCounts::default(),
        });
        if !self.has_index {
            self.remember(session).await?;
            write::remove_due(session.connection(), self.finder.table, self.cutoff).await?;
        }
        Ok(())
    }

    /// The first part of a full pass: all values of the catalog that have expired are looked up, so far as they
    /// were not by an earlier pass. Where they are too many to be listed, the full scan finds them.
    pub(super) async fn list(
        &mut self,
        session: &mut LeasedSession<'_>,
    ) -> anyhow::Result<Reached> {
        let Some(from) = self.list_from() else { return Ok(Reached::All) };
        let most = self.context.settings.max_values;
        let listed = list_expired(session.connection(), &self.finder, most).await?;
        let is_listing = listed.is_none();
        let mut candidates = listed.unwrap_or_default();
        // What stayed was looked up by this pass.
        candidates.retain(|Candidate { end, key_index, text }| {
            *end >= from && !self.stayed.contains(&(*key_index, text.clone()))
        });
        let reached = self.look_up(session, &Ask { candidates, rows: Vec::new() }).await?;
        let list_from = self.unlooked_from.take();
        self.has_seen_all = from == UtcInstant::EARLIEST && list_from.is_none() && !is_listing;
        if self.has_seen_all && reached.is_all() {
            self.waiting.has_met_all();
        }
        if let Some(full_scan) = &mut self.memory.full_scan {
            (full_scan.list_from, full_scan.is_listing) = (list_from, is_listing);
        }
        self.remember(session).await?;
        Ok(reached)
    }

    /// Goes on with the full scan, to its end or until the time is over. The expired files that it
    /// meets were overlooked, or it is how they are found.
    ///
    /// What it is remembered with is the last place up to which everything was dealt with: the
    /// pieces after it are read again.
    pub(super) async fn read_on(&mut self, session: &mut LeasedSession<'_>) -> anyhow::Result<()> {
        let Some(full_scan) = self.memory.full_scan.clone() else { return Ok(()) };
        let mut sorter = match self.has_index {
            true => Sorter::for_commits(self.finder.judge),
            // What stays of values that are due is told by the files.
            false => Sorter::for_a_look(self.finder.judge),
        };
        sorter.is_whole = self.has_index;
        sorter.kept_counts = full_scan.kept_counts.clone();
        let mut met: BTreeSet<Candidate> = BTreeSet::new();
        let (mut after, mut pieces) = (full_scan.after, 0);
        loop {
            let next = self.read_piece(session, after, &mut met, &mut sorter).await?;
            anyhow::ensure!(sorter.is_parquet, NOT_PARQUET);
            pieces += 1;
            let is_time = pieces >= self.finder.scan_limits.pieces_remembered;
            if next.is_none() || is_time || self.is_time_to_drop(&met, &sorter) {
                let reached = self.drop_met(session, &mut met, &mut sorter).await?;
                self.settle_full_scan(session, &mut sorter).await?;
                if !reached.is_all() {
                    return Ok(());
                }
                let Some(next) = next else { break };
                pieces = 0;
                let kept_counts = sorter.kept_counts.clone();
                self.memory.full_scan =
                    Some(FullScanProgress { after: next, kept_counts, ..full_scan.clone() });
                self.remember(session).await?;
                // However short the time slice is, the next one begins further on.
                self.has_begun = true;
            }
            match next {
                Some(next) => after = next,
                None => break,
            }
            if self.is_over() {
                self.settle_full_scan(session, &mut sorter).await?;
                if full_scan.is_listing {
                    self.work.cut_short();
                }
                return Ok(());
            }
        }
        self.memory.full_scan = None;
        if full_scan.is_full {
            self.memory.kept_counts = Some((sorter.kept_counts, self.context.now));
            self.memory.full_pass_at = Some(self.context.now);
        }
        if full_scan.is_listing {
            self.forget_unread(full_scan.began_at);
        }
        Ok(())
    }

    /// Reads one piece: what stays is counted and put into the calendar, what has expired is noted.
    async fn read_piece(
        &mut self,
        session: &mut LeasedSession<'_>,
        after: Place,
        met: &mut BTreeSet<Candidate>,
        sorter: &mut Sorter<'_>,
    ) -> sqlx::Result<Option<Place>> {
        let (files, next) = self.finder.piece(session.connection(), after).await?;
        let mut seen = BTreeSet::new();
        for file in files {
            if let Some(spec_id) = file.spec_id {
                self.note_spec(spec_id);
            }
            match self.text_of_expired(&file) {
                // The tuple is looked up whole, because a partition is dropped whole, and with it every
                // other tuple of this value. So a value of which something was kept needs no second look-up.
                Some(text) if self.has_index => {
                    if !self.stayed.contains(&(text.key_index, text.text.clone())) {
                        sorter.is_parquet &= file.is_parquet;
                        met.insert(text);
                    }
                }
                // Without the lookup index it goes as far as it has been read. Of the text that
                // stayed another tuple may lie in a later piece.
                Some(_) if self.has_stayed(&file) => {}
                Some(_) => sorter.add(file),
                None => {
                    seen.extend(self.finder.lookup_value_of(&file));
                    sorter.add(file);
                }
            }
        }
        self.put_seen(session, seen.into_iter()).await?;
        Ok(next)
    }

    fn has_stayed(&self, file: &LiveFile) -> bool {
        file.spec_id.is_some_and(|spec_id| {
            self.stayed_here.contains(&TupleOfSpec { spec_id, tuple: file.tuple.clone() })
        })
    }

    fn is_time_to_drop(&self, met: &BTreeSet<Candidate>, sorter: &Sorter<'_>) -> bool {
        met.len() >= self.finder.scan_limits.values_at_once || self.is_hand_full(sorter)
    }

    /// Drops what the full scan met; what is counted is left as it was.
    async fn drop_met(
        &mut self,
        session: &mut LeasedSession<'_>,
        met: &mut BTreeSet<Candidate>,
        sorter: &mut Sorter<'_>,
    ) -> anyhow::Result<Reached> {
        if !self.has_index {
            return self.drop_found(session, sorter).await;
        }
        let candidates: Vec<_> = std::mem::take(met).into_iter().collect();
        self.look_up(session, &Ask { candidates, rows: Vec::new() }).await
    }

    /// The text by which an expired file's tuple is found; `None` for a file that stays.
    fn text_of_expired(&self, file: &LiveFile) -> Option<Candidate> {
        let judge = self.finder.judge;
        let Verdict::Expired { range_end, .. } = judge.judge(file.spec_id, &file.tuple) else {
            return None;
        };
        let lookup_key = judge.spec(file.spec_id?)?.lookup_key()?;
        Some(Candidate {
            end: range_end,
            key_index: *file.tuple.keys.get(lookup_key)?,
            text: file.tuple.values.get(lookup_key)?.clone()?,
        })
    }
}
