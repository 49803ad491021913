//! The rules of one spec under one policy. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use super::book::{SpecBook, SpecField};
use super::domain::Domain;
use super::evidence::Doubt;
use super::{KeptReason, Retention, Verdict, has_expired};
use crate::rules::instant::UtcInstant;
use crate::rules::transform::{TimeRange, TimeTransform, Undatable};

/// Another interpretation of a value is put aside only if its range starts later than this after `now`:
/// nobody writes rows of a time so far ahead, and a stale writer may well date rows some months
/// ahead.
pub(super) const FAR_AHEAD: Duration = Duration::from_secs(366 * 86_400);

/// The rules of one spec under one policy.
///
/// A spec id does not prove how a value was encoded: a writer with a stale spec of the same
/// arity gets the live spec's id for values of the old field (contract, "Partitions"). So each time
/// field carries
/// - the other time transforms that the table ever had on the same column at the same key index and
///   arity: a value must be expired under all of them, interpretations that start more than 366 days after
///   `now` aside;
/// - every other definition that an earlier spec had there: a value that one of these can have
///   stored is ambiguous, and its files are dropped only by proof (see [`super::evidence`]).
#[derive(Debug, Clone)]
pub struct SpecJudge {
    pub(super) keys: Vec<i32>,
    pub(super) time_fields: Vec<TimeField>,
    pub(super) display: Vec<Option<TimeTransform>>,
    /// Specs up to this one whose predecessors are unknown.
    unknown_before: Doubt,
    is_trusted: bool,
}

#[derive(Debug, Clone)]
pub(super) struct TimeField {
    pub(super) position: usize,
    /// The field's own transform; several only for identity on a column that changed its type.
    pub(super) own: Vec<TimeTransform>,
    /// The transforms of other specs in this place.
    pub(super) others: Vec<TimeTransform>,
    /// Other definitions that earlier specs had in this place.
    earlier: Vec<Earlier>,
}

/// A definition that an earlier spec had in the place of a time field.
#[derive(Debug, Clone)]
struct Earlier {
    /// What it can have stored.
    domains: Vec<Domain>,
    /// What a value is in doubt for if it is one of these.
    doubt: Doubt,
}

impl SpecJudge {
    pub(super) fn new(book: &SpecBook, spec_id: i64, source_field_id: i64) -> Self {
        let empty = Vec::new();
        let fields = book.specs.get(&spec_id).unwrap_or(&empty);
        let time_fields = fields
            .iter()
            .enumerate()
            .filter(|(_, field)| field.source_field_id == source_field_id)
            .filter_map(|(position, field)| {
                let own = book.transforms_of(field);
                let others = book
                    .in_place(fields.len(), field.key_index)
                    .filter(|(_, other)| other.source_field_id == source_field_id)
                    .flat_map(|(_, other)| book.transforms_of(other))
                    .filter(|transform| !own.contains(transform))
                    .collect::<BTreeSet<_>>();
                (!own.is_empty()).then(|| TimeField {
                    position,
                    own,
                    others: others.into_iter().collect(),
                    earlier: earlier(book, spec_id, fields.len(), field),
                })
            })
            .collect();
        let mut unknown_before = Doubt::default();
        for spec in book.without_predecessor(spec_id) {
            unknown_before.may_be.insert("a value of an earlier spec that is not known".to_owned());
            unknown_before.since.insert(spec, book.mark(spec));
        }
        SpecJudge {
            keys: fields.iter().map(|field| field.key_index).collect(),
            time_fields,
            display: fields
                .iter()
                .map(|field| book.transforms_of(field).first().copied())
                .collect(),
            unknown_before,
            is_trusted: book.past.get(&spec_id).is_some_and(|past| past.trusted_at.is_some()),
        }
    }

    /// The key indexes of the spec, in order.
    pub fn keys(&self) -> &[i32] {
        &self.keys
    }

    /// The position in the tuple of the first time field on the policy's column.
    pub fn lookup_key(&self) -> Option<usize> {
        self.time_fields.first().map(|field| field.position)
    }

    pub(super) fn judge(&self, values: &[Option<String>], retention: &Retention) -> Verdict {
        let mut all = Vec::with_capacity(self.time_fields.len());
        for field in &self.time_fields {
            match field.read(values[field.position].as_deref()) {
                Ok(interpretations) => all.push(interpretations),
                Err(undatable) => {
                    return Verdict::Kept { reason: undatable.into(), leaves_at: None };
                }
            }
        }
        let Retention { keep, now, .. } = *retention;
        let own_end = all.iter().map(|interpretations| interpretations.own.end).max();
        let expired = all.iter().all(|interpretations| interpretations.expired_at(keep, now));
        if let (true, Some(range_end)) = (expired, own_end) {
            return Verdict::Expired { range_end, doubt: self.doubt(values) };
        }
        let reason = if all.iter().any(|interpretations| interpretations.own.start > now) {
            KeptReason::Future
        } else if all.iter().all(|interpretations| has_expired(interpretations.own.end, keep, now))
        {
            KeptReason::AmbiguousSpec
        } else {
            KeptReason::NotExpired
        };
        Verdict::Kept { reason, leaves_at: Some(leaves_at(&all, keep, now)) }
    }

