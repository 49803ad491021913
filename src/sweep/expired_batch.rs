//! What the finder of expired tuples hands to the committer, and what the committer gives back.

use std::collections::BTreeMap;

use super::expired::ExpiredTuple;
use super::waiting::parts::PartOf;
use crate::drop::LateRule;

/// Some of a table's expired tuples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredBatch {
    /// Which: oldest first, then those of `parts`, then those from `alone_from` on.
    pub tuples: Vec<ExpiredTuple>,
    /// Each tuple from this one on lies in one of `parts`, or is known to fail.
    pub parts_from: usize,
    /// What was refused in an earlier time slice or pass and was not halved to the end, by indexes.
    pub parts: Vec<PartOf<usize>>,
    /// Each tuple from this one on is known to fail, and tried in commits of its own.
    pub alone_from: usize,
    /// The id counter as it was read before the tuples' `ids` were looked for.
    pub found_below: i64,
    /// What is asked of files that were not looked for.
    pub late: Option<LateRule>,
    /// The catalog's head before the newest values were looked for, where the policy keeps these.
    pub newest_as_of: Option<i64>,
}

impl ExpiredBatch {
    /// How many files each tuple has.
    pub fn sizes(&self) -> Vec<i64> {
        let size = |tuple: &ExpiredTuple| i64::try_from(tuple.ids.len()).unwrap_or(i64::MAX);
        self.tuples.iter().map(size).collect()
    }

    /// The files of some of the tuples as a drop takes them: (file id, position in `tuples`),
    /// ascending.
    pub fn files(&self, tuples: &[usize]) -> Vec<(i64, i32)> {
        let mut files: Vec<(i64, i32)> = (0_i32..)
            .zip(tuples)
            .filter_map(|(number, at)| Some((number, self.tuples.get(*at)?)))
            .flat_map(|(number, tuple)| tuple.ids.iter().map(move |id| (*id, number)))
            .collect();
        files.sort_unstable();
        files
    }
}

/// How far the work on a batch came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredBatchEnd {
    /// The indexes, ascending, of the batch's tuples that stay or may stay: busy, oversize,
    /// failed, or not attempted.
    pub kept: Vec<usize>,
    /// Why, for those that were tried or looked at.
    pub why: BTreeMap<usize, Stays>,
    /// What was refused and not halved to the end, by indexes; without those that failed alone.
    pub parts: Vec<PartOf<usize>>,
    /// Whether another batch makes sense.
    pub ended: Ended,
}

/// Why a tuple stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stays {
    /// Somebody else had locked rows of it.
    Busy,
    /// It is larger than one commit may be, and is not split.
    Oversize,
    /// A commit of this tuple alone was refused for its content.
    FailedAlone {
        /// What the server said.
        said: String,
        /// The same with what it said of the row.
        words: String,
    },
}

/// Why the work on a batch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Every tuple was tried.
    AllTried,
    /// The time that the table has in this pass is over, or that of the pass.
    OutOfTime,
    /// The pass was told to stop.
    Stopped,
    /// No further commit of this table makes sense in this pass.
    GaveUp,
}
