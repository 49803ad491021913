//! What is expired at a time, what will be and when: a pure function of the file's own spec,
//! its stored values, `keep` and `now`. A file with an unknown or ambiguous time is kept.
//!
//! The one rule that deletes ([`has_expired`]): a value has expired iff the END of the range that it covers is
//! at or before `now - keep`, under its own spec and under every other time transform that
//! the table ever had in that place (see [`SpecJudge`]). What a value alone does not prove is
//! checked by [`evidence`].

pub mod book;
pub mod domain;
pub mod ends;
pub mod evidence;
pub mod expiring;
pub mod newest;
mod spec_judge;
pub mod within;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::rules::instant::UtcInstant;
use crate::rules::transform::Undatable;
pub use book::{SpecBook, SpecField, SpecPast};
use evidence::Doubt;
pub use spec_judge::SpecJudge;

/// A policy at a moment: which column, how long, and what time it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The column whose time counts.
    pub source_field_id: i64,
    /// How long a partition stays after its last instant.
    pub keep: Duration,
    /// The database's time.
    pub now: UtcInstant,
}

impl Retention {
    /// `now - keep`: a range that ends at or before it has expired.
    pub fn cutoff(&self) -> UtcInstant {
        self.now.minus(self.keep)
    }
}

/// The rule of expiry: a range of time has expired once its end is `keep` ago.
pub fn has_expired(end: UtcInstant, keep: Duration, now: UtcInstant) -> bool {
    end.plus(keep) <= now
}

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// By its values it has expired; whether it is dropped, the evidence says (see
    /// [`evidence`]).
    Expired {
        /// The last end of its time fields' ranges under its own spec.
        range_end: UtcInstant,
        /// Why the values may be no times of the policy's column: then it is dropped only by proof.
        doubt: Doubt,
    },
    /// It stays.
    Kept {
        reason: KeptReason,
        /// When it will have expired if nothing changes; `None` where it never does.
        leaves_at: Option<UtcInstant>,
    },
}

/// Why a file stays. The order is that of a report.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum KeptReason {
    /// Its range has not ended, or ended less than `keep` ago.
    NotExpired,
    /// Its range starts after `now`.
    Future,
    /// Its own spec says expired. Another transform that the table had there says not yet, or the
    /// value may be one of another field that an earlier spec had there, and nothing proves otherwise.
    AmbiguousSpec,
    /// Its value says expired, the statistics of one of the partition's files say not yet.
    NewerRowsThanPartition,
    /// Its value says expired, and a hold keeps it.
    Held,
    /// It has expired, and goes otherwise than by time alone, with more of the table than may go so.
    BlastRadius,
    /// Its value says expired, and is among the newest ones, which the policy keeps.
    AmongNewest,
    /// The null partition.
    Null,
    /// No canonical text of its transform.
    Malformed,
    /// A range that the database cannot hold.
    OutOfRange,
    /// Its rows of partition values are not those of its spec.
    Incomplete,
    /// Neither the catalog nor our copies know its spec.
    UnknownSpec,
    /// It has no spec, or one without a time field on the policy's column.
    Uncovered,
}

impl KeptReason {
    /// Whether the file's time is known, so that the policy reaches it sooner or later.
    pub fn is_datable(self) -> bool {
        matches!(
            self,
            Self::NotExpired
                | Self::Future
                | Self::AmbiguousSpec
                | Self::NewerRowsThanPartition
                | Self::Held
                | Self::BlastRadius
                | Self::AmongNewest
        )
    }

    /// The reason as JSON and logs have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotExpired => "not_expired",
            Self::Future => "future",
            Self::AmbiguousSpec => "ambiguous_spec",
            Self::NewerRowsThanPartition => "newer_rows_than_partition",
            Self::Held => "held",
            Self::BlastRadius => "blast_radius",
            Self::AmongNewest => "among_newest",
            Self::Null => "null",
            Self::Malformed => "malformed",
            Self::OutOfRange => "out_of_range",
            Self::Incomplete => "incomplete",
            Self::UnknownSpec => "unknown_spec",
            Self::Uncovered => "uncovered",
        }
    }
}

