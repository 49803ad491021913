//! Whether a tuple's time lies in a range, by all that its values may mean. Pure.

use super::spec_judge::FAR_AHEAD;
use super::{Judge, StoredTuple};
use crate::rules::instant::UtcInstant;
use crate::rules::transform::TimeRange;

/// A range of time: from an instant on, before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub from: UtcInstant,
    pub to: UtcInstant,
}

impl Span {
    /// Whether a tuple's range lies whole in it. One that is an instant lies in it if the instant does.
    fn has(&self, range: &TimeRange) -> bool {
        self.from <= range.start && range.start < self.to && range.end <= self.to
    }

    /// Whether a tuple's range has any instant in common with it.
    fn meets(&self, range: &TimeRange) -> bool {
        range.start < self.to && (self.from < range.end || self.from <= range.start)
    }
}

/// Where a tuple's time lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// All of it in the range, and its values mean nothing else.
    Inside(TimeRange),
    /// All of it outside.
    Outside,
    /// Some of it in the range, or a time field of its spec says so and another does not.
    Partly,
    /// It may lie in the range, and its values may mean something else.
    Ambiguous,
    /// Its time is unknown.
    Unknown,
}

impl Judge {
    /// Where the time of a tuple of a spec lies, by what its values may mean at `now`: interpretations that start
    /// more than 366 days later are put aside, as for expiry.
    pub fn place(
        &self,
        spec_id: Option<i64>,
        tuple: &StoredTuple,
        span: &Span,
        now: UtcInstant,
    ) -> Place {
        let Some(spec) = spec_id.and_then(|spec_id| self.spec(spec_id)) else {
            return Place::Unknown;
        };
        if spec.keys() != tuple.keys || spec.time_fields.is_empty() {
            return Place::Unknown;
        }
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for field in &spec.time_fields {
            let value = tuple.values.get(field.position).and_then(Option::as_deref);
            let Ok(read) = field.read(value) else { return Place::Unknown };
            own.push(read.own);
            let plausible = |range: &TimeRange| range.start <= now.plus(FAR_AHEAD);
            others.extend(read.others.into_iter().filter(plausible));
        }
        let mut all = own.iter().chain(&others);
        if !all.any(|range| span.meets(range)) {
            return Place::Outside;
        }
        let all_inside = |ranges: &[TimeRange]| ranges.iter().all(|range| span.has(range));
        let is_certain = spec.doubt(&tuple.values).is_none();
        match (all_inside(&own), all_inside(&others) && is_certain) {
            (true, true) => {
                let start = own.iter().map(|range| range.start).min().unwrap_or(span.from);
                let end = own.iter().map(|range| range.end).max().unwrap_or(span.to);
                Place::Inside(TimeRange { start, end })
            }
            (false, true) if others.is_empty() => Place::Partly,
            _ => Place::Ambiguous,
        }
    }

