//! A partition tuple that has expired, with the files that a drop of it ends.

use crate::catalog::live_file::Counts;
use crate::catalog::tuples::TupleOfSpec;
use crate::rules::expiry::evidence::Doubt;
use crate::rules::instant::UtcInstant;

/// A tuple that a pass drops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredTuple {
    pub tuple: TupleOfSpec,
    /// The position of the value by which its files are found.
    pub lookup_key: usize,
    /// As a person reads it.
    pub display: String,
    /// When the newest instant that it may hold by its values had passed.
    pub range_end: UtcInstant,
    /// Why its values may be no times of the policy's column: then it is dropped only by proof.
    pub doubt: Doubt,
    /// The latest instant of its rows by their statistics, where that is after the cutoff and only
    /// warns (`guard.cross_check = warn`).
    pub newest: Option<UtcInstant>,
    /// Whether somebody approved it, who knew that it was held for its number.
    pub is_approved: bool,
    /// The sums over its files.
    pub counts: Counts,
    /// The ids of its live files, ascending, below the id counter that was read before they were
    /// looked for ([`super::expired_batch::ExpiredBatch::found_below`]).
    pub ids: Vec<i64>,
}

impl ExpiredTuple {
    /// The tuple with the two instants that contradict each other, as a log line has it.
    pub fn with_newest(&self) -> String {
        let newest = self.newest.map(|newest| format!(", newest row {newest}"));
        format!("{}: ended {}{}", self.display, self.range_end, newest.unwrap_or_default())
    }

    /// The key and the text by which its files are found.
    pub fn lookup_value(&self) -> Option<(i32, &str)> {
        let tuple = &self.tuple.tuple;
        Some((*tuple.keys.get(self.lookup_key)?, tuple.values.get(self.lookup_key)?.as_deref()?))
    }
}
