use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::rules::expiry::{SpecBook, SpecField, StoredTuple, Verdict};

const COLUMN: i64 = 1;
const DAY: Duration = Duration::from_secs(86_400);

fn at(text: &str) -> UtcInstant {
    text.parse().expect("an instant")
}

fn field(key_index: i32, transform: &str) -> SpecField {
    SpecField {
        key_index,
        source_field_id: COLUMN,
        transform: transform.to_owned(),
        transform_param: None,
    }
}

fn book(specs: &[&[&str]], column_type: &str) -> SpecBook {
    let definitions = specs.iter().zip(1..).map(|(transforms, spec_id)| {
        let fields = transforms.iter().zip(0..);
        (spec_id, fields.map(|(transform, key)| field(key, transform)).collect())
    });
    let mut book = SpecBook::of_definitions(definitions);
    book.column_types.entry(COLUMN).or_default().insert(column_type.to_owned());
    book
}

fn judge(book: &SpecBook, keep: Duration, now: UtcInstant) -> Judge {
    Judge::new(book, Retention { source_field_id: COLUMN, keep, now })
}

fn values(ending: &Expiring, key_index: i32) -> Vec<&str> {
    ending.values.get(&key_index).into_iter().flatten().map(String::as_str).collect()
}

/// Each transform, a text, its own end, the last end, and how long its range is, in seconds.
#[test]
fn a_value_falls_due_when_the_last_of_its_interpretations_ends() {
    let now = at("2026-11-30T12:00:00Z");
    for (specs, column_type, spec_id, text, own, last, span) in [
        (&[&["day"][..]][..], "timestamp", 1, "20713", "2026-09-18T00:00:00Z", "", 86_400),
        (&[&["hour"]], "timestamp", 1, "497117", "2026-09-17T06:00:00Z", "", 3_600),
        (&[&["year"]], "timestamp", 1, "56", "2027-01-01T00:00:00Z", "", 365 * 86_400),
        (&[&["identity"]], "date", 1, "2026-09-17", "2026-09-18T00:00:00Z", "", 86_400),
        (&[&["identity"]], "timestamp", 1, "2026-09-17T05:00:00", "2026-09-17T05:00:00Z", "", 0),
        // Month 680 is 2026-09; as a day it is 1971-11-12.
        (
            &[&["month"], &["day"]],
            "timestamp",
            2,
            "680",
            "1971-11-13T00:00:00Z",
            "2026-10-01T00:00:00Z",
            86_400,
        ),
        // As a month it would be in the year 3696, which does not count.
        (&[&["month"], &["day"]], "timestamp", 2, "20713", "2026-09-18T00:00:00Z", "", 86_400),
    ] {
        let book = book(specs, column_type);
        let ends = judge(&book, DAY * 7, now)
            .ends(spec_id, Some(text))
            .expect("a lookup key")
            .expect("datable");
        let last = if last.is_empty() { own } else { last };
        let expected = Ends { own: at(own), last: at(last), span: Duration::from_secs(span) };
        assert_eq!(ends, expected, "{specs:?} {text}");
    }
    let days = book(&[&["day"]], "timestamp");
    let judge = judge(&days, DAY, now);
    assert_eq!(judge.ends(1, None), Some(Err(Undatable::Null)));
    assert_eq!(judge.ends(1, Some("x")), Some(Err(Undatable::Malformed)));
    assert_eq!(judge.ends(7, Some("1")), None);
}

#[test]
fn a_range_that_ends_with_a_day_is_of_that_day() {
    let ends = |own| Ends { own: at(own), last: at(own), span: Duration::ZERO };
    for (own, day) in [
        ("1970-01-02T00:00:00Z", 0),
        ("1970-01-02T00:00:00.000001Z", 1),
        ("1970-01-03T00:00:00Z", 1),
        ("1970-01-01T00:00:00Z", -1),
    ] {
        assert_eq!(ends(own).day(), day, "{own}");
    }
}