    /// Whether an operator trusts its values to be what it says.
    pub(super) fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// Whether a value of it may be ambiguous.
    pub(super) fn may_doubt(&self) -> bool {
        let has_earlier = |field: &TimeField| !field.earlier.is_empty();
        let is_ambiguous =
            !self.unknown_before.is_none() || self.time_fields.iter().any(has_earlier);
        is_ambiguous && !self.is_trusted && !self.time_fields.is_empty()
    }

    /// What else the values of the time fields may be.
    pub(super) fn doubt(&self, values: &[Option<String>]) -> Doubt {
        if self.is_trusted {
            return Doubt::default();
        }
        let mut doubt = self.unknown_before.clone();
        for field in &self.time_fields {
            let Some(value) = values.get(field.position).and_then(Option::as_deref) else {
                continue;
            };
            let may_be = |earlier: &&Earlier| earlier.domains.iter().any(|set| set.has(value));
            for earlier in field.earlier.iter().filter(may_be) {
                doubt.merge(&earlier.doubt);
            }
        }
        doubt
    }

    /// Everything that the values of the time fields may mean, as a person reads it.
    pub(super) fn interpretations(&self, values: &[Option<String>]) -> Vec<String> {
        let mut interpretations = Vec::new();
        for field in &self.time_fields {
            let value = values.get(field.position).and_then(Option::as_deref);
            for transform in field.own.iter().chain(&field.others) {
                if transform.decode(value).is_ok() {
                    interpretations.push(format!("{transform} {}", transform.display(value)));
                }
            }
        }
        interpretations.extend(self.doubt(values).may_be);
        interpretations
    }
}

/// Every definition that a spec before `spec_id`, or one of an id with several meanings, had in a
/// field's place, if it can have stored something else than a time of the field's column.
fn earlier(book: &SpecBook, spec_id: i64, arity: usize, field: &SpecField) -> Vec<Earlier> {
    let mut found: Vec<(&SpecField, Option<i64>)> = Vec::new();
    for (id, other) in book.in_place(arity, field.key_index) {
        let is_earlier = id.is_none_or(|id| id < spec_id);
        if !is_earlier || other.stores_as(field) {
            continue;
        }
        match found.iter_mut().find(|(known, _)| known.stores_as(other)) {
            // An id of several meanings tells no time at which this one went out of force.
            Some((_, last)) => *last = last.zip(id).map(|(last, id)| last.max(id)),
            None => found.push((other, id)),
        }
    }
    found
        .into_iter()
        .filter_map(|(other, last)| {
            // Times of the policy's own column are read as such; its buckets tell no time.
            let domains = match other.source_field_id == field.source_field_id {
                true => Domain::beside_times(other, book),
                false => Domain::of(other, book),
            };
            let since = last.and_then(|last| book.first_without(other, arity, last));
            let mut doubt = Doubt::default();
            doubt.may_be.insert(format!("a value of {}", book.describe(other)));
            match since {
                Some(since) => {
                    doubt.since.insert(since, book.mark(since));
                }
                None => doubt.is_undated = true,
            }
            (!domains.is_empty()).then_some(Earlier { domains, doubt })
        })
        .collect()
}

/// All that a text may mean: what its own spec says, and what else it could be.
#[derive(Debug)]
pub(super) struct Interpretations {
    pub(super) own: TimeRange,
    pub(super) others: Vec<TimeRange>,
}

impl TimeField {
    pub(super) fn read(&self, text: Option<&str>) -> Result<Interpretations, Undatable> {
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
        own.map(|own| Interpretations { own, others }).ok_or(undatable)
    }
}

impl Interpretations {
    pub(super) fn expired_at(&self, keep: Duration, now: UtcInstant) -> bool {
        let ended = |range: &TimeRange| has_expired(range.end, keep, now);
        ended(&self.own)
            && self.others.iter().filter(|range| range.start <= now.plus(FAR_AHEAD)).all(ended)
    }
}

/// The first moment from `now` on at which all interpretations say expired: each end of a range plus
/// `keep` is a candidate, for nothing else can turn a "no" into a "yes".
fn leaves_at(all: &[Interpretations], keep: Duration, now: UtcInstant) -> UtcInstant {
    let ranges = || {
        all.iter().flat_map(|interpretations| {
            std::iter::once(&interpretations.own).chain(&interpretations.others)
        })
    };
    let mut candidates: Vec<_> =
        ranges().map(|range| range.end.plus(keep)).filter(|at| *at > now).collect();
    candidates.sort_unstable();
    let last = candidates.last().copied().unwrap_or(now);
    candidates
        .into_iter()
        .find(|at| all.iter().all(|interpretations| interpretations.expired_at(keep, *at)))
        .unwrap_or(last)
}

#[cfg(test)]
mod tests;
