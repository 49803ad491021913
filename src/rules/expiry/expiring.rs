//! Which partition values may belong to an expired tuple, and how the values are written whose ranges end at
//! a given time. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::spec_judge::TimeField;
use super::{Judge, Retention};
use crate::rules::instant::UtcInstant;
use crate::rules::transform::{TimeTransform, TimeType};

/// Partition values at the keys of time fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expiring {
    /// By key index: partition values that may belong to an expired tuple.
    pub values: BTreeMap<i32, BTreeSet<String>>,
    /// By key index: partition values between these two, both excluded, in text order, may.
    pub between: BTreeMap<i32, BTreeSet<(String, String)>>,
}

/// Nanoseconds since 1970 have nineteen digits from 2001-09-09 to 2286-11-20; there text order is
/// number order.
const NINETEEN_DIGITS: std::ops::Range<i128> = 1_000_000_000_000_000_000..9_000_000_000_000_000_000;

impl Judge {
    /// Whether a text at a key may belong to an expired tuple; if so, when its own range ended.
    pub fn expiry_of_text(&self, key_index: i32, text: &str) -> Option<UtcInstant> {
        self.specs
            .values()
            .flat_map(|spec| spec.time_fields.iter().map(move |field| (spec, field)))
            .filter(|(spec, field)| spec.keys.get(field.position) == Some(&key_index))
            .filter_map(|(_, field)| field.expired_end(text, &self.retention))
            .min()
    }

    /// The keys of which every expired tuple has one: that of the first time field of each spec.
    pub fn lookup_key_indexes(&self) -> BTreeSet<i32> {
        let key_index = |spec: &super::SpecJudge| spec.keys.get(spec.lookup_key()?).copied();
        self.specs.values().filter_map(key_index).collect()
    }
}

impl TimeField {
    fn expired_end(&self, text: &str, retention: &Retention) -> Option<UtcInstant> {
        let interpretations = self.read(Some(text)).ok()?;
        interpretations.expired_at(retention.keep, retention.now).then_some(interpretations.own.end)
    }
}

pub(super) struct TextRange {
    pub(super) text: String,
    pub(super) end: UtcInstant,
}

/// The range of an ordinal or date that holds an instant: the first one that ends after it.
pub(super) fn range_at(transform: TimeTransform, at: UtcInstant) -> Option<TextRange> {
    let text = transform.encode(at);
    let end = transform.decode(Some(&text)).ok()?.end;
    Some(TextRange { text, end })
}

/// The partition values between which the instants in `(since, through]` are written.
pub(super) fn values_between(
    transform: TimeTransform,
    since: UtcInstant,
    through: UtcInstant,
) -> Option<(String, String)> {
    if transform == TimeTransform::Identity(TimeType::TimestampNs) {
        let told =
            NINETEEN_DIGITS.contains(&since.nanos()) && through.nanos() < NINETEEN_DIGITS.end;
        return told.then(|| (since.nanos().to_string(), (through.nanos() + 1).to_string()));
    }
    // The date that a text begins with is within a day of the instant's, whatever its offset, and
    // a date alone lies before every timestamp of its day. Collations agree on texts that differ
    // in a digit at one place; one that did not would make a pass overlook such a text until the
    // next full one.
    let date = TimeTransform::Identity(TimeType::Date);
    let (first, last) = (since.days() - 1, through.days() + 2);
    let four_digits = |days: i128| (1000..=9999).contains(&UtcInstant::from_days(days).civil().0);
    (four_digits(first) && four_digits(last)).then(|| {
        (date.encode(UtcInstant::from_days(first)), date.encode(UtcInstant::from_days(last)))
    })
}

#[cfg(test)]
mod tests;
