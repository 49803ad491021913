//! The newest time values of a table, which a policy may keep whatever their age. Pure.
//!
//! A value counts only by live files, and by the reading that keeps most: from the earliest time that it may mean, not
//! at all if it may be no time of the policy's column or starts after `now`, and not beside a newer value that
//! overlaps it, as a day does an hour of it. So fewer values count than there are, and more stay. A trusted spec's
//! value means what the spec says.

use std::collections::BTreeSet;

use super::{Judge, StoredTuple};
use crate::rules::expiry::spec_judge::FAR_AHEAD;
use crate::rules::instant::UtcInstant;
use crate::rules::transform::TimeRange;

/// More values than this beside twice the wanted number are not remembered before the old ones among them are
/// forgotten.
const REMEMBERED: usize = 1_000;

/// The newest values of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Newest {
    /// All that there are: fewer were found than are kept.
    All,
    /// Those from this instant on.
    Since(UtcInstant),
}

impl Newest {
    /// Whether a range of time lies in them, or ends in them.
    fn has(self, range: &TimeRange) -> bool {
        match self {
            Self::All => true,
            // An instant that is the oldest of them ends when it starts.
            Self::Since(since) => range.end > since || range.start >= since,
        }
    }
}

/// Time values as they are found, in any order.
#[derive(Debug)]
pub struct TimeValues {
    wanted: usize,
    /// By (start, end).
    ranges: BTreeSet<(UtcInstant, UtcInstant)>,
}

impl TimeValues {
    /// None yet; so many are kept.
    pub fn new(wanted: i32) -> Self {
        // A number below one is none that a policy can have: all that there is stays.
        let wanted = usize::try_from(wanted).ok().filter(|wanted| *wanted > 0);
        TimeValues { wanted: wanted.unwrap_or(usize::MAX), ranges: BTreeSet::new() }
    }

    /// Adds one that has a live file.
    pub fn add(&mut self, range: TimeRange) {
        self.ranges.insert((range.start, range.end));
        let most = self.wanted.saturating_mul(2).saturating_add(REMEMBERED);
        if self.ranges.len() > most
            && let Newest::Since(since) = self.newest()
        {
            // Of what starts before the newest, none comes to be among them by another value that is found.
            self.ranges.retain(|(start, _)| *start >= since);
        }
    }

    /// The newest of those that were added.
    ///
    /// From the newest start back each value counts that does not overlap the one counted before: no more values of
    /// the table are apart from each other than are counted so.
    pub fn newest(&self) -> Newest {
        let (mut counted, mut last) = (0, None);
        for (start, end) in self.ranges.iter().rev() {
            let is_apart = last.is_none_or(|last| *end <= last && *start < last);
            if is_apart {
                (counted, last) = (counted + 1, Some(*start));
            }
            if counted == self.wanted {
                return Newest::Since(*start);
            }
        }
        Newest::All
    }
}

impl Judge {
    /// The time value of a live file as it counts among the newest; `None` where it does not count.
    pub fn time_value(&self, spec_id: Option<i64>, tuple: &StoredTuple) -> Option<TimeRange> {
        let spec = self.spec(spec_id?)?;
        if spec.keys() != tuple.keys || tuple.keys.len() != tuple.values.len() {
            return None;
        }
        if !spec.doubt(&tuple.values).is_none() {
            return None;
        }
        let all = self.readings(spec_id, tuple, !spec.is_trusted())?;
        if all.iter().any(|range| range.start > self.retention.now) {
            return None;
        }
        let start = all.iter().map(|range| range.start).min()?;
        let end = all.iter().map(|range| range.end).max()?;
        Some(TimeRange { start, end })
    }

    /// Whether a tuple is among the newest, by any time that its values may mean. One whose time is unknown is.
    pub fn is_among(&self, newest: Newest, spec_id: Option<i64>, tuple: &StoredTuple) -> bool {
        let all = self.readings(spec_id, tuple, true);
        all.is_none_or(|all| all.iter().any(|range| newest.has(range)))
    }

    /// The latest start that a value at a key can count with, by any spec; `None` where it counts by none.
    pub fn latest_start(&self, key_index: i32, text: &str) -> Option<UtcInstant> {
        let of_key = self.specs().flat_map(|(_, spec)| {
            let is_there = move |position: usize| spec.keys().get(position) == Some(&key_index);
            spec.time_fields.iter().filter(move |field| is_there(field.position))
        });
        let starts = of_key.filter_map(|field| Some(field.read(Some(text)).ok()?.own.start));
        starts.filter(|start| *start <= self.retention.now).max()
    }

    /// All that the values of a tuple's time fields may mean: what each says by its own spec and, with `others`, what
    /// else it may mean that does not lie too far ahead. `None` where a time is unknown.
    fn readings(
        &self,
        spec_id: Option<i64>,
        tuple: &StoredTuple,
        others: bool,
    ) -> Option<Vec<TimeRange>> {
        let spec = self.spec(spec_id?)?;
        let farthest = self.retention.now.plus(FAR_AHEAD);
        let mut all = Vec::new();
        for field in &spec.time_fields {
            let text = tuple.values.get(field.position).and_then(Option::as_deref);
            let read = field.read(text).ok()?;
            all.push(read.own);
            let plausible = read.others.into_iter().filter(|range| range.start <= farthest);
            all.extend(plausible.filter(|_| others));
        }
        (!all.is_empty()).then_some(all)
    }
}

#[cfg(test)]
mod tests;
