use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::window::{SpecBook, SpecField, StoredTuple, Verdict};

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

fn texts(expiring: &Expiring, key_index: i32) -> Vec<&str> {
    expiring.texts.get(&key_index).into_iter().flatten().map(String::as_str).collect()
}

#[test]
fn the_ordinals_whose_ranges_end_in_between() {
    let now = at("2026-11-30T12:00:00Z");
    let cutoff = now.minus(DAY * 7);
    for (transform, column_type, since, expected) in [
        // The cutoff is 2026-11-23T12: the 22nd was the last day to end before it.
        ("day", "timestamp", "2026-11-20T12:00:00Z", vec!["20777", "20778", "20779"]),
        ("day", "timestamp", "2026-11-22T00:00:00Z", vec!["20779"]),
        ("day", "timestamp", "2026-11-22T23:59:59.999999Z", vec!["20779"]),
        ("day", "timestamp", "2026-11-23T00:00:00Z", vec![]),
        ("hour", "timestamp", "2026-11-23T10:30:00Z", vec!["498730", "498731"]),
        ("month", "timestamp", "2026-09-30T23:59:59Z", vec!["680", "681"]),
        ("year", "timestamp", "2025-12-31T23:59:59Z", vec!["55"]),
        ("identity", "date", "2026-11-21T12:00:00Z", vec!["2026-11-21", "2026-11-22"]),
        ("day", "timestamp", "1969-12-31T23:59:59Z", vec!["-1", "0"]),
    ] {
        let book = book(&[&[transform]], column_type);
        let (now, cutoff) = match since.starts_with("1969") {
            true => (at("1970-01-09T12:00:00Z"), at("1970-01-02T12:00:00Z")),
            false => (now, cutoff),
        };
        let judge = judge(&book, DAY * 7, now);
        assert_eq!(judge.retention.cutoff(), cutoff);
        let expiring = judge.expiring(at(since), 100).expect("few");
        assert_eq!(texts(&expiring, 0), expected, "{transform} since {since}");
        assert_eq!(expiring.between, BTreeMap::new());
    }
}

#[test]
fn timestamps_lie_between_two_texts() {
    let now = at("2026-11-30T12:00:00Z");
    for (column_type, expected) in [
        ("timestamp", Some(("2026-11-21", "2026-11-25"))),
        ("timestamptz", Some(("2026-11-21", "2026-11-25"))),
        ("timestamp_ns", Some(("1795381200000000000", "1795435200000000001"))),
        ("string", None),
    ] {
        let book = book(&[&["identity"]], column_type);
        let judge = judge(&book, DAY * 7, now);
        let expiring = judge.expiring(at("2026-11-22T21:00:00Z"), 100).expect("told");
        let between: Vec<_> = expiring.between.get(&0).into_iter().flatten().collect();
        let between: Vec<_> = between.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(between, Vec::from_iter(expected), "{column_type}");
        assert_eq!(expiring.texts, BTreeMap::new());
    }
}

#[test]
fn what_cannot_be_told_or_is_too_much_is_no_answer() {
    let now = at("2026-11-30T12:00:00Z");
    let days = book(&[&["day"]], "timestamp");
    let judge_of_days = judge(&days, DAY * 7, now);
    assert!(judge_of_days.expiring(at("2026-11-12T12:00:00Z"), 11).is_some());
    assert_eq!(judge_of_days.expiring(at("2026-11-12T00:00:00Z"), 10), None);
    assert_eq!(judge_of_days.expiring(UtcInstant::EARLIEST.minus(DAY), usize::MAX), None);
    let nanos = book(&[&["identity"]], "timestamp_ns");
    assert_eq!(judge(&nanos, DAY, now).expiring(at("2001-09-09T01:46:39Z"), 100), None);
    let dates = book(&[&["identity"]], "date");
    assert_eq!(judge(&dates, DAY, now).expiring(at("0000-06-01T00:00:00Z"), usize::MAX), None);
}

/// A month's text under a day spec expires by its other reading, years after its own range ended.
#[test]
fn other_readings_count() {
    let book = book(&[&["month"], &["day"]], "timestamp");
    let expiring_at = |now, since| {
        let expiring = judge(&book, DAY * 7, at(now)).expiring(at(since), 10_000).expect("few");
        texts(&expiring, 0).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    // Month 680 is 2026-09; as a day it is 1971-11-12.
    assert_eq!(expiring_at("2026-10-07T23:59:59Z", "2026-09-29T00:00:00Z"), ["20725"]);
    assert_eq!(expiring_at("2026-10-08T00:00:00Z", "2026-09-30T00:00:00Z"), ["20726", "680"]);
}

#[test]
fn texts_of_any_time_field_are_looked_up_and_listed_by_the_first() {
    let book = book(&[&["hour", "month"]], "timestamp");
    let judge = judge(&book, DAY, at("2026-11-02T00:30:00Z"));
    let expiring = judge.expiring(at("2026-10-31T22:59:00Z"), 100).expect("few");
    // The month ends at the same instant as its last hour.
    assert_eq!(texts(&expiring, 0), ["498190", "498191"]);
    assert_eq!(texts(&expiring, 1), ["681"]);
    assert_eq!(judge.lead_keys(), BTreeSet::from([0]));
    assert_eq!(judge.expiry_of_text(0, "498191"), Some(at("2026-11-01T00:00:00Z")));
    assert_eq!(judge.expiry_of_text(0, "498192"), None);
    assert_eq!(judge.expiry_of_text(0, "no number"), None);
    assert_eq!(judge.expiry_of_text(2, "1"), None);
}

proptest! {
    /// Whatever expires between two cutoffs is among the texts, for every history of specs.
    #[test]
    fn nothing_that_comes_to_expire_is_left_out(
        transforms in prop::collection::vec(
            prop::sample::select(vec!["year", "month", "day", "hour", "identity"]), 1..4),
        second in prop::option::of(prop::sample::select(vec!["month", "day", "hour"])),
        column_type in prop::sample::select(vec!["date", "timestamp", "timestamptz", "timestamp_ns"]),
        keep_hours in 1_u64..4_000,
        earlier_hours in 0_u64..2_000,
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
        let earlier = now.minus(Duration::from_secs(earlier_hours * 3_600));
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
            if !expired(now) || expired(earlier) {
                continue;
            }
            let judge = judge(&book, keep, now);
            let expiring = judge.expiring(earlier.minus(keep), usize::MAX).expect("told");
            let found = tuple.keys.iter().zip(&tuple.values).any(|(key, value)| {
                let Some(text) = value else { return false };
                let between = expiring.between.get(key).into_iter().flatten();
                let may = judge.expiry_of_text(*key, text).is_some();
                expiring.texts.get(key).is_some_and(|texts| texts.contains(text))
                    || (may && between.into_iter().any(|(from, to)| from < text && text < to))
            });
            prop_assert!(found, "{tuple:?} {expiring:?}");
        }
    }
}
