//! The long part of a full pass: all of the table's files, piece by piece, over as many passes as
//! it takes.

use std::collections::BTreeSet;

use super::{Enforcement, Reached};
use crate::catalog::discovery::TupleOfSpec;
use crate::catalog::live_file::LiveFile;
use crate::catalog::tables::TableIdentity;
use crate::catalog::walk::{Place, walk};
use crate::sweep::census::Census;
use crate::sweep::cursor::{Claim, Reading, Stayed};
use crate::sweep::lease::LeasedSession;
use crate::sweep::lookup::Candidate;
use crate::sweep::plan::NOT_PARQUET;
use crate::sweep::sorter::Sorter;
use crate::window::Verdict;

impl Enforcement<'_> {
    /// Begins a reading where none of this kind is under way.
    pub(super) fn begin_reading(&mut self, is_listing: bool) {
        let under_way = self.memory.reading.as_ref();
        if under_way.is_none_or(|reading| reading.is_listing != is_listing) {
            self.memory.reading = Some(Reading {
                after: Place::START,
                marks: self.marks,
                cutoff: self.cutoff,
                began_at: Some(self.context.now),
                is_listing,
                census: Census::default(),
                stayed: Stayed::default(),
            });
        }
    }

    /// Goes on with the reading, to its end or until the time is over. The expired files that it
    /// meets were overlooked, or it is how they are found.
    ///
    /// What it is remembered with is the last place up to which everything was dealt with: the
    /// pieces after it are read again.
    pub(super) async fn read_on(&mut self, session: &mut LeasedSession<'_>) -> anyhow::Result<()> {
        let Some(reading) = self.memory.reading.clone() else { return Ok(()) };
        self.stayed.merge(&reading.stayed);
        let mut sorter = Sorter::for_commits(self.lookup.judge);
        sorter.is_whole = self.has_index;
        sorter.census = reading.census.clone();
        let mut met: BTreeSet<Candidate> = BTreeSet::new();
        let (mut after, mut pieces) = (reading.after, 0);
        loop {
            let next = self.read_piece(session, after, &mut met, &mut sorter).await?;
            anyhow::ensure!(sorter.is_parquet, NOT_PARQUET);
            pieces += 1;
            let is_time = pieces >= self.lookup.reach.pieces_remembered;
            if next.is_none() || is_time || self.is_time_to_drop(&met, &sorter) {
                if !self.drop_met(session, &mut met, &mut sorter).await?.is_all() {
                    return Ok(());
                }
                let Some(next) = next else { break };
                pieces = 0;
                let census = sorter.census.clone();
                let stayed = self.stayed.clone();
                self.memory.reading =
                    Some(Reading { after: next, census, stayed, ..reading.clone() });
                self.save(session).await?;
            }
            match next {
                Some(next) => after = next,
                None => break,
            }
            self.has_begun = true;
            if self.is_over() {
                if reading.is_listing {
                    self.work.cut_short();
                }
                return Ok(());
            }
        }
        self.memory.reading = None;
        self.memory.census = Some((sorter.census, self.context.now));
        self.memory.full_pass_at = Some(self.context.now);
        if reading.is_listing {
            self.forget_unread(reading.began_at);
        }
        if reading.is_listing && self.claim.is_none() {
            let Reading { marks, cutoff, .. } = reading;
            self.claim = Some(Claim { marks, cutoff, unseen_from: None });
        }
        Ok(())
    }

    /// Reads one piece: what stays is counted, what has expired is noted.
    async fn read_piece(
        &self,
        session: &mut LeasedSession<'_>,
        after: Place,
        met: &mut BTreeSet<Candidate>,
        sorter: &mut Sorter<'_>,
    ) -> sqlx::Result<Option<Place>> {
        let TableIdentity { catalog_id, table_id, .. } = *self.lookup.table;
        let (files, next) =
            walk(session.connection(), catalog_id, table_id, after, self.lookup.reach.piece)
                .await?;
        for file in files {
            match self.text_of_expired(&file) {
                // The tuple is looked up whole, for a partition dies whole; and with it all of its
                // text, so a text that stayed has nothing more that could go.
                Some(text) if self.has_index => {
                    if !self.stayed.has(text.key_index, &text.text) {
                        sorter.is_parquet &= file.is_parquet;
                        met.insert(text);
                    }
                }
                // Without the lookup index it goes as far as it has been read. Of the text that
                // stayed another tuple may lie in a later piece.
                Some(_) if self.has_stayed(&file) => {}
                Some(_) | None => sorter.add(file),
            }
        }
        Ok(next)
    }

    fn has_stayed(&self, file: &LiveFile) -> bool {
        file.spec_id.is_some_and(|spec_id| {
            self.stayed_here.contains(&TupleOfSpec { spec_id, tuple: file.tuple.clone() })
        })
    }

    fn is_time_to_drop(&self, met: &BTreeSet<Candidate>, sorter: &Sorter<'_>) -> bool {
        met.len() >= self.lookup.reach.texts_at_once || self.is_hand_full(sorter)
    }

    /// Drops what the reading met; the census is left as it was.
    async fn drop_met(
        &mut self,
        session: &mut LeasedSession<'_>,
        met: &mut BTreeSet<Candidate>,
        sorter: &mut Sorter<'_>,
    ) -> anyhow::Result<Reached> {
        let lookup = self.lookup;
        let mut candidates: Vec<_> = std::mem::take(met).into_iter().collect();
        candidates.sort_by_key(|candidate| candidate.key_index);
        let census = std::mem::take(&mut sorter.census);
        let lead = |key_index, file: &LiveFile| lookup.is_lead(file, key_index);
        let reached = self.look_up(session, &candidates, i64::MIN, lead, sorter).await?;
        sorter.census = census;
        Ok(reached)
    }

    /// The text by which an expired file's tuple is found; `None` for a file that stays.
    fn text_of_expired(&self, file: &LiveFile) -> Option<Candidate> {
        let judge = self.lookup.judge;
        let Verdict::Expired { range_end, .. } = judge.judge(file.spec_id, &file.tuple) else {
            return None;
        };
        let lead = judge.spec(file.spec_id?)?.lead_position()?;
        Some(Candidate {
            end: range_end,
            key_index: *file.tuple.keys.get(lead)?,
            text: file.tuple.values.get(lead)?.clone()?,
        })
    }
}
