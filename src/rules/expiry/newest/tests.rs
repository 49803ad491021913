use std::time::Duration;

use super::*;
use crate::rules::expiry::{Retention, SpecBook, SpecField, SpecPast};

fn at(text: &str) -> UtcInstant {
    text.parse().expect("an instant")
}

fn hours(start: i128, end: i128) -> TimeRange {
    TimeRange { start: UtcInstant::from_hours(start), end: UtcInstant::from_hours(end) }
}

fn since(hour: i128) -> Newest {
    Newest::Since(UtcInstant::from_hours(hour))
}

fn newest(wanted: i32, ranges: &[TimeRange]) -> Newest {
    let mut values = TimeValues::new(wanted);
    ranges.iter().for_each(|range| values.add(*range));
    values.newest()
}

#[test]
fn the_start_of_the_last_value_that_counts_tells_what_stays() {
    let days = [hours(48, 72), hours(0, 24), hours(24, 48), hours(48, 72), hours(960, 984)];
    assert_eq!(newest(1, &days), since(960));
    assert_eq!(newest(2, &days), since(48));
    assert_eq!(newest(3, &days), since(24));
    assert_eq!(newest(4, &days), since(0));
    assert_eq!(newest(5, &days), Newest::All);
    assert_eq!(newest(1, &[]), Newest::All);
    for wanted in [0, -1, i32::MIN] {
        assert_eq!(newest(wanted, &days), Newest::All, "{wanted}");
    }
}

/// A day and the instant at which it starts may be one time.
#[test]
fn an_instant_at_the_start_of_a_day_counts_with_it() {
    let values = [hours(24, 48), hours(24, 24), hours(0, 24)];
    assert_eq!(newest(2, &values), since(0));
    assert_eq!(newest(3, &values), Newest::All);
}

/// A day and its hours, a month and its days: of values that overlap only such count as are apart.
#[test]
fn values_that_overlap_count_once() {
    let mixed = [hours(0, 24), hours(24, 48), hours(36, 37), hours(37, 38), hours(38, 39)];
    assert_eq!(newest(1, &mixed), since(38));
    assert_eq!(newest(3, &mixed), since(36));
    // The day of those hours is no fourth value.
    assert_eq!(newest(4, &mixed), since(0));
    assert_eq!(newest(5, &mixed), Newest::All);
    // Ranges that only meet are apart; of one start the shorter counts, and once.
    assert_eq!(newest(2, &[hours(1, 2), hours(0, 1)]), since(0));
    assert_eq!(newest(2, &[hours(0, 24), hours(0, 1)]), Newest::All);
    let instants = [hours(5, 5), hours(4, 4), hours(5, 5)];
    assert_eq!(newest(2, &instants), since(4));
    assert_eq!(newest(3, &instants), Newest::All);
}

#[test]
fn many_values_are_told_as_few_are() {
    for step in [1, 7, 4_999] {
        let mut values = TimeValues::new(3);
        for number in 0..5_000 {
            let hour = i128::from(number * step % 5_000);
            values.add(hours(hour, hour + 1));
        }
        assert!(values.ranges.len() <= 1_007, "{}", values.ranges.len());
        assert_eq!(values.newest(), since(4_997), "{step}");
    }
}

#[test]
fn what_ends_after_the_start_stays() {
    let newest = since(24);
    assert!(newest.has(&hours(24, 48)));
    assert!(newest.has(&hours(0, 25)));
    assert!(!newest.has(&hours(0, 24)));
    assert!(newest.has(&hours(24, 24)), "an instant that is the oldest");
    assert!(!newest.has(&hours(23, 23)));
    assert!(Newest::All.has(&hours(0, 1)));
}

const NOW: &str = "2026-12-01T12:00:00Z";

/// Specs of one time field on column 1, or on another column, and a second field where there is one.
fn judge(specs: &[(i64, &[(i64, &str)])], trusted: &[i64]) -> Judge {
    let field = |(key_index, (column, transform)): (i32, &(i64, &str))| SpecField {
        key_index,
        source_field_id: *column,
        transform: (*transform).to_owned(),
        transform_param: None,
    };
    let of = |fields: &[(i64, &str)]| (0..).zip(fields).map(field).collect();
    let mut book = SpecBook::of_definitions(specs.iter().map(|(id, fields)| (*id, of(fields))));
    book.column_types.insert(1, ["timestamptz".to_owned()].into());
    book.column_types.insert(2, ["long".to_owned()].into());
    let began = SpecPast { began_with_table: true, ..SpecPast::default() };
    book.past.insert(specs[0].0, began);
    for spec_id in trusted {
        book.past.entry(*spec_id).or_default().trusted_at = Some(at(NOW));
    }
    let keep = Duration::from_secs(7 * 86_400);
    Judge::new(&book, Retention { source_field_id: 1, keep, now: at(NOW) })
}

fn tuple(values: &[Option<&str>]) -> StoredTuple {
    let keys = (0..).zip(values).map(|(key, _)| key).collect();
    StoredTuple { keys, values: values.iter().map(|value| value.map(str::to_owned)).collect() }
}