    /// Whether a partition value at a key may be of a tuple that has a time in the range, by any spec.
    pub fn may_meet(&self, key_index: i32, text: &str, span: &Span) -> bool {
        let of_key = self.specs().flat_map(|(_, spec)| {
            let is_there = move |position: usize| spec.keys().get(position) == Some(&key_index);
            spec.time_fields.iter().filter(move |field| is_there(field.position))
        });
        let mut read = of_key.filter_map(|field| field.read(Some(text)).ok());
        read.any(|read| {
            let mut all = std::iter::once(&read.own).chain(&read.others);
            all.any(|range| span.meets(range))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rules::expiry::{Retention, SpecBook, SpecField};

    fn at(text: &str) -> UtcInstant {
        text.parse().expect("an instant")
    }

    /// A judge of specs of one field on column 1, or of another column where one is given.
    fn judge(specs: &[(i64, i64, &str)]) -> Judge {
        let mut book =
            SpecBook::of_definitions(specs.iter().map(|(spec_id, column, transform)| {
                let field = SpecField {
                    key_index: 0,
                    source_field_id: *column,
                    transform: (*transform).to_owned(),
                    transform_param: None,
                };
                (*spec_id, vec![field])
            }));
        book.column_types.insert(1, ["timestamptz".to_owned()].into());
        book.column_types.insert(2, ["long".to_owned()].into());
        book.past.entry(1).or_default().began_with_table = true;
        let now = at("2026-12-01T00:00:00Z");
        Judge::new(&book, Retention { source_field_id: 1, keep: Duration::ZERO, now })
    }

    fn place(judge: &Judge, spec_id: i64, value: Option<&str>, span: (&str, &str)) -> Place {
        let tuple = StoredTuple { keys: vec![0], values: vec![value.map(str::to_owned)] };
        let span = Span { from: at(span.0), to: at(span.1) };
        judge.place(Some(spec_id), &tuple, &span, at("2026-12-01T00:00:00Z"))
    }

    const DAY: (&str, &str) = ("2026-09-17T00:00:00Z", "2026-09-18T00:00:00Z");

    #[test]
    fn a_range_has_what_lies_in_it_to_the_instant() {
        let days = judge(&[(1, 1, "day")]);
        let inside = |range: Place| matches!(range, Place::Inside(_));
        // Day 20713 is 2026-09-17.
        assert!(inside(place(&days, 1, Some("20713"), DAY)));
        assert_eq!(place(&days, 1, Some("20712"), DAY), Place::Outside);
        assert_eq!(place(&days, 1, Some("20714"), DAY), Place::Outside);
        let later = ("2026-09-17T00:00:00.000000001Z", DAY.1);
        assert_eq!(place(&days, 1, Some("20713"), later), Place::Partly);
        let earlier = (DAY.0, "2026-09-17T23:59:59.999999999Z");
        assert_eq!(place(&days, 1, Some("20713"), earlier), Place::Partly);
        assert_eq!(place(&days, 1, None, DAY), Place::Unknown);
        assert_eq!(place(&days, 1, Some("x"), DAY), Place::Unknown);
        assert_eq!(place(&days, 7, Some("20713"), DAY), Place::Unknown);

        let instants = judge(&[(1, 1, "identity")]);
        let text = |text| place(&instants, 1, Some(text), DAY);
        assert!(inside(text("2026-09-17T00:00:00+00:00")));
        assert_eq!(text("2026-09-18T00:00:00+00:00"), Place::Outside);
        assert_eq!(text("2026-09-16T23:59:59+00:00"), Place::Outside);
    }

    /// An instant at the end of a range is not in it, nor is a tuple of other keys than its spec's.
    #[test]
    fn the_end_of_a_range_and_a_tuple_of_other_keys_are_not_in_it() {
        let span = Span { from: at(DAY.0), to: at(DAY.1) };
        let has = |start, end| span.has(&TimeRange { start: at(start), end: at(end) });
        assert!(has(DAY.0, DAY.0));
        assert!(has(DAY.0, DAY.1));
        assert!(has("2026-09-17T23:59:59.999999999Z", DAY.1));
        assert!(!has(DAY.1, DAY.1));
        let days = judge(&[(1, 1, "day")]);
        let of_keys = |keys: &[i32]| {
            let values = vec![Some("20713".to_owned()); keys.len()];
            let tuple = StoredTuple { keys: keys.to_vec(), values };
            days.place(Some(1), &tuple, &span, at("2026-12-01T00:00:00Z"))
        };
        assert!(matches!(of_keys(&[0]), Place::Inside(_)));
        assert_eq!(of_keys(&[1]), Place::Unknown);
        assert_eq!(of_keys(&[0, 1]), Place::Unknown);
    }

    #[test]
    fn what_may_mean_something_else_is_not_inside() {
        // Under the month spec that was there before, day 680 would be month 680: 2026-09.
        let evolved = judge(&[(1, 1, "month"), (2, 1, "day")]);
        let of_1971 = ("1971-11-01T00:00:00Z", "1971-12-01T00:00:00Z");
        assert_eq!(place(&evolved, 2, Some("680"), of_1971), Place::Ambiguous);
        let september = ("2026-09-01T00:00:00Z", "2026-10-01T00:00:00Z");
        assert_eq!(place(&evolved, 2, Some("680"), september), Place::Ambiguous);
        // Month 20713 lies in the year 3696: nobody writes that.
        assert!(matches!(place(&evolved, 2, Some("20713"), DAY), Place::Inside(_)));
        // The value may be one of the field that was there before.
        let other = judge(&[(1, 2, "identity"), (2, 1, "day")]);
        assert_eq!(place(&other, 2, Some("20713"), DAY), Place::Ambiguous);
        assert_eq!(place(&other, 2, Some("20714"), DAY), Place::Outside);
    }

    #[test]
    fn values_that_may_lie_in_the_range_are_looked_up() {
        let evolved = judge(&[(1, 1, "month"), (2, 1, "day")]);
        let span = Span { from: at(DAY.0), to: at(DAY.1) };
        for (text, expected) in [
            ("20713", true),
            ("20712", false),
            ("20714", false),
            ("680", true),
            ("679", false),
            ("x", false),
        ] {
            assert_eq!(evolved.may_meet(0, text, &span), expected, "{text}");
        }
        assert!(!evolved.may_meet(1, "20713", &span));
    }
}
