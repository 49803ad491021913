//! The calendar of a table: the values of its time field that live files were seen with, and when each falls
//! due. Pure.
//!
//! It says where to look. Whether a file is dropped is decided when the file is looked at, by its own spec,
//! values and evidence. A wrong calendar delays drops until the next full pass, and does nothing else.
//!
//! A row has no due date. The due date is `last_end` plus the policy's `keep`, computed where it is needed,
//! so a change of `keep` or mode changes no row.

pub mod read;
pub mod write;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::rules::expiry::Judge;
use crate::rules::expiry::ends::Ends;
use crate::rules::instant::UtcInstant;
use crate::rules::transform::Undatable;

/// Beyond so many values of a spec its rows stand for days.
pub const MOST_VALUES: usize = 10_000;

/// Which row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    /// The spec at whose lookup key the value is.
    pub spec_id: i64,
    /// Whether it stands for all values whose ranges end after the beginning of a UTC day and not after its
    /// end.
    pub is_day: bool,
    /// The value; of a day the days since 1970.
    pub value: String,
}

impl RowKey {
    /// The day that a row stands for.
    pub fn day(&self) -> Option<i128> {
        self.value.parse().ok().filter(|_| self.is_day)
    }
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub key: RowKey,
    /// When the range of the value ends; of a day the earliest that was seen.
    pub range_end: UtcInstant,
    /// When the last of its interpretations that count ends; of several files the earliest such end.
    pub last_end: UtcInstant,
    /// How long the range of one value is.
    pub span: Duration,
    /// What is left of it waits: not before then is it looked at again.
    pub next_look: Option<UtcInstant>,
}

/// The row of a lookup value, where the specs in `days` have rows that stand for days. `None` where the spec
/// has no lookup key, and for a range beyond what a row can hold.
pub fn row_of(
    judge: &Judge,
    days: &BTreeSet<i64>,
    spec_id: i64,
    value: Option<&str>,
) -> Option<Result<Row, Undatable>> {
    let ends = match judge.ends(spec_id, value)? {
        Ok(ends) => ends,
        Err(undatable) => return Some(Err(undatable)),
    };
    let Ends { own, last, span } = ends;
    [own, last].iter().all(|end| stored(*end).is_some()).then_some(Ok(Row {
        key: key_of(judge, days, spec_id, value?, &ends),
        range_end: own,
        last_end: last,
        span,
        next_look: None,
    }))
}

/// A value that its day does not identify has a row of its own.
fn key_of(judge: &Judge, days: &BTreeSet<i64>, spec_id: i64, value: &str, ends: &Ends) -> RowKey {
    let day = ends.day();
    let is_day = (days.contains(&spec_id) || judge.has_instants(spec_id))
        && judge.ending_on(spec_id, day, day).is_some();
    let value = if is_day { day.to_string() } else { value.to_owned() };
    RowKey { spec_id, is_day, value }
}

/// An instant as a row holds it, not earlier than it is; `None` beyond that.
pub fn stored(at: UtcInstant) -> Option<chrono::DateTime<chrono::Utc>> {
    at.plus_nanos(999).to_chrono()
}

#[cfg(test)]
mod tests;
