//! What is known of files beside their partition values, and what it proves. Pure.
//!
//! A partition value is a claim: writers compute it and nobody checks it. So a tuple is expired only
//! by the latest of what is known of it (contract, "Column statistics"), and where its values may be
//! no times of the policy's column at all, each of its files needs a proof:
//! - **by statistics**: the file has an upper bound of the policy's column and no nulls, and the
//!   bound is at or before the cutoff;
//! - **by order**: all of its rows were appended after every writer that knew only the earlier
//!   definition should have stopped. Row ids show that, and not the file's beginning: a
//!   compaction's output begins late and holds old rows, but keeps the least row id of its inputs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::KeptReason;
use crate::rules::instant::UtcInstant;

/// What was noted of a table once every writer that knew only the specs before some spec should
/// have stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    /// Rows from this id on were appended since; `None` while that is waited for.
    pub row_id: Option<i64>,
    /// A file with rows from this id on that contradicts its value shows a writer that has not
    /// stopped. `None` before anything was noted.
    pub watched_from: Option<i64>,
    /// Files that began in this snapshot or later, compactions' outputs aside, hold only rows
    /// appended since.
    pub snapshot: Option<i64>,
    /// When it was noted, or taken back.
    pub noted_at: Option<UtcInstant>,
}

/// A snapshot that was certainly made at or after a time, the lowest of some that are given by ascending
/// id: no later one is dated before that time, for then a clock went back, and the one before it is
/// not either, so that no single wrong date decides. Where one is dated after `now`, none is certain.
pub fn first_late_snapshot(
    dated: &[(i64, UtcInstant)],
    after: UtcInstant,
    now: UtcInstant,
) -> Option<i64> {
    if dated.iter().any(|(_, at)| *at > now) {
        return None;
    }
    let late = dated.iter().rev().take_while(|(_, at)| *at >= after).count();
    let second = dated.len() - late.checked_sub(1)?;
    dated.get(second).map(|(snapshot_id, _)| *snapshot_id)
}

/// Why the values of a tuple may be no times of the policy's column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Doubt {
    /// What they may be, in words.
    pub may_be: BTreeSet<String>,
    /// The specs with which that went out of force, and what was noted of it.
    pub since: BTreeMap<i64, Option<Mark>>,
    /// When that went out of force is not known, so order proves nothing.
    pub is_undated: bool,
}

impl Doubt {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.may_be.is_empty()
    }

    /// Adds another doubt.
    pub fn merge(&mut self, other: &Doubt) {
        self.may_be.extend(other.may_be.iter().cloned());
        self.since.extend(&other.since);
        self.is_undated |= other.is_undated;
    }

    /// Whether all rows of a file were appended after the doubt ended; `revoked` are specs whose
    /// marks count no more.
    fn is_over_for(&self, file: &FileEvidence, revoked: &BTreeSet<i64>) -> bool {
        let proves = |mark: &Mark| {
            mark.row_id.is_some_and(|row_id| file.row_id_start >= row_id)
                || !file.is_compacted
                    && mark.snapshot.is_some_and(|snapshot| file.begin_snapshot >= snapshot)
        };
        !self.is_undated
            && self.since.iter().all(|(spec_id, mark)| {
                !revoked.contains(spec_id) && mark.as_ref().is_some_and(proves)
            })
    }
}

/// An upper bound as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Four bytes: days since 1970.
    Days(i32),
    /// Eight bytes: microseconds or nanoseconds since 1970, by the column's type.
    Count(i64),
}

impl Bound {
    /// Reads the bytes of `hog_file_column_stats.upper_bound`; other lengths are no bound.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes.len() {
            4 => bytes.try_into().ok().map(|bytes| Self::Days(i32::from_le_bytes(bytes))),
            8 => bytes.try_into().ok().map(|bytes| Self::Count(i64::from_le_bytes(bytes))),
            _ => None,
        }
    }
}

/// In which units a column's eight-byte bounds may count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundUnits {
    pub micros: bool,
    pub nanos: bool,
}

impl BoundUnits {
    /// The units of a column that was seen with these types; both where none of them tells.
    pub fn of_types(types: Option<&BTreeSet<String>>) -> Self {
        let has = |wanted: &[&str]| {
            types.into_iter().flatten().any(|col_type| wanted.contains(&col_type.as_str()))
        };
        let nanos = has(&["timestamp_ns"]);
        let micros = has(&["timestamp_s", "timestamp_ms", "timestamp", "timestamptz"]);
        match micros || nanos {
            true => BoundUnits { micros, nanos },
            false => BoundUnits { micros: true, nanos: true },
        }
    }

    /// The latest instant that a row at the bound may have: the end of the day for a date, and the
    /// later one where an eight-byte bound can be read in both units.
    pub fn latest(self, bound: Bound) -> UtcInstant {
        match bound {
            Bound::Days(days) => UtcInstant::from_days(i128::from(days) + 1),
            Bound::Count(count) => {
                let count = i128::from(count);
                let micros = self.micros.then(|| UtcInstant::from_nanos(count * 1_000));
                let nanos = self.nanos.then(|| UtcInstant::from_nanos(count));
                micros.max(nanos).unwrap_or(UtcInstant::LATEST)
            }
        }
    }
}

