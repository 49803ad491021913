//! Which texts can have come to expire between two cutoffs. Pure.
//!
//! A text that is expired now and was not at an earlier cutoff has a reading, by its own transform
//! or by another one of its place, whose range ended in between: nothing else turns a "no" into a
//! "yes" (a reading that starts after `now` only ever turns a "yes" into a "no"). So the ordinals
//! whose ranges end in between are all that has to be looked up, and they can be counted out; only
//! identity texts of timestamps cannot, but they lie between two texts.

use std::collections::{BTreeMap, BTreeSet};

use super::spec_judge::TimeField;
use super::{Judge, Retention};
use crate::instant::UtcInstant;
use crate::transform::{TimeTransform, TimeType};

/// Texts at the keys of time fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expiring {
    /// By key index: texts that may belong to an expired tuple.
    pub texts: BTreeMap<i32, BTreeSet<String>>,
    /// By key index: texts between these two, both excluded, in text order, may.
    pub between: BTreeMap<i32, BTreeSet<(String, String)>>,
}

/// Nanoseconds since 1970 have nineteen digits from 2001-09-09 to 2286-11-20; there text order is
/// number order.
const NINETEEN_DIGITS: std::ops::Range<i128> = 1_000_000_000_000_000_000..9_000_000_000_000_000_000;

impl Judge {
    /// The texts that can have come to expire after the cutoff `since`, at this judge's; `None` if
    /// they are more than `most` or cannot be told.
    pub fn expiring(&self, since: UtcInstant, most: usize) -> Option<Expiring> {
        let through = self.retention.cutoff();
        let mut expiring = Expiring::default();
        let mut counted = 0;
        for spec in self.specs.values() {
            for field in &spec.time_fields {
                let key_index = *spec.keys.get(field.position)?;
                for transform in field.own.iter().chain(&field.others) {
                    match transform {
                        TimeTransform::Identity(
                            TimeType::Timestamp | TimeType::TimestampTz | TimeType::TimestampNs,
                        ) => {
                            let between = texts_between(*transform, since, through)?;
                            expiring.between.entry(key_index).or_default().insert(between);
                        }
                        _ => {
                            let mut at = since;
                            loop {
                                let range = range_at(*transform, at)?;
                                if range.end > through {
                                    break;
                                }
                                counted += 1;
                                if counted > most {
                                    return None;
                                }
                                if field.may_be_expired(&range.text, &self.retention) {
                                    let texts = expiring.texts.entry(key_index).or_default();
                                    texts.insert(range.text);
                                }
                                at = range.end;
                            }
                        }
                    }
                }
            }
        }
        Some(expiring)
    }

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
    pub fn lead_keys(&self) -> BTreeSet<i32> {
        let lead = |spec: &super::SpecJudge| spec.keys.get(spec.lead_position()?).copied();
        self.specs.values().filter_map(lead).collect()
    }
}

impl TimeField {
    fn expired_end(&self, text: &str, retention: &Retention) -> Option<UtcInstant> {
        let readings = self.read(Some(text)).ok()?;
        readings.expired_at(retention.keep, retention.now).then_some(readings.own.end)
    }

    fn may_be_expired(&self, text: &str, retention: &Retention) -> bool {
        self.expired_end(text, retention).is_some()
    }
}

struct TextRange {
    text: String,
    end: UtcInstant,
}

/// The range of an ordinal or date that holds an instant: the first one that ends after it.
fn range_at(transform: TimeTransform, at: UtcInstant) -> Option<TextRange> {
    let text = transform.encode(at);
    let end = transform.decode(Some(&text)).ok()?.end;
    Some(TextRange { text, end })
}

/// The texts between which the instants in `(since, through]` are written.
fn texts_between(
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
