//! What is expired at a time, what will be and when: a pure function of the file's own spec,
//! its stored values, `keep` and `now`. Doubt keeps.
//!
//! The one rule that deletes: a value has expired iff the END of the range that it covers is
//! at or before `now - keep`, under its own spec and under every other time transform that
//! the table ever had in that place (see [`SpecJudge`]).

pub mod expiring;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::instant::UtcInstant;
use crate::transform::{TimeRange, TimeTransform, Undatable, canonical_integer};

/// One field of a partition spec, as `hog_partition_field` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecField {
    /// The position of its value in the tuple, through this spec only.
    pub key_index: i32,
    /// The column, by an id that survives renames.
    pub source_field_id: i64,
    /// `identity`, `bucket`, `year`, `month`, `day` or `hour`.
    pub transform: String,
    /// The bucket count.
    pub transform_param: Option<i32>,
}

/// All that is known of a table's specs, live, ended or remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpecBook {
    /// The fields of each spec, ordered by key index.
    pub specs: BTreeMap<i64, Vec<SpecField>>,
    /// Definitions of spec ids that were seen with more than one: which of them a file of that
    /// id was written under cannot be told, so the id itself is not in `specs`.
    pub disputed: Vec<Vec<SpecField>>,
    /// Every type that each source column was seen to have.
    pub column_types: BTreeMap<i64, BTreeSet<String>>,
}

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

/// What becomes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It goes. `range_end` is the last end of its time fields' ranges under its own spec.
    Expired {
        /// When the newest instant that the file may hold had passed.
        range_end: UtcInstant,
    },
    /// It stays.
    Kept {
        /// Why.
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
    /// Its own spec says expired, another transform that the table had there says not yet.
    AmbiguousSpec,
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
        matches!(self, Self::NotExpired | Self::Future | Self::AmbiguousSpec)
    }

    /// The reason as JSON and logs have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotExpired => "not_expired",
            Self::Future => "future",
            Self::AmbiguousSpec => "ambiguous_spec",
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

/// The rules of one spec under one policy.
///
/// A spec id is no proof of how a value was encoded: a writer with a stale spec of the same
/// arity gets the live spec's id for values of the old transform (contract, "Partitions"). So
/// each time field carries the other time transforms that the table ever had on the same
/// column at the same key index and arity, and a text must be expired under all of them,
/// readings that start after `now` aside. And where an older spec had a bucket in that place, a
/// text that is one of its numbers is kept: today's rows of bucket 5 would read as 1970-01-06.
#[derive(Debug, Clone)]
pub struct SpecJudge {
    keys: Vec<i32>,
    time_fields: Vec<TimeField>,
    display: Vec<Option<TimeTransform>>,
}

#[derive(Debug, Clone)]
struct TimeField {
    position: usize,
    /// The field's own transform; several only for identity on a column that changed its type.
    own: Vec<TimeTransform>,
    /// The transforms of other specs in this place.
    others: Vec<TimeTransform>,
    /// The largest bucket count that an older spec of the table had in this place: a text below it
    /// may be a stale writer's bucket, which says nothing of time.
    buckets: i128,
}

impl SpecJudge {
    fn new<'a>(book: &'a SpecBook, spec_id: i64, source_field_id: i64) -> Self {
        let empty = Vec::new();
        let fields = book.specs.get(&spec_id).unwrap_or(&empty);
        let time_fields = fields
            .iter()
            .enumerate()
            .filter(|(_, field)| field.source_field_id == source_field_id)
            .filter_map(|(position, field)| {
                let own = book.transforms_of(field);
                let older = book.specs.range(..spec_id).map(|(_, older)| older);
                let in_place = |specs: &mut dyn Iterator<Item = &'a Vec<SpecField>>| {
                    specs
                        .filter(|other| other.len() == fields.len())
                        .flatten()
                        .filter(|other| other.key_index == field.key_index)
                        .collect::<Vec<_>>()
                };
                let others = in_place(&mut book.specs.values().chain(&book.disputed))
                    .into_iter()
                    .filter(|other| other.source_field_id == source_field_id)
                    .flat_map(|other| book.transforms_of(other))
                    .filter(|transform| !own.contains(transform))
                    .collect::<BTreeSet<_>>();
                // A writer is stale by a spec that was there before.
                let buckets = in_place(&mut older.chain(&book.disputed))
                    .into_iter()
                    .filter(|other| other.transform == "bucket")
                    .filter_map(|other| other.transform_param)
                    .max();
                (!own.is_empty()).then(|| TimeField {
                    position,
                    own,
                    others: others.into_iter().collect(),
                    buckets: buckets.unwrap_or(0).into(),
                })
            })
            .collect();
        SpecJudge {
            keys: fields.iter().map(|field| field.key_index).collect(),
            time_fields,
            display: fields
                .iter()
                .map(|field| book.transforms_of(field).first().copied())
                .collect(),
        }
    }

    /// The key indexes of the spec, in order.
    pub fn keys(&self) -> &[i32] {
        &self.keys
    }

    /// The position in the tuple of the first time field on the policy's column.
    pub fn lead_position(&self) -> Option<usize> {
        self.time_fields.first().map(|field| field.position)
    }

    fn judge(&self, values: &[Option<String>], retention: &Retention) -> Verdict {
        let mut all = Vec::with_capacity(self.time_fields.len());
        for field in &self.time_fields {
            match field.read(values[field.position].as_deref()) {
                Ok(readings) => all.push(readings),
                Err(undatable) => {
                    return Verdict::Kept { reason: undatable.into(), leaves_at: None };
                }
            }
        }
        let Retention { keep, now, .. } = *retention;
        let own_end = all.iter().map(|readings| readings.own.end).max();
        let expired = all.iter().all(|readings| readings.expired_at(keep, now));
        if let (true, Some(range_end)) = (expired, own_end) {
            return Verdict::Expired { range_end };
        }
        let reason = if all.iter().any(|readings| readings.own.start > now) {
            KeptReason::Future
        } else if all.iter().all(|readings| readings.own.end.plus(keep) <= now) {
            KeptReason::AmbiguousSpec
        } else {
            KeptReason::NotExpired
        };
        let maybe_bucket = all.iter().any(|readings| readings.maybe_bucket);
        Verdict::Kept { reason, leaves_at: (!maybe_bucket).then(|| leaves_at(&all, keep, now)) }
    }
}