fn counted(judge: &Judge, spec_id: i64, values: &[Option<&str>]) -> Option<(String, String)> {
    let range = judge.time_value(Some(spec_id), &tuple(values))?;
    Some((range.start.to_string(), range.end.to_string()))
}

fn told(start: &str, end: &str) -> Option<(String, String)> {
    Some((at(start).to_string(), at(end).to_string()))
}

/// Day 20713 is 2026-09-17, day 20788 is 2026-12-01.
#[test]
fn a_value_counts_if_its_time_is_known_and_has_begun() {
    let days = judge(&[(1, &[(1, "day"), (2, "identity")])], &[]);
    let day = told("2026-09-17T00:00:00Z", "2026-09-18T00:00:00Z");
    assert_eq!(counted(&days, 1, &[Some("20713"), Some("42")]), day);
    // Another team of the day is no other value.
    assert_eq!(counted(&days, 1, &[Some("20713"), None]), day);
    let today = told("2026-12-01T00:00:00Z", "2026-12-02T00:00:00Z");
    assert_eq!(counted(&days, 1, &[Some("20788"), Some("42")]), today);
    for (spec_id, values) in [
        (1, &[Some("20789"), Some("42")][..]),
        (1, &[None, Some("42")]),
        (1, &[Some("x"), Some("42")]),
        (1, &[Some("20713")]),
        (2, &[Some("20713"), Some("42")]),
    ] {
        assert_eq!(counted(&days, spec_id, values), None, "{spec_id} {values:?}");
    }
    assert_eq!(days.time_value(None, &tuple(&[])), None);
    let team = judge(&[(1, &[(2, "identity")])], &[]);
    assert_eq!(counted(&team, 1, &[Some("20713")]), None);
}

/// As a month 680 is 2026-09, as a day 1971-11-12; day 20713 would be the month 3696-02, which is ignored.
#[test]
fn a_value_counts_by_the_reading_that_keeps_most() {
    let evolved = judge(&[(1, &[(1, "day")]), (2, &[(1, "month")])], &[]);
    let both = told("1971-11-12T00:00:00Z", "2026-10-01T00:00:00Z");
    assert_eq!(counted(&evolved, 2, &[Some("680")]), both);
    let day = told("2026-09-17T00:00:00Z", "2026-09-18T00:00:00Z");
    assert_eq!(counted(&evolved, 1, &[Some("20713")]), day);
    // 683 is the month 2026-12, and 684 begins after now.
    assert_eq!(counted(&evolved, 2, &[Some("684")]), None);
    assert_eq!(counted(&evolved, 1, &[Some("684")]), None);

    let trusted = judge(&[(1, &[(1, "day")]), (2, &[(1, "month")])], &[2]);
    let month = told("2026-09-01T00:00:00Z", "2026-10-01T00:00:00Z");
    assert_eq!(counted(&trusted, 2, &[Some("680")]), month);
}

#[test]
fn what_may_be_no_time_of_the_column_counts_only_if_trusted() {
    let specs: &[(i64, &[(i64, &str)])] = &[(1, &[(2, "identity")]), (2, &[(1, "day")])];
    assert_eq!(counted(&judge(specs, &[]), 2, &[Some("20713")]), None);
    let day = told("2026-09-17T00:00:00Z", "2026-09-18T00:00:00Z");
    assert_eq!(counted(&judge(specs, &[2]), 2, &[Some("20713")]), day);
}

#[test]
fn a_tuple_stays_by_any_time_that_it_may_mean() {
    let evolved = judge(&[(1, &[(1, "day")]), (2, &[(1, "month")])], &[]);
    let among = |text: &str, spec_id, value: Option<&str>| {
        evolved.is_among(Newest::Since(at(text)), Some(spec_id), &tuple(&[value]))
    };
    // Day 680 of the day spec may be the month 2026-09.
    assert!(among("2026-09-30T00:00:00Z", 1, Some("680")));
    assert!(!among("2026-10-01T00:00:00Z", 1, Some("680")));
    assert!(among("2026-09-17T23:00:00Z", 1, Some("20713")));
    assert!(!among("2026-09-18T00:00:00Z", 1, Some("20713")));
    // What has no time is nobody's to drop.
    assert!(among("2026-09-18T00:00:00Z", 1, None));
    assert!(evolved.is_among(Newest::Since(at(NOW)), None, &tuple(&[])));
}

#[test]
fn texts_are_ordered_by_the_latest_start_that_they_can_have() {
    let evolved = judge(&[(1, &[(1, "day")]), (2, &[(1, "month")])], &[]);
    let latest = |text| evolved.latest_start(0, text);
    assert_eq!(latest("680"), Some(at("2026-09-01T00:00:00Z")));
    assert_eq!(latest("20713"), Some(at("2026-09-17T00:00:00Z")));
    // As a month it begins after now, as a day it does not.
    assert_eq!(latest("684"), Some(at("1971-11-16T00:00:00Z")));
    assert_eq!(latest("20789"), None);
    assert_eq!(latest("x"), None);
    assert_eq!(evolved.latest_start(1, "20713"), None);
}