impl fmt::Display for KeptReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<Undatable> for KeptReason {
    fn from(undatable: Undatable) -> Self {
        match undatable {
            Undatable::Null => Self::Null,
            Undatable::Malformed => Self::Malformed,
            Undatable::OutOfRange => Self::OutOfRange,
        }
    }
}

/// A stored tuple with the keys it was stored under, ordered by key index. A file whose keys
/// are not exactly those of its spec is damaged and matches no tuple.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StoredTuple {
    /// `hog_file_partition_value.key_index` of each row.
    pub keys: Vec<i32>,
    /// `hog_file_partition_value.value` of each row.
    pub values: Vec<Option<String>>,
}

/// Judges the files of one table under one policy.
#[derive(Debug, Clone)]
pub struct Judge {
    retention: Retention,
    specs: BTreeMap<i64, SpecJudge>,
}

impl Judge {
    /// Prepares the rules of every known spec.
    pub fn new(book: &SpecBook, retention: Retention) -> Self {
        let specs = book
            .specs
            .keys()
            .map(|&spec_id| (spec_id, SpecJudge::new(book, spec_id, retention.source_field_id)))
            .collect();
        Judge { retention, specs }
    }

    /// The policy and time that this judge applies.
    pub fn retention(&self) -> Retention {
        self.retention
    }

    /// The rules for one spec, if it is known.
    pub fn spec(&self, spec_id: i64) -> Option<&SpecJudge> {
        self.specs.get(&spec_id)
    }

    /// The known specs and their rules.
    pub fn specs(&self) -> impl Iterator<Item = (i64, &SpecJudge)> {
        self.specs.iter().map(|(&spec_id, spec)| (spec_id, spec))
    }

    /// Judges a live file by its own spec.
    pub fn judge(&self, spec_id: Option<i64>, tuple: &StoredTuple) -> Verdict {
        let never = |reason| Verdict::Kept { reason, leaves_at: None };
        let Some(spec_id) = spec_id else { return never(KeptReason::Uncovered) };
        let Some(spec) = self.specs.get(&spec_id) else { return never(KeptReason::UnknownSpec) };
        if spec.time_fields.is_empty() {
            return never(KeptReason::Uncovered);
        }
        if spec.keys != tuple.keys || tuple.keys.len() != tuple.values.len() {
            return never(KeptReason::Incomplete);
        }
        spec.judge(&tuple.values, &self.retention)
    }

    /// Everything that the values of a tuple's time fields may mean, as a person reads it.
    pub fn interpretations(&self, spec_id: Option<i64>, tuple: &StoredTuple) -> Vec<String> {
        let spec = spec_id.and_then(|spec_id| self.specs.get(&spec_id));
        spec.map(|spec| spec.interpretations(&tuple.values)).unwrap_or_default()
    }

    /// The tuple as a person reads it: values of time fields as dates, joined by ` / `.
    pub fn display(&self, spec_id: Option<i64>, tuple: &StoredTuple) -> String {
        let spec = spec_id.and_then(|spec_id| self.specs.get(&spec_id));
        let values = tuple.values.iter().enumerate().map(|(position, value)| {
            let field = spec
                .filter(|spec| spec.keys == tuple.keys)
                .and_then(|spec| spec.display.get(position).copied().flatten());
            match (field, value) {
                (Some(transform), value) => shortened(&transform.display(value.as_deref())),
                (None, Some(value)) => shortened(value),
                (None, None) => "null".to_owned(),
            }
        });
        values.collect::<Vec<_>>().join(" / ")
    }
}

/// A text of any length as a line can hold it: cut, and without line breaks or terminal commands,
/// for a stored value may be anything.
pub fn shortened(text: &str) -> String {
    const SHOWN: usize = 80;
    let mut line: String = text
        .chars()
        .take(SHOWN)
        .map(|letter| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter })
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        line.push_str("...");
    }
    line
}

#[cfg(test)]
mod judge_tests;
#[cfg(test)]
mod tests;