/// What is known of a file beside its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileEvidence {
    pub data_file_id: i64,
    /// The least row id of its rows, also where a compaction wrote it.
    pub row_id_start: i64,
    /// The snapshot in which it began.
    pub begin_snapshot: i64,
    /// Whether a compaction wrote it: it holds older rows than its beginning tells.
    pub is_compacted: bool,
    /// The upper bound of the policy's column.
    pub upper: Option<Bound>,
    /// The bound holds for every row: the statistics were provided, and no value is null.
    pub is_bound_of_all: bool,
}

/// By what tuples are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvidenceRule {
    /// How long a partition stays after its last instant.
    pub keep: Duration,
    /// `now - keep`.
    pub cutoff: UtcInstant,
    /// How bounds of the policy's column are read.
    pub units: BoundUnits,
    /// Whether a bound after the cutoff keeps a tuple (`guard.cross_check` is `block`).
    pub blocks_newer: bool,
}

/// What the evidence says of a tuple that has expired by its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvidenceVerdict {
    /// It is dropped. `newest` is set where statistics say otherwise and that only warns.
    Expired {
        /// The latest instant of its rows by their statistics, after the cutoff.
        newest: Option<UtcInstant>,
    },
    /// It stays.
    Kept {
        reason: KeptReason,
        /// When it will have expired if nothing changes; `None` where that is not known.
        leaves_at: Option<UtcInstant>,
        /// The latest instant of its rows by their statistics.
        newest: Option<UtcInstant>,
    },
}

impl EvidenceRule {
    /// The latest instant of a file's rows by its statistics, for a tuple whose range ends at
    /// `range_end`. A date whose midnight lies before that end is what the value says already,
    /// though its day may end later (`hour` on a date).
    fn newest(&self, file: &FileEvidence, range_end: UtcInstant) -> Option<UtcInstant> {
        let bound = file.upper?;
        match bound {
            Bound::Days(days) if UtcInstant::from_days(days.into()) < range_end => Some(range_end),
            _ => Some(self.units.latest(bound)),
        }
    }

    /// Whether a file's statistics keep it, whatever its tuple's values say.
    pub fn is_newer(&self, file: &FileEvidence) -> bool {
        self.blocks_newer && file.upper.is_some_and(|bound| self.units.latest(bound) > self.cutoff)
    }

    /// The specs whose marks a file disproves: it holds rows appended after what was noted, and its
    /// statistics contradict its value, so a writer that knew only the definition before still
    /// writes.
    pub fn disproved(
        &self,
        range_end: UtcInstant,
        doubt: &Doubt,
        file: &FileEvidence,
    ) -> BTreeSet<i64> {
        let Some(newest) = self.newest(file, range_end).filter(|newest| *newest > range_end) else {
            return BTreeSet::new();
        };
        // A compaction's output has the least row id of its inputs, so its newest row tells instead.
        let is_later = |mark: &Option<Mark>| {
            mark.is_some_and(|mark| {
                mark.watched_from.is_some_and(|from| file.row_id_start >= from)
                    || file.is_compacted && mark.noted_at.is_some_and(|at| newest > at)
            })
        };
        doubt.since.iter().filter(|(_, mark)| is_later(mark)).map(|(spec_id, _)| *spec_id).collect()
    }

    /// Checks a tuple that has expired by its values, with all of its live files; `revoked` are the
    /// specs whose marks count no more.
    pub fn check(
        &self,
        range_end: UtcInstant,
        doubt: &Doubt,
        files: &[FileEvidence],
        revoked: &BTreeSet<i64>,
    ) -> EvidenceVerdict {
        let newest = files.iter().filter_map(|file| self.newest(file, range_end)).max();
        let later = newest.filter(|newest| *newest > self.cutoff);
        let leaves_at = later.map(|newest| newest.plus(self.keep));
        if !doubt.is_none() {
            let strict = |file: &FileEvidence| {
                let bound = file.upper.filter(|_| file.is_bound_of_all)?;
                Some(self.units.latest(bound))
            };
            let is_proven = |file: &FileEvidence| {
                let by_statistics = strict(file).is_some_and(|latest| latest <= self.cutoff);
                let is_newer =
                    self.newest(file, range_end).is_some_and(|newest| newest > self.cutoff);
                by_statistics || !is_newer && doubt.is_over_for(file, revoked)
            };
            if !files.iter().all(is_proven) {
                // Where each file is dated by statistics or order, the latest of them says when.
                let is_dated = |file: &FileEvidence| {
                    strict(file).is_some() || doubt.is_over_for(file, revoked)
                };
                let latest = files.iter().filter_map(strict).max();
                let leaves_at = latest.filter(|_| files.iter().all(is_dated));
                return EvidenceVerdict::Kept {
                    reason: KeptReason::AmbiguousSpec,
                    leaves_at: leaves_at.map(|latest| latest.plus(self.keep)),
                    newest: later,
                };
            }
        }
        match later {
            Some(_) if self.blocks_newer => EvidenceVerdict::Kept {
                reason: KeptReason::NewerRowsThanPartition,
                leaves_at,
                newest,
            },
            newest => EvidenceVerdict::Expired { newest },
        }
    }
}

#[cfg(test)]
mod tests;