impl SpecBook {
    /// A book of all definitions that were seen, each once, by spec id.
    pub fn of_definitions(definitions: impl IntoIterator<Item = (i64, Vec<SpecField>)>) -> Self {
        let mut by_id: BTreeMap<i64, Vec<Vec<SpecField>>> = BTreeMap::new();
        for (spec_id, fields) in definitions {
            by_id.entry(spec_id).or_default().push(fields);
        }
        let mut book = SpecBook::default();
        for (spec_id, mut seen) in by_id {
            match (seen.pop(), seen.is_empty()) {
                (Some(only), true) => {
                    book.specs.insert(spec_id, only);
                }
                (last, _) => book.disputed.extend(seen.into_iter().chain(last)),
            }
        }
        book
    }

    /// The time transforms that a field may be: none if it is no time field, several only for
    /// identity on a column that was seen with several time types.
    pub fn transforms_of(&self, field: &SpecField) -> Vec<TimeTransform> {
        if field.transform != "identity" {
            return TimeTransform::of_field(&field.transform, None).into_iter().collect();
        }
        let types = self.column_types.get(&field.source_field_id).into_iter().flatten();
        let transforms: BTreeSet<_> = types
            .filter_map(|col_type| TimeTransform::of_field("identity", Some(col_type)))
            .collect();
        transforms.into_iter().collect()
    }
}

/// All that a text may mean: what its own spec says, and what else it could be.
#[derive(Debug)]
struct Readings {
    own: TimeRange,
    others: Vec<TimeRange>,
    /// It may be a bucket as well.
    maybe_bucket: bool,
}

impl TimeField {
    fn read(&self, text: Option<&str>) -> Result<Readings, Undatable> {
        let mut own = None;
        let mut others = Vec::new();
        let mut undatable = Undatable::Malformed;
        for transform in &self.own {
            match transform.decode(text) {
                Ok(range) if own.is_none() => own = Some(range),
                Ok(range) => others.push(range),
                Err(Undatable::Malformed) => {}
                Err(other) => undatable = other,
            }
        }
        others.extend(self.others.iter().filter_map(|transform| transform.decode(text).ok()));
        let bucket = text.and_then(|text| canonical_integer(text).ok());
        let maybe_bucket = bucket.is_some_and(|number| (0..self.buckets).contains(&number));
        own.map(|own| Readings { own, others, maybe_bucket }).ok_or(undatable)
    }
}

impl Readings {
    fn expired_at(&self, keep: Duration, now: UtcInstant) -> bool {
        let ended = |range: &TimeRange| range.end.plus(keep) <= now;
        !self.maybe_bucket
            && ended(&self.own)
            && self.others.iter().filter(|range| range.start <= now).all(ended)
    }
}

/// The first moment from `now` on at which all readings say expired: each end of a range plus
/// `keep` is a candidate, for nothing else can turn a "no" into a "yes".
fn leaves_at(all: &[Readings], keep: Duration, now: UtcInstant) -> UtcInstant {
    let ranges =
        || all.iter().flat_map(|readings| std::iter::once(&readings.own).chain(&readings.others));
    let mut candidates: Vec<_> =
        ranges().map(|range| range.end.plus(keep)).filter(|at| *at > now).collect();
    candidates.sort_unstable();
    let last = candidates.last().copied().unwrap_or(now);
    candidates
        .into_iter()
        .find(|at| all.iter().all(|readings| readings.expired_at(keep, *at)))
        .unwrap_or(last)
}

#[cfg(test)]
mod tests;
