//! The steps by which expired files are found. Each is one bounded statement, or one after
//! another; none holds a transaction open.

use std::collections::BTreeSet;

use anyhow::Context as _;

use super::cursor::{Cursor, Texts};
use super::reach::Reach;
use super::report::RESTORED;
use super::sorter::Sorter;
use crate::catalog::live_file::LiveFile;
use crate::catalog::restore::note_head;
use crate::catalog::session::Session;
use crate::catalog::tables::{Marks, TableIdentity, marks};
use crate::catalog::texts::{FromText, distinct_texts, files_with_texts, have_more_entries};
use crate::catalog::walk::{live_in_ids, live_since};
use crate::instant::UtcInstant;
use crate::window::Judge;
use crate::window::expiring::Expiring;

/// A text to be looked up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// When its range ended: the order in which texts are looked up.
    pub end: UtcInstant,
    /// The key that it is at.
    pub key_index: i32,
    /// The text.
    pub text: String,
}

/// Looks for files of one table.
#[derive(Debug, Clone, Copy)]
pub struct Lookup<'a> {
    /// The table.
    pub table: &'a TableIdentity,
    /// Its judge.
    pub judge: &'a Judge,
    /// How much at once.
    pub reach: &'a Reach,
}

impl Lookup<'_> {
    /// The marks of this moment.
    pub async fn marks(&self, connection: &mut Session) -> anyhow::Result<Marks> {
        marks(connection, self.table.catalog_id).await?.context("the catalog is gone")
    }

    /// The same, with the head noted that they are of: should the catalog be restored to a time before,
    /// whatever is remembered by these marks is told to be of the time after.
    pub async fn noted_marks(
        &self,
        connection: &mut Session,
        now: UtcInstant,
    ) -> anyhow::Result<Marks> {
        let noted = note_head(connection, self.table.catalog_id, now).await?;
        let noted = noted.context("the catalog is gone")?;
        anyhow::ensure!(!noted.is_restored, RESTORED);
        Ok(noted.marks)
    }

    /// All live files of a small table; `None` if it is not one.
    pub async fn small_table(
        &self,
        connection: &mut Session,
    ) -> sqlx::Result<Option<Vec<LiveFile>>> {
        let most = self.reach.small_table;
        let files = self.began_after(connection, i64::MIN, most).await?;
        Ok(files)
    }

    /// The live files that began after a snapshot; `None` if they are more than `most`.
    async fn began_after(
        &self,
        connection: &mut Session,
        snapshot_id: i64,
        most: i64,
    ) -> sqlx::Result<Option<Vec<LiveFile>>> {
        let TableIdentity { catalog_id, table_id, .. } = *self.table;
        let files = live_since(connection, catalog_id, table_id, snapshot_id, most + 1).await?;
        Ok((files.len() as i64 <= most).then_some(files))
    }

    /// The files that came after some marks, by hog_data_file_live: the table's own live files
    /// that began since. Costs nothing where none came, whatever the neighbours commit. `None` where
    /// they are too many to be read at once: a large import, or a long pause.
    pub async fn late(
        &self,
        connection: &mut Session,
        since: Marks,
    ) -> sqlx::Result<Option<Vec<LiveFile>>> {
        self.began_after(connection, since.through_snapshot, self.reach.small_table).await
    }

    /// The table's live files with ids in `[from, before)`, by the primary key: the neighbours'
    /// files of these ids are read with them.
    pub async fn in_ids(
        &self,
        connection: &mut Session,
        from: i64,
        before: i64,
    ) -> sqlx::Result<Vec<LiveFile>> {
        let TableIdentity { catalog_id, table_id, .. } = *self.table;
        live_in_ids(connection, catalog_id, table_id, from, before).await
    }

    /// The catalog's distinct texts at a key that lie between two and may belong to an expired
    /// tuple; `None` if more than `most` had to be read.
    pub async fn expired_texts(
        &self,
        connection: &mut Session,
        key_index: i32,
        between: Option<&(String, String)>,
        most: i64,
    ) -> sqlx::Result<Option<Vec<Candidate>>> {
        let before = between.map(|(_, before)| before.as_str());
        let mut after = between.map(|(after, _)| after.clone());
        let (mut read, mut expired) = (0, Vec::new());
        loop {
            let piece = self.reach.texts_listed.min(most + 1 - read);
            let texts = distinct_texts(
                connection,
                self.table.catalog_id,
                key_index,
                after.as_deref(),
                before,
                piece,
            )
            .await?;
            read += texts.len() as i64;
            if read > most {
                return Ok(None);
            }
            let is_last = (texts.len() as i64) < piece;
            after = texts.last().cloned();
            expired.extend(texts.into_iter().filter_map(|text| {
                let end = self.judge.expiry_of_text(key_index, &text)?;
                Some(Candidate { end, key_index, text })
            }));
            if is_last {
                return Ok(Some(expired));
            }
        }
    }

    /// The texts that come to expire after the cursor and those that it skipped, oldest first;
    /// `None` if they cannot be told, or are too many.
    pub async fn expiring_since(
        &self,
        connection: &mut Session,
        cursor: &Cursor,
    ) -> sqlx::Result<Option<Vec<Candidate>>> {
        let Some(Expiring { texts, between }) = self.expiring(cursor) else { return Ok(None) };
        let most = i64::try_from(self.reach.most_expiring).unwrap_or(i64::MAX);
        let mut candidates = self.candidates(texts);
        for (key_index, all) in &between {
            for between in all {
                let listed =
                    self.expired_texts(connection, *key_index, Some(between), most).await?;
                let Some(listed) = listed else { return Ok(None) };
                candidates.extend(listed);
            }
        }
        candidates.sort_unstable();
        candidates.dedup();
        Ok(Some(candidates))
    }

    /// The same where there is no lookup index; `None` also if some of them can only be listed.
    pub fn expiring_by_name(&self, cursor: &Cursor) -> Option<Vec<Candidate>> {
        let Expiring { texts, between } = self.expiring(cursor)?;
        between.is_empty().then(|| self.candidates(texts))
    }

    fn expiring(&self, cursor: &Cursor) -> Option<Expiring> {
        let most = self.reach.most_expiring;
        let mut expiring = self.judge.expiring(cursor.expired_through, most)?;
        for (key_index, skipped) in &cursor.skipped {
            expiring.texts.entry(*key_index).or_default().extend(skipped.iter().cloned());
        }
        Some(expiring)
    }

    /// Whether some texts have more entries than a small table has files: then the table itself is
    /// the shorter way. (A neighbour may have 100,000 files a day where this table has ten.)
    pub async fn is_crowded(
        &self,
        connection: &mut Session,
        candidates: &[Candidate],
    ) -> sqlx::Result<bool> {
        let mut keys: Vec<i32> = candidates.iter().map(|candidate| candidate.key_index).collect();
        keys.sort_unstable();
        keys.dedup();
        for key_index in keys {
            let texts: Vec<String> = candidates
                .iter()
                .filter(|candidate| candidate.key_index == key_index)
                .map(|candidate| candidate.text.clone())
                .collect();
            let most = self.reach.small_table;
            let more =
                have_more_entries(connection, self.table.catalog_id, key_index, &texts, most);
            if more.await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The table's live files with some texts, which are at one key, and ids from `from_id` on go
    /// to the sorter, but for those that `take` does not want.
    pub async fn with_texts(
        &self,
        connection: &mut Session,
        candidates: &[Candidate],
        from_id: i64,
        take: impl Fn(&LiveFile) -> bool,
        sorter: &mut Sorter<'_>,
    ) -> sqlx::Result<()> {
        let Some(first) = candidates.first() else { return Ok(()) };
        let TableIdentity { catalog_id, table_id, .. } = *self.table;
        let from_text = |candidate: &Candidate| FromText { text: candidate.text.clone(), from_id };
        let mut texts: Vec<FromText> = candidates.iter().map(from_text).collect();
        while !texts.is_empty() {
            let found =
                files_with_texts(connection, catalog_id, table_id, first.key_index, &texts).await?;
            found.files.into_iter().filter(&take).for_each(|file| sorter.add(file));
            texts = found.more;
        }
        Ok(())
    }

    /// Those texts that may belong to an expired tuple, oldest first.
    pub fn candidates(&self, texts: Texts) -> Vec<Candidate> {
        let mut candidates: Vec<Candidate> = texts
            .into_iter()
            .flat_map(|(key_index, texts)| texts.into_iter().map(move |text| (key_index, text)))
            .filter_map(|(key_index, text)| {
                let end = self.judge.expiry_of_text(key_index, &text)?;
                Some(Candidate { end, key_index, text })
            })
            .collect();
        candidates.sort_unstable();
        candidates
    }

    /// Whether a file is found by one of some texts, which are at the keys of time fields.
    pub fn is_found_by(&self, file: &LiveFile, texts: &BTreeSet<(i32, String)>) -> bool {
        let pairs = file.tuple.keys.iter().zip(&file.tuple.values);
        pairs
            .filter_map(|(key, value)| Some((*key, value.clone()?)))
            .any(|pair| texts.contains(&pair))
    }

    /// Whether a key is the one by which a file is found where all expired texts are listed.
    pub fn is_lead(&self, file: &LiveFile, key_index: i32) -> bool {
        let spec = file.spec_id.and_then(|spec_id| self.judge.spec(spec_id));
        let lead = spec.and_then(|spec| spec.keys().get(spec.lead_position()?).copied());
        lead == Some(key_index)
    }
}
