//! When a value at a spec's lookup key falls due, apart from any policy's `keep`; and which values can end on
//! a day. Pure.
//!
//! A value has expired once all of its interpretations that count ended `keep` ago, so the latest of their
//! ends decides, for every `keep`. An interpretation that starts too far ahead does not count yet; if it
//! counts later, a look at the value finds that the value has not expired.

use std::time::Duration;

use super::expiring::{Expiring, range_at, values_between};
use super::spec_judge::{FAR_AHEAD, SpecJudge, TimeField};
use super::{Judge, Retention};
use crate::rules::instant::UtcInstant;
use crate::rules::transform::{TimeTransform, TimeType, Undatable};

/// What a value at a lookup key comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// When its own range ends.
    pub own: UtcInstant,
    /// When the last of its interpretations that count ends.
    pub last: UtcInstant,
    /// How long its own range is; zero for an instant.
    pub span: Duration,
}

impl Ends {
    /// The day that ends it: the one after whose beginning, and not after whose end, its own range ends.
    pub fn day(&self) -> i128 {
        self.own.plus_nanos(-1).days()
    }
}

impl Judge {
    /// What a value at the lookup key of a spec comes to; `None` where the spec has none.
    pub fn ends(&self, spec_id: i64, value: Option<&str>) -> Option<Result<Ends, Undatable>> {
        let field = self.spec(spec_id)?.time_fields.first()?;
        Some(field.ends(value, &self.retention))
    }

    /// Whether a value of some spec may be ambiguous.
    pub fn may_doubt(&self) -> bool {
        self.specs().any(|(_, spec)| spec.may_doubt())
    }

    /// The lookup key of each spec that has one.
    pub fn lookup_keys(&self) -> impl Iterator<Item = (i64, i32)> {
        self.specs().filter_map(|(spec_id, spec)| Some((spec_id, spec.lookup_key_index()?)))
    }

    /// Whether the values at a spec's lookup key are instants, of which there may be as many as rows.
    pub fn has_instants(&self, spec_id: i64) -> bool {
        let field = self.spec(spec_id).and_then(|spec| spec.time_fields.first());
        field.is_some_and(|field| field.own.iter().any(|transform| is_instant(*transform)))
    }

    /// The values at a spec's lookup key whose own ranges can end in days from `first` to `last`: each one, or
    /// between which two they are written; `None` if that is unknown.
    pub fn ending_on(&self, spec_id: i64, first: i128, last: i128) -> Option<Expiring> {
        let spec = self.spec(spec_id)?;
        let (key_index, field) = (spec.lookup_key_index()?, spec.time_fields.first()?);
        let (since, through) = (UtcInstant::from_days(first), UtcInstant::from_days(last + 1));
        let mut ending = Expiring::default();
        for transform in &field.own {
            if is_instant(*transform) {
                let between = values_between(*transform, since, through)?;
                ending.between.entry(key_index).or_default().insert(between);
                continue;
            }
            let mut range = range_at(*transform, since)?;
            while range.end <= through {
                ending.values.entry(key_index).or_default().insert(range.text);
                range = range_at(*transform, range.end)?;
            }
        }
        Some(ending)
    }
}

impl SpecJudge {
    /// The key index of the first time field on the policy's column.
    pub fn lookup_key_index(&self) -> Option<i32> {
        self.keys().get(self.lookup_key()?).copied()
    }
}

impl TimeField {
    fn ends(&self, text: Option<&str>, retention: &Retention) -> Result<Ends, Undatable> {
        let interpretations = self.read(text)?;
        let counts_from = retention.now.plus(FAR_AHEAD);
        let others = interpretations.others.iter().filter(|range| range.start <= counts_from);
        let own = interpretations.own;
        Ok(Ends {
            own: own.end,
            last: others.map(|range| range.end).fold(own.end, UtcInstant::max),
            span: own.end.distance(own.start),
        })
    }
}

fn is_instant(transform: TimeTransform) -> bool {
    matches!(
        transform,
        TimeTransform::Identity(
            TimeType::Timestamp | TimeType::TimestampTz | TimeType::TimestampNs
        )
    )
}

#[cfg(test)]
mod tests;