#[test]
fn the_values_that_end_on_a_day() {
    let now = at("2026-11-30T12:00:00Z");
    let day = at("2026-11-22T00:00:00Z").days();
    for (transform, column_type, last, expected) in [
        ("day", "timestamp", day, vec!["20779"]),
        ("day", "timestamp", day + 1, vec!["20779", "20780"]),
        ("month", "timestamp", day, vec![]),
        ("month", "timestamp", day + 8, vec!["682"]),
        ("identity", "date", day, vec!["2026-11-22"]),
    ] {
        let book = book(&[&[transform]], column_type);
        let ending = judge(&book, DAY, now).ending_on(1, day, last).expect("told");
        assert_eq!(values(&ending, 0), expected, "{transform} to {last}");
        assert_eq!(ending.between, Default::default());
    }
    let hours = book(&[&["hour"]], "timestamp");
    let ending = judge(&hours, DAY, now).ending_on(1, day, day).expect("told");
    let hours = values(&ending, 0);
    assert_eq!((hours.len(), hours[0], hours[23]), (24, "498696", "498719"));
    for (column_type, expected) in [
        ("timestamp", Some(("2026-11-21", "2026-11-25"))),
        ("timestamptz", Some(("2026-11-21", "2026-11-25"))),
        ("timestamp_ns", Some(("1795305600000000000", "1795392000000000001"))),
        ("string", None),
    ] {
        let book = book(&[&["identity"]], column_type);
        let ending = judge(&book, DAY, now).ending_on(1, day, day);
        let between = ending.iter().flat_map(|ending| ending.between.get(&0)).flatten();
        let between: Vec<_> = between.map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(between, Vec::from_iter(expected), "{column_type}");
    }
    // What is written otherwise is not in the order of the values.
    let nanos = book(&[&["identity"]], "timestamp_ns");
    assert_eq!(judge(&nanos, DAY, now).ending_on(1, 11_000, 11_000), None);
    let old = book(&[&["identity"]], "timestamp");
    assert_eq!(judge(&old, DAY, now).ending_on(1, -719_000, -719_000), None);
}

proptest! {
    /// Whatever has expired is due by its lookup value, and among the values that end on its day, for every
    /// history of specs.
    #[test]
    fn nothing_that_has_expired_is_left_out(
        transforms in prop::collection::vec(
            prop::sample::select(vec!["year", "month", "day", "hour", "identity"]), 1..4),
        second in prop::option::of(prop::sample::select(vec!["month", "day", "hour"])),
        column_type in prop::sample::select(vec!["date", "timestamp", "timestamptz", "timestamp_ns"]),
        keep_hours in 1_u64..4_000,
        age_hours in 0_i128..6_000,
        minutes in 0_i128..60,
        written_as in 0_usize..4,
    ) {
        let specs: Vec<Vec<&str>> =
            transforms.iter().map(|first| std::iter::once(*first).chain(second).collect()).collect();
        let specs: Vec<&[&str]> = specs.iter().map(Vec::as_slice).collect();
        let book = book(&specs, column_type);
        let now = at("2026-11-30T12:34:56Z");
        let keep = Duration::from_secs(keep_hours * 3_600);
        let row = now.plus_nanos(-(age_hours * 60 + minutes) * 60_000_000_000);
        // A stale writer may have used any of the table's transforms.
        let encode = |fields: &[&str]| fields.iter().map(|name| {
            TimeTransform::of_field(name, Some(column_type)).map(|transform| transform.encode(row))
        }).collect::<Vec<_>>();
        let values = encode(specs[written_as % specs.len()]);
        for spec_id in 1..=specs.len() as i64 {
            let tuple = StoredTuple {
                keys: (0..values.len() as i32).collect(),
                values: values.clone(),
            };
            let expired = |now| matches!(
                judge(&book, keep, now).judge(Some(spec_id), &tuple),
                Verdict::Expired { .. }
            );
            if !expired(now) {
                continue;
            }
            let judge = judge(&book, keep, now);
            let text = values[0].as_deref();
            let ends = judge.ends(spec_id, text).expect("a lookup key").expect("datable");
            prop_assert!(ends.last <= now.minus(keep), "{tuple:?} is not due: {ends:?}");
            let Some(ending) = judge.ending_on(spec_id, ends.day(), ends.day()) else {
                prop_assert_eq!(column_type, "timestamp_ns", "only these are unknown");
                continue;
            };
            let text = text.unwrap_or_default();
            let between = ending.between.get(&0).into_iter().flatten();
            let is_among = ending.values.get(&0).is_some_and(|values| values.contains(text))
                || between.into_iter().any(|(from, to)| from.as_str() < text && text < to.as_str());
            prop_assert!(is_among, "{tuple:?} {ending:?}");
        }
    }
}
