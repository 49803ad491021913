//! The one way in which live files of a table are found: at once where the table is small, by their partition
//! values where these are known and the server has an index of them, by a range of ids, or piece by piece.
//!
//! Each call is one bounded statement, however large the table or a partition is; none holds a transaction open.
//! So the statements of one search see different moments: a file that ends or begins in between may or may not be
//! found. A caller that needs all files as of a moment reads the catalog's watermark first.

mod listing;
mod lookups;
mod matching;
mod newest;
pub mod pages;
pub mod tuples;

use anyhow::Context as _;

use super::live_file::LiveFile;
use super::session::Session;
use super::table_files::{Place, at_most, live_since, next_piece};
use super::tables::{FileWatermark, TableIdentity, current_watermark};
use super::values::{Value, distinct_values, have_more_entries};
use crate::rules::expiry::Judge;
use crate::rules::instant::UtcInstant;
use crate::rules::scan_limits::ScanLimits;
pub use listing::list_expired;
pub use newest::{newest_value, newest_values};
use pages::Pages;

/// A text that may belong to an expired tuple.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// When its range ended: the order in which partition values are looked up.
    pub end: UtcInstant,
    /// The key that it is at.
    pub key_index: i32,
    /// The text.
    pub text: String,
}

impl Candidate {
    /// The value by which its files are found.
    pub fn value(&self) -> Value {
        Value { key_index: self.key_index, value: Some(self.text.clone()) }
    }
}

/// Finds files of one table.
#[derive(Debug, Clone, Copy)]
pub struct Finder<'a> {
    /// The table.
    pub table: &'a TableIdentity,
    /// Its judge: which specs and values date its files.
    pub judge: &'a Judge,
    /// How much at once.
    pub scan_limits: &'a ScanLimits,
}

impl<'a> Finder<'a> {
    /// Every live file, each once.
    pub fn all(self) -> Pages<'a> {
        Pages::all(self)
    }

    /// Every live file of a table that is not small, each once.
    pub fn in_pieces(self) -> Pages<'a> {
        Pages::in_pieces(self)
    }

    /// Every live file that has expired, and others: of a table that is not small by the partition values at the keys
    /// of its time fields that may belong to an expired tuple, each file once, by the lookup key of its own spec.
    ///
    /// With `most` all these partition values are listed before the first is looked up, and that is in the order of
    /// their ends; where the catalog has more distinct partition values at a key, the table is read in pieces. Without,
    /// partition values are looked up as they are listed.
    pub fn expired(self, most: Option<i64>) -> Pages<'a> {
        Pages::expired(self, most)
    }

    /// Every live file with one of these partition values at the lookup key of its own spec, each once. Needs the
    /// lookup index.
    pub fn with_values(self, candidates: &[Candidate]) -> Pages<'a> {
        Pages::with_values(self, candidates)
    }

    /// The catalog's watermark of this moment.
    pub async fn current_watermark(
        &self,
        connection: &mut Session,
    ) -> anyhow::Result<FileWatermark> {
        current_watermark(connection, self.table.catalog_id).await?.context("the catalog is gone")
    }

    /// All live files of a small table; `None` if it is not one.
    pub async fn small_table(
        &self,
        connection: &mut Session,
    ) -> sqlx::Result<Option<Vec<LiveFile>>> {
        let TableIdentity { catalog_id, table_id, .. } = *self.table;
        at_most(connection, catalog_id, table_id, self.scan_limits.small_table).await
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

    /// The live files of the next piece of the table after a place, and the place where the piece ends; `None`
    /// where it is the last.
    pub async fn piece(
        &self,
        connection: &mut Session,
        after: Place,
    ) -> sqlx::Result<(Vec<LiveFile>, Option<Place>)> {
        let TableIdentity { catalog_id, table_id, .. } = *self.table;
        next_piece(connection, catalog_id, table_id, after, self.scan_limits.piece).await
    }

    /// The next of the catalog's distinct partition values at a key: those after one and before another, at most
    /// `scan_limits.values_listed`, and the one after which they go on.
    pub async fn values(
        &self,
        connection: &mut Session,
        key_index: i32,
        after: Option<&str>,
        before: Option<&str>,
    ) -> sqlx::Result<(Vec<String>, Option<String>)> {
        let (catalog_id, most) = (self.table.catalog_id, self.scan_limits.values_listed);
        let values =
            distinct_values(connection, catalog_id, key_index, after, before, most).await?;
        let is_last = (values.len() as i64) < most;
        let next = values.last().filter(|_| !is_last).cloned();
        Ok((values, next))
    }

    /// Whether some partition values have more entries than a small table has files: then the table itself is
    /// the shorter way. (A neighbour may have 100,000 files a day where this table has ten.)
    pub async fn is_crowded(
        &self,
        connection: &mut Session,
        candidates: &[Candidate],
    ) -> sqlx::Result<bool> {
        let values: Vec<Value> = candidates.iter().map(Candidate::value).collect();
        let (catalog_id, most) = (self.table.catalog_id, self.scan_limits.small_table);
        have_more_entries(connection, catalog_id, &values, most).await
    }

    /// The spec and the lookup value of a file; `None` where it has no such.
    pub fn lookup_value_of(&self, file: &LiveFile) -> Option<(i64, Option<String>)> {
        let spec_id = file.spec_id?;
        let lookup_key = self.judge.spec(spec_id)?.lookup_key()?;
        Some((spec_id, file.tuple.values.get(lookup_key)?.clone()))
    }

    /// The key at which a file has its lookup value; `None` where its spec dates nothing.
    pub(super) fn lookup_key_index(&self, file: &LiveFile) -> Option<i32> {
        self.judge.spec(file.spec_id?)?.lookup_key_index()
    }
}
