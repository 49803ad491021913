//! Files that came since the last pass, in partitions that had expired by then: appends of old
//! rows, and outputs of compaction.

use super::{Enforcement, Reached};
use std::collections::BTreeSet;

use crate::catalog::live_file::LiveFile;
use crate::catalog::tables::Marks;
use crate::instant::UtcInstant;
use crate::sweep::lease::LeasedSession;
use crate::sweep::lookup::Candidate;
use crate::sweep::sorter::Sorter;

/// 1900-01-01. Where late files are looked up by every text that can have expired, those of older
/// partitions wait for the next full pass.
const OLDEST: UtcInstant = UtcInstant::from_days(-25_567);

/// How many ids can be read in the time in which one text is looked up.
const IDS_PER_TEXT: i64 = 3;

impl Enforcement<'_> {
    /// Gives the late files to the sorter, and tells up to where they were seen. Those of
    /// `candidates` are left out: they are found with the other files of their tuples.
    ///
    /// Three ways, the shortest first. The table's own live files that began since, by
    /// hog_data_file_live, cost nothing where none came. Are they too many for one statement, there
    /// is the lookup index, which takes as long as there are texts that can have expired, however
    /// many files came; or the primary key, which takes as long as ids were given out since, the
    /// neighbours' among them: whichever is less.
    pub(super) async fn late(
        &mut self,
        session: &mut LeasedSession<'_>,
        since: Marks,
        candidates: &BTreeSet<(i32, String)>,
        sorter: &mut Sorter<'_>,
    ) -> anyhow::Result<(Reached, Marks)> {
        let lookup = self.lookup;
        let is_late_alone = |file: &LiveFile| !lookup.is_found_by(file, candidates);
        if let Some(files) = lookup.late(session.connection(), since).await? {
            files.into_iter().filter(is_late_alone).for_each(|file| sorter.add(file));
            return Ok((Reached::All, self.marks));
        }
        // From here on some of a tuple's files may be dealt with before others are met.
        sorter.is_whole = false;
        if let Some(texts) = self.fewer_texts_than_ids(since) {
            let late = |_, file: &_| is_late_alone(file);
            let reached = self.look_up(session, &texts, since.files_below, late, sorter).await?;
            let marks = if reached.is_all() { self.marks } else { since };
            return Ok((reached, marks));
        }
        let mut from = since.files_below;
        while from < self.marks.files_below {
            let before = from.saturating_add(lookup.reach.piece).min(self.marks.files_below);
            let files = lookup.in_ids(session.connection(), from, before).await?;
            files.into_iter().filter(is_late_alone).for_each(|file| sorter.add(file));
            from = before;
            self.has_begun = true;
            let is_over = self.is_over();
            let is_time = is_over || self.is_hand_full(sorter);
            let is_cut_short = is_time && !self.drop_found(session, sorter).await?.is_all();
            if is_cut_short || is_over {
                self.work.cut_short();
                // The snapshot stays behind: what began after it is looked at again.
                let marks = Marks { files_below: from, ..since };
                return Ok((Reached::Until(None), marks));
            }
        }
        Ok((Reached::All, self.marks))
    }

    fn fewer_texts_than_ids(&self, since: Marks) -> Option<Vec<Candidate>> {
        let ids = self.marks.files_below - since.files_below;
        let most = usize::try_from(ids / IDS_PER_TEXT).unwrap_or(0);
        let most = most.min(self.lookup.reach.most_expiring);
        if !self.has_index {
            return None;
        }
        let expiring = self.lookup.judge.expiring(OLDEST, most)?;
        expiring.between.is_empty().then(|| self.lookup.candidates(expiring.texts))
    }
}
