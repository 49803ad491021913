//! The steps by which expired files are found. Each is one bounded statement, or one after
//! another; none holds a transaction open.

use anyhow::Context as _;

use super::reach::Reach;
use super::report::RESTORED;
use super::sorter::Sorter;
use crate::catalog::live_file::LiveFile;
use crate::catalog::restore::note_head;
use crate::catalog::session::Session;
use crate::catalog::tables::{Marks, TableIdentity, marks};
use crate::catalog::texts::{FromText, distinct_texts, files_with_texts, have_more_entries};
use crate::catalog::walk::live_since;
use crate::rules::expiry::Judge;
use crate::rules::instant::UtcInstant;

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
        let noted = note_head(connection, self.table.catalog_id, now);
        let noted = noted.await?.context("the catalog is gone")?;
        anyhow::ensure!(!noted.is_restored, RESTORED);
        Ok(noted.marks)
    }

    /// All live files of a small table; `None` if it is not one.
    pub async fn small_table(
        &self,
        connection: &mut Session,
    ) -> sqlx::Result<Option<Vec<LiveFile>>> {
        self.began_after(connection, i64::MIN, self.reach.small_table).await
    }

    /// The live files that began after a snapshot; `None` if they are more than `most`.
    pub async fn began_after(
        &self,
        connection: &mut Session,
        snapshot_id: i64,
        most: i64,
    ) -> sqlx::Result<Option<Vec<LiveFile>>> {
        let TableIdentity { catalog_id, table_id, .. } = *self.table;
        let files = live_since(connection, catalog_id, table_id, snapshot_id, most + 1).await?;
        Ok((files.len() as i64 <= most).then_some(files))
    }

    /// The next of the catalog's distinct texts at a key: those after one and before another, at most
    /// `reach.texts_listed`, and the one after which they go on.
    pub async fn texts(
        &self,
        connection: &mut Session,
        key_index: i32,
        after: Option<&str>,
        before: Option<&str>,
    ) -> sqlx::Result<(Vec<String>, Option<String>)> {
        let (catalog_id, most) = (self.table.catalog_id, self.reach.texts_listed);
        let texts = distinct_texts(connection, catalog_id, key_index, after, before, most).await?;
        let is_last = (texts.len() as i64) < most;
        let next = texts.last().filter(|_| !is_last).cloned();
        Ok((texts, next))
    }

    /// The catalog's distinct texts at a key that may belong to an expired tuple; `None` if more than
    /// `most` had to be read.
    pub async fn expired_texts(
        &self,
        connection: &mut Session,
        key_index: i32,
        most: i64,
    ) -> sqlx::Result<Option<Vec<Candidate>>> {
        let (mut read, mut expired) = (0, Vec::new());
        let mut after: Option<String> = None;
        loop {
            let (texts, next) = self.texts(connection, key_index, after.as_deref(), None).await?;
            read += texts.len() as i64;
            if read > most {
                return Ok(None);
            }
            expired.extend(texts.into_iter().filter_map(|text| {
                let end = self.judge.expiry_of_text(key_index, &text)?;
                Some(Candidate { end, key_index, text })
            }));
            if next.is_none() {
                return Ok(Some(expired));
            }
            after = next;
        }
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

    /// The table's live files with some texts, which are at one key, go to the
    /// sorter, but for those that `take` does not want.
    pub async fn with_texts(
        &self,
        connection: &mut Session,
        candidates: &[Candidate],
        take: impl Fn(&LiveFile) -> bool,
        sorter: &mut Sorter<'_>,
    ) -> sqlx::Result<()> {
        let Some(first) = candidates.first() else { return Ok(()) };
        let TableIdentity { catalog_id, table_id, .. } = *self.table;
        let from_text =
            |candidate: &Candidate| FromText { text: candidate.text.clone(), from_id: i64::MIN };
        let mut texts: Vec<FromText> = candidates.iter().map(from_text).collect();
        while !texts.is_empty() {
            let found = files_with_texts(connection, catalog_id, table_id, first.key_index, &texts);
            let found = found.await?;
            found.files.into_iter().filter(&take).for_each(|file| sorter.add(file));
            texts = found.more;
        }
        Ok(())
    }

    /// The spec and the lead value of a file; `None` where it has no such.
    pub fn lead_of(&self, file: &LiveFile) -> Option<(i64, Option<String>)> {
        let spec_id = file.spec_id?;
        let lead = self.judge.spec(spec_id)?.lead_position()?;
        Some((spec_id, file.tuple.values.get(lead)?.clone()))
    }

    /// Whether a key is the one by which a file is found where all expired texts are listed.
    pub fn is_lead(&self, file: &LiveFile, key_index: i32) -> bool {
        let spec = file.spec_id.and_then(|spec_id| self.judge.spec(spec_id));
        let lead = spec.and_then(|spec| spec.keys().get(spec.lead_position()?).copied());
        lead == Some(key_index)
    }
}

/// Every text at the keys of time fields that may belong to an expired tuple, oldest first; `None`
/// if the catalog has more than `most` distinct texts there.
pub async fn list_expired(
    connection: &mut Session,
    lookup: &Lookup<'_>,
    most: i64,
) -> sqlx::Result<Option<Vec<Candidate>>> {
    let mut candidates = Vec::new();
    for key_index in lookup.judge.lead_keys() {
        let listed = lookup.expired_texts(connection, key_index, most).await?;
        let Some(listed) = listed else { return Ok(None) };
        candidates.extend(listed);
    }
    candidates.sort_unstable();
    Ok(Some(candidates))
}
