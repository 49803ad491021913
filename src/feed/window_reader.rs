//! Reads a window by keyset pagination: chunk after chunk of each list, in the order of its keys.

use std::collections::VecDeque;

use super::{OUTLINE, below_floor, edges, failed, names};
use crate::catalog::changefeed::{self, DataFile, DeleteFile, Key, Section};
use crate::catalog::session::Session;
use crate::catalog::tables::TableIdentity;
use crate::events;
use crate::explicit::problem::Problem;

/// The most entries of a chunk.
pub const CHUNK: usize = 1000;

/// The most keys that are fetched, and kept, ahead of their rows: 16 bytes each. A snapshot that
/// has more is read once for each block of it.
pub const BLOCK: usize = 50_000;

/// Entries of one list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// Of `files`.
    Files(Vec<DataFile>),
    /// Of `delete_files`.
    DeleteFiles(Vec<DeleteFile>),
    /// Of `ended_files`.
    EndedFiles(Vec<DataFile>),
}

impl Chunk {
    /// How many entries it has; never none.
    pub fn entries(&self) -> usize {
        match self {
            Self::Files(files) | Self::EndedFiles(files) => files.len(),
            Self::DeleteFiles(vectors) => vectors.len(),
        }
    }
}

/// The reader of one window. Whatever the window holds, it keeps at most the outline of 1,000 snapshots and
/// [`BLOCK`] keys, and gives at most [`CHUNK`] entries at a time.
///
/// A window is (from, to] with `to` at or before the head, and is read in many transactions. Meanwhile
/// others commit, and the keys of the window do not move: `begin_snapshot` never changes, and
/// `end_snapshot` is set once, to an id above the head, so that a row that is open, or ended after `to`,
/// never comes to end inside the window. A scan in the order of keys sees each once. (The hydrator
/// changes a file's `stats_state`; it is told as it is found.)
#[derive(Debug)]
pub struct WindowReader {
    /// The table, as it was called when the window was opened.
    pub table: TableIdentity,
    /// The window begins after it.
    pub from: i64,
    /// The window's last snapshot.
    pub to: i64,
    /// Whether ended files are listed.
    pub ended_files: bool,
    section: Section,
    /// The last entry that was sent.
    told: Option<(Section, Key)>,
    /// The section's snapshots up to here have been outlined.
    outlined: i64,
    /// Of those, the ones with rows whose keys have not been fetched.
    outline: VecDeque<Key>,
    /// The ones whose keys are being fetched, and the last key that was.
    open: Vec<i64>,
    fetched: Key,
    /// Keys that were fetched and are yet to be sent.
    keys: VecDeque<Key>,
}

impl WindowReader {
    pub(super) fn new(table: TableIdentity, from: i64, to: i64, ended_files: bool) -> Self {
        WindowReader {
            table,
            from,
            to,
            ended_files,
            section: Section::Files,
            told: None,
            outlined: from,
            outline: VecDeque::new(),
            open: Vec::new(),
            fetched: (from, i64::MAX),
            keys: VecDeque::new(),
        }
    }

    /// Goes on behind an entry.
    pub(super) fn resume(mut self, section: Section, after: Key) -> Self {
        self.section = section;
        self.told = Some((section, after));
        self.outlined = after.0;
        self.open = vec![after.0];
        self.fetched = after;
        self
    }

    /// The section and key of the last entry that was sent.
    pub(super) fn place(&self) -> Option<(Section, Key)> {
        self.told
    }

    /// The next entries, at most `most` of them and at most [`CHUNK`]; `None` at the end of the
    /// window. One short transaction, which takes no lock; the session must not be in one.
    ///
    /// # Errors
    /// 410 if the floor has passed the window's beginning, 409 if the table is gone: then what
    /// was told before is all that will be, and the window is not complete. 500 for what the
    /// database says, 503 where it is lost on the way; both are logged here.
    pub async fn next(
        &mut self,
        connection: &mut Session,
        most: usize,
    ) -> Result<Option<Chunk>, Problem> {
        let mut state = changefeed::begin(connection).await.map_err(|error| self.failed(&error))?;
        // Expiry deletes files and vectors whose `end_snapshot` is at or below the floor, and a vector whose
        // file is. Everything in the window began after `from`, so it ends later still; an ended
        // file ended after `from`. While the floor is at or below `from`, no such row can go, and neither can
        // a snapshot of the window with its changes, for only those below the floor are deleted.
        //
        // A look before or after the read would not do: rows may go between the two. In this REPEATABLE READ
        // transaction floor and rows are of one state, and the floor is committed before the first row is
        // purged for it, so a state that lacks a row shows the floor that took it. That rows outlive the floor
        // for a while, because purging goes in pages, makes no difference: nobody asks whether they are
        // still there.
        let floor = edges(&mut state, &self.table).await?.floor;
        if self.from < floor {
            return Err(below_floor(self.from, floor));
        }
        while self.keys.is_empty() {
            let has_more = self.fetch_keys(&mut state).await;
            if !has_more.map_err(|error| self.failed(&error))? && !self.enter_next_section() {
                return Ok(None);
            }
        }
        let keys: Vec<Key> = self.keys.drain(..most.min(CHUNK).min(self.keys.len())).collect();
        let ids: Vec<i64> = keys.iter().map(|(_, id)| *id).collect();
        let chunk = self.rows(&mut state, &ids).await.map_err(|error| self.failed(&error))?;
        state.commit().await.map_err(|error| self.failed(&error))?;
        if chunk.entries() != keys.len() {
            return Err(self.damaged(keys.len() - chunk.entries()));
        }
        self.told = keys.last().map(|key| (self.section, *key)).or(self.told);
        Ok(Some(chunk))
    }

