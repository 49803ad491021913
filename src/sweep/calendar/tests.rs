use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::rules::expiry::{Judge, Retention, SpecBook, SpecField};

fn at(text: &str) -> UtcInstant {
    text.parse().expect("an instant")
}

fn judge(transform: &str, column_type: &str) -> Judge {
    let field = SpecField {
        key_index: 0,
        source_field_id: 1,
        transform: transform.to_owned(),
        transform_param: None,
    };
    let mut book = SpecBook::of_definitions([(1, vec![field])]);
    book.column_types.entry(1).or_default().insert(column_type.to_owned());
    let now = at("2026-11-30T12:00:00Z");
    Judge::new(&book, Retention { source_field_id: 1, keep: Duration::from_secs(86_400), now })
}

fn key(judge: &Judge, days: &[i64], text: &str) -> Option<(bool, String)> {
    let days: BTreeSet<i64> = days.iter().copied().collect();
    let row = row_of(judge, &days, 1, Some(text))?.ok()?;
    Some((row.key.is_day, row.key.value))
}

#[test]
fn a_value_has_a_row_of_its_own_or_one_of_its_day() {
    let one = |value: &str| Some((false, value.to_owned()));
    let day = |value: &str| Some((true, value.to_owned()));
    let hours = judge("hour", "timestamp");
    assert_eq!(key(&hours, &[], "498696"), one("498696"));
    assert_eq!(key(&hours, &[1], "498696"), day("20779"));
    assert_eq!(key(&hours, &[1], "498719"), day("20779"));
    assert_eq!(key(&hours, &[2], "498719"), one("498719"));
    // Instants always have rows of days.
    let instants = judge("identity", "timestamp");
    assert_eq!(key(&instants, &[], "2026-11-22T00:00:00"), day("20778"));
    assert_eq!(key(&instants, &[], "2026-11-22T00:00:00.000001"), day("20779"));
    // What cannot be listed has a row of its own; what is beyond what a row holds has none.
    assert_eq!(key(&instants, &[], "0200-11-22T00:00:00"), one("0200-11-22T00:00:00"));
    assert_eq!(key(&judge("year", "timestamp"), &[], "290000"), None);
    assert_eq!(key(&hours, &[], "x"), None);
    assert_eq!(row_of(&hours, &BTreeSet::new(), 1, None), Some(Err(Undatable::Null)));
    assert_eq!(row_of(&hours, &BTreeSet::new(), 7, Some("1")), None);
}

#[test]
fn an_instant_is_stored_no_earlier_than_it_is() {
    let stored_as = |text: &str| stored(at(text)).map(UtcInstant::from);
    assert_eq!(stored_as("2026-11-22T00:00:00.000001Z"), Some(at("2026-11-22T00:00:00.000001Z")));
    assert_eq!(
        stored_as("2026-11-22T00:00:00.000000001Z"),
        Some(at("2026-11-22T00:00:00.000001Z"))
    );
}
