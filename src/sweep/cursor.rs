//! How far the sweeps of a table have come, and when that may be relied on. Pure.
//!
//! A cursor only ever saves time. It says where a pass need not look; it never says that a file may
//! go: each file is judged by its own spec and values when it is looked at. So a cursor that is
//! wrong, whoever wrote it, can make passes overlook what has expired, until the next full pass,
//! which looks everywhere. It ends no file that should stay by its own values and statistics. One
//! thing does hang on it: files that came late are weighed with those of their partition that the
//! cursor says stayed, so a cursor that hides these lets a late file without statistics go before them.

mod rules;
pub mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::census::Census;
use super::waiting::Remembered;
use crate::catalog::tables::Marks;
use crate::catalog::walk::Place;
use crate::instant::UtcInstant;
use crate::window::SpecBook;

/// More skipped texts than this are not remembered one by one: the cursor stops before the oldest.
pub const MOST_SKIPPED: usize = 1_000;

/// What a cursor counts for: another incarnation, another policy or other rules reset it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Basis {
    /// The table's incarnation.
    pub table_uuid: Uuid,
    /// The policy's revision.
    pub policy_revision: i64,
    /// A digest of all that is known of the table's specs and column types, and of the version of
    /// this program: another one may judge otherwise.
    pub rules: Vec<u8>,
}

impl Basis {
    /// The basis of a pass.
    pub fn new(table_uuid: Uuid, policy_revision: i64, book: &SpecBook) -> Self {
        let rules = rules::digest(env!("CARGO_PKG_VERSION"), book);
        Basis { table_uuid, policy_revision, rules }
    }
}

/// Texts of time fields, by key index.
pub type Texts = BTreeMap<i32, BTreeSet<String>>;

/// Every file of the table that `marks` covers, in a partition that had expired by the cutoff
/// `expired_through`, was dealt with; the files with a text of `skipped` may still be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// Which files.
    pub marks: Marks,
    /// Which partitions.
    pub expired_through: UtcInstant,
    /// What had expired and stayed.
    pub skipped: Texts,
}

/// A reading of all of the table's files that has not come to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Where it goes on.
    pub after: Place,
    /// As they were when it began: later files are not its business.
    pub marks: Marks,
    /// The cutoff when it began: it finds all that had expired by then.
    pub cutoff: UtcInstant,
    /// The time of the pass that began it; `None` where an earlier version did.
    #[serde(default)]
    pub began_at: Option<UtcInstant>,
    /// Whether the texts could not be listed, so that this is how expired files are found.
    pub is_listing: bool,
    /// What it has counted so far.
    pub census: Census,
    /// What it met so far that had expired and stayed.
    pub stayed: Stayed,
}

/// What is remembered of a table's sweeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// How far they have come.
    pub cursor: Option<Cursor>,
    /// The time by which the last full pass that came to its end decided.
    pub full_pass_at: Option<UtcInstant>,
    /// A full pass that has not come to its end.
    pub reading: Option<Reading>,
    /// What the last finished reading counted, and when.
    pub census: Option<(Census, UtcInstant)>,
    /// What waits, whatever the basis.
    pub waiting: Remembered,
}

/// How a pass goes about a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// Only what came to expire, and what came late, since the cursor; and a reading under way goes
    /// on.
    Incremental(Cursor),
    /// All that has expired, and a new reading.
    Full,
}

impl Memory {
    /// What of a memory may be relied on: nothing that lies in the future.
    pub fn checked(self, marks: Marks, cutoff: UtcInstant, now: UtcInstant) -> Self {
        let past = |of: &Marks, at: UtcInstant| {
            of.files_below <= marks.files_below
                && of.through_snapshot <= marks.through_snapshot
                && at <= cutoff
        };
        Memory {
            cursor: self.cursor.filter(|cursor| past(&cursor.marks, cursor.expired_through)),
            full_pass_at: self.full_pass_at.filter(|at| *at <= now),
            reading: self.reading.filter(|reading| past(&reading.marks, reading.cutoff)),
            census: self.census.filter(|(_, at)| *at <= now),
            waiting: self.waiting,
        }
    }

    /// How the next pass goes about it.
    pub fn way(&self, now: UtcInstant, full_pass_every: Duration) -> Way {
        let due = self.full_pass_at.is_none_or(|at| at.plus(full_pass_every) <= now);
        match &self.cursor {
            Some(cursor) if !due || self.reading.is_some() => Way::Incremental(cursor.clone()),
            _ => Way::Full,
        }
    }
}

/// What stayed although it had expired, while a pass is at work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stayed {
    texts: Texts,
    earliest: Option<UtcInstant>,
}

impl Stayed {
    /// Notes a tuple whose range ended at `end`, by a text that it is found by.
    pub fn note(&mut self, key_index: i32, text: String, end: UtcInstant) {
        self.texts.entry(key_index).or_default().insert(text);
        self.note_from(end);
    }

    /// Whether a text was noted.
    pub fn has(&self, key_index: i32, text: &str) -> bool {
        self.texts.get(&key_index).is_some_and(|texts| texts.contains(text))
    }

    /// Takes over what another one noted.
    pub fn merge(&mut self, other: &Stayed) {
        for (key_index, texts) in &other.texts {
            self.texts.entry(*key_index).or_default().extend(texts.iter().cloned());
        }
        other.earliest.into_iter().for_each(|end| self.note_from(end));
    }

    fn note_from(&mut self, end: UtcInstant) {
        self.earliest = Some(self.earliest.map_or(end, |earliest| earliest.min(end)));
    }
}

/// What a pass has looked at: everything that its marks cover and that had expired by the cutoff,
/// but for what expired from `unseen_from` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Which files.
    pub marks: Marks,
    /// Which partitions.
    pub cutoff: UtcInstant,
    /// The earliest end of a range that was not looked at.
    pub unseen_from: Option<UtcInstant>,
}

impl Claim {
    /// The cursor that it comes to, beside what stayed.
    ///
    /// It stops before what was not looked at: whatever expired by an end of a range after it is
    /// looked up again. So it also does before what stayed, where that is too much to be named.
    pub fn cursor(&self, stayed: &Stayed) -> Cursor {
        let mut through = self.cutoff;
        if let Some(unseen) = self.unseen_from {
            through = through.min(before(unseen));
        }
        let mut skipped = stayed.texts.clone();
        if skipped.values().map(BTreeSet::len).sum::<usize>() > MOST_SKIPPED
            && let Some(earliest) = stayed.earliest
        {
            through = through.min(before(earliest));
            skipped.clear();
        }
        Cursor { marks: self.marks, expired_through: through, skipped }
    }
}

fn before(instant: UtcInstant) -> UtcInstant {
    instant.plus_nanos(-1)
}

#[cfg(test)]
mod tests;