    /// Fetches the section's next block of keys; false if there are none left.
    async fn fetch_keys(&mut self, state: &mut Session) -> sqlx::Result<bool> {
        let (table, section) = (&self.table, self.section);
        loop {
            if !self.open.is_empty() {
                let limit = BLOCK as i64;
                let keys =
                    changefeed::keys(&mut *state, section, table, &self.open, self.fetched, limit);
                self.keys = keys.await?.into();
                if self.keys.len() < BLOCK {
                    self.open.clear();
                }
                if let Some(last) = self.keys.back() {
                    self.fetched = *last;
                    return Ok(true);
                }
            }
            if self.outline.is_empty() {
                if self.outlined >= self.to {
                    return Ok(false);
                }
                let (after, to) = (self.outlined, self.to);
                let found = changefeed::outline(&mut *state, section, table, after, to, OUTLINE);
                let found = found.await?;
                let last = found.last().filter(|_| found.len() as i64 == OUTLINE);
                self.outlined = last.map_or(to, |(snapshot, _)| *snapshot);
                self.outline = found.into_iter().filter(|(_, rows)| *rows > 0).collect();
            }
            self.open = next_block(&mut self.outline);
        }
    }

    /// Begins the next list; false if there is none.
    fn enter_next_section(&mut self) -> bool {
        self.section = match self.section {
            Section::Files => Section::DeleteFiles,
            Section::DeleteFiles if self.ended_files => Section::EndedFiles,
            Section::DeleteFiles | Section::EndedFiles => return false,
        };
        self.outlined = self.from;
        self.fetched = (self.from, i64::MAX);
        true
    }

    async fn rows(&self, state: &mut Session, ids: &[i64]) -> sqlx::Result<Chunk> {
        let catalog = self.table.catalog_id;
        Ok(match self.section {
            Section::Files => {
                let mut files = changefeed::data_files(state, catalog, ids).await?;
                // When a file ended is told where that is asked for, and for no other reason.
                files.iter_mut().for_each(|file| file.end_snapshot = None);
                Chunk::Files(files)
            }
            Section::DeleteFiles => {
                Chunk::DeleteFiles(changefeed::delete_files(state, catalog, ids).await?)
            }
            Section::EndedFiles => {
                Chunk::EndedFiles(changefeed::data_files(state, catalog, ids).await?)
            }
        })
    }

    fn failed(&self, error: &sqlx::Error) -> Problem {
        failed(&names(&self.table), error)
    }

    /// Rows are gone that nothing explains: the catalog is damaged, and there is no short answer that looks
    /// whole.
    fn damaged(&self, rows: usize) -> Problem {
        let TableIdentity { catalog, namespace, table, .. } = &self.table;
        let error = format!("{rows} rows are gone that expiry had no right to");
        tracing::error!(
            event = events::CHANGES_FAILED, %catalog, %namespace, %table, %error,
            "the changes of a table could not be read"
        );
        Problem::Internal
    }
}

/// Takes the snapshots whose rows fill a block, at least one while there are any.
fn next_block(outline: &mut VecDeque<Key>) -> Vec<i64> {
    let (mut block, mut rows) = (Vec::new(), 0);
    while let Some((snapshot, of_snapshot)) = outline.front().copied() {
        rows += of_snapshot;
        if !block.is_empty() && rows > BLOCK as i64 {
            break;
        }
        block.push(snapshot);
        outline.pop_front();
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_as_many_snapshots_as_fit_and_at_least_one() {
        let most = BLOCK as i64;
        for (rows, expected) in [
            (vec![], vec![]),
            (vec![1, 2, 3], vec![1, 2, 3]),
            (vec![most, 1], vec![1]),
            (vec![most - 1, 1, 1], vec![1, 2]),
            (vec![most + 1, 1], vec![1]),
            (vec![1, most + 1, 1], vec![1]),
        ] {
            let mut outline: VecDeque<Key> = (1..).zip(rows.clone()).collect();
            assert_eq!(next_block(&mut outline), expected, "{rows:?}");
            assert_eq!(outline.len(), rows.len() - expected.len());
        }
    }
}
