use std::collections::BTreeMap;

use super::*;
use crate::rules::expiry::evidence::Mark;
use crate::rules::expiry::{Judge, SpecPast, StoredTuple};

const TS: i64 = 1;
const OTHER: i64 = 2;
const DAY: Duration = Duration::from_secs(86_400);

fn at(text: &str) -> UtcInstant {
    text.parse().unwrap()
}

/// `(column, transform)`; a transform `bucket` has 16 buckets.
type Fields<'a> = &'a [(i64, &'a str)];

fn fields(of: Fields<'_>) -> Vec<SpecField> {
    let field = |(key_index, (source_field_id, transform)): (i32, &(i64, &str))| SpecField {
        key_index,
        source_field_id: *source_field_id,
        transform: (*transform).to_owned(),
        transform_param: (*transform == "bucket").then_some(16),
    };
    (0..).zip(of).map(field).collect()
}

/// A book of specs, the first of which began with its table.
fn book(specs: &[(i64, Fields<'_>)], types: &[(i64, &str)]) -> SpecBook {
    let mut book = SpecBook::of_definitions(specs.iter().map(|(id, of)| (*id, fields(of))));
    for (field_id, col_type) in types {
        book.column_types.entry(*field_id).or_default().insert((*col_type).to_owned());
    }
    book.column_names = BTreeMap::from([(TS, "ts".to_owned()), (OTHER, "other".to_owned())]);
    if let Some(first) = book.specs.keys().next() {
        book.past.insert(*first, SpecPast { began_with_table: true, ..SpecPast::default() });
    }
    book
}

fn verdict(book: &SpecBook, spec_id: i64, values: &[&str], now: &str) -> Verdict {
    let tuple = StoredTuple {
        keys: (0..values.len() as i32).collect(),
        values: values.iter().map(|value| Some((*value).to_owned())).collect(),
    };
    let retention = Retention { source_field_id: TS, keep: 7 * DAY, now: at(now) };
    Judge::new(book, retention).judge(Some(spec_id), &tuple)
}

const NOW: &str = "2026-11-30T12:00:00Z";

/// What a value of an expired tuple may be beside a time.
fn doubt(book: &SpecBook, spec_id: i64, values: &[&str]) -> Doubt {
    match verdict(book, spec_id, values, NOW) {
        Verdict::Expired { doubt, .. } => doubt,
        kept => panic!("{values:?} has not expired: {kept:?}"),
    }
}

#[derive(serde::Deserialize)]
struct Row {
    earlier: (String, String),
    own: (String, String),
    kind: String,
    ambiguous: Vec<String>,
    certain: Vec<String>,
}

#[derive(serde::Deserialize)]
struct Rows {
    rows: Vec<Row>,
}

#[test]
fn a_value_that_an_earlier_field_can_have_stored_is_ambiguous() {
    let Rows { rows } =
        serde_json::from_str(include_str!("../../../../tests/ambiguous-values.json")).unwrap();
    assert_eq!(rows.len(), 12);
    let field = |(column, transform): &(String, String)| match column.as_str() {
        "at" => (TS, transform.clone()),
        _ => (OTHER, transform.clone()),
    };
    for Row { earlier, own, kind, ambiguous, certain } in rows {
        let [earlier, own] = [&earlier, &own].map(field);
        let specs = [&earlier, &own].map(|(column, transform)| [(*column, transform.as_str())]);
        let book = book(&[(1, &specs[0]), (2, &specs[1])], &[(OTHER, &kind), (TS, "date")]);
        for value in ambiguous {
            assert!(!doubt(&book, 2, &[&value]).is_none(), "{earlier:?} {kind} {value}");
        }
        for value in certain {
            assert!(doubt(&book, 2, &[&value]).is_none(), "{earlier:?} {kind} {value}");
        }
    }
}

#[test]
fn fields_that_changed_their_places_make_each_other_ambiguous() {
    let book = book(
        &[(1, &[(TS, "day"), (OTHER, "identity")]), (2, &[(OTHER, "identity"), (TS, "day")])],
        &[(OTHER, "int")],
    );
    let found = doubt(&book, 2, &["20787", "42"]);
    assert_eq!(
        found.may_be.iter().map(String::as_str).collect::<Vec<_>>(),
        ["a value of identity(other)"]
    );
    assert_eq!(found.since, BTreeMap::from([(2, None)]));
    // Before the change nothing was ambiguous.
    assert!(doubt(&book, 1, &["42", "20787"]).is_none());
}

#[test]
fn another_place_arity_or_later_spec_makes_nothing_ambiguous() {
    for other in
        [&[(TS, "month"), (OTHER, "identity")][..], &[(OTHER, "identity"), (OTHER, "identity")]]
    {
        let book = book(&[(1, other), (2, &[(TS, "day")])], &[(OTHER, "int")]);
        assert!(doubt(&book, 2, &["42"]).is_none(), "{other:?}");
    }
    let later = book(&[(1, &[(TS, "day")]), (2, &[(OTHER, "identity")])], &[(OTHER, "int")]);
    assert!(doubt(&later, 1, &["42"]).is_none());
}

/// Each definition went out of force with the first spec that lacks it.
#[test]
fn each_earlier_definition_has_its_own_mark() {
    let mark = |row_id| Mark { row_id: Some(row_id), ..Mark::default() };
    let mut book = book(
        &[
            (1, &[(OTHER, "identity")]),
            (2, &[(TS, "month")]),
            (3, &[(OTHER, "bucket")]),
            (4, &[(OTHER, "bucket")]),
            (5, &[(TS, "day")]),
            (6, &[(TS, "day")]),
        ],
        &[(OTHER, "int")],
    );
    for (spec_id, row_id) in [(2, 200), (5, 500)] {
        book.past.insert(spec_id, SpecPast { mark: Some(mark(row_id)), ..SpecPast::default() });
    }
    let both = BTreeMap::from([(2, Some(mark(200))), (5, Some(mark(500)))]);
    for spec_id in [5, 6] {
        assert_eq!(doubt(&book, spec_id, &["7"]).since, both, "no bucket has a number of 16");
        let no_bucket = BTreeMap::from([(2, Some(mark(200)))]);
        assert_eq!(doubt(&book, spec_id, &["16"]).since, no_bucket);
    }
}

/// A definition that came back went out of force when the second time ended.
#[test]
fn a_definition_that_came_back_counts_from_its_last_end() {
    let tenant: Fields<'_> = &[(OTHER, "identity")];
    let day: Fields<'_> = &[(TS, "day")];
    let book = book(&[(1, tenant), (2, day), (3, tenant), (4, day)], &[(OTHER, "int")]);
    assert_eq!(doubt(&book, 2, &["42"]).since, BTreeMap::from([(2, None)]));
    assert_eq!(doubt(&book, 4, &["42"]).since, BTreeMap::from([(4, None)]));
}

#[test]
fn a_definition_of_a_disputed_id_is_undated() {
    let mut book = SpecBook::of_definitions([
        (1, fields(&[(OTHER, "identity")])),
        (1, fields(&[(TS, "month")])),
        (2, fields(&[(TS, "day")])),
    ]);
    book.column_types.entry(OTHER).or_default().insert("int".to_owned());
    book.past.insert(1, SpecPast { began_with_table: true, ..SpecPast::default() });
    let found = doubt(&book, 2, &["42"]);
    assert!(found.is_undated && found.since.is_empty(), "{found:?}");
    // An id above the file's own too: nobody knows what it was before.
    let mut above = SpecBook::of_definitions([
        (1, fields(&[(TS, "day")])),
        (2, fields(&[(OTHER, "identity")])),
        (2, fields(&[(TS, "month")])),
    ]);
    above.past.insert(1, SpecPast { began_with_table: true, ..SpecPast::default() });
    assert!(doubt(&above, 1, &["42"]).is_undated);
}

#[test]
fn a_spec_whose_predecessor_is_unknown_is_ambiguous() {
    let day: Fields<'_> = &[(TS, "day")];
    let of = |ids: &[i64]| {
        let mut book = book(&ids.iter().map(|id| (*id, day)).collect::<Vec<_>>(), &[]);
        book.past.clear();
        book
    };
    let since = |book: &SpecBook, spec_id| {
        doubt(book, spec_id, &["20713"]).since.into_keys().collect::<Vec<_>>()
    };
    // Neither began with its table as far as anybody knows.
    assert_eq!(since(&of(&[3, 4]), 3), [3]);
    assert_eq!(since(&of(&[3, 4]), 4), [3]);
    assert_eq!(since(&of(&[3, 5]), 5), [3, 5]);
    // Nor is it known what was before an id of several meanings.
    let mut disputed = of(&[6]);
    disputed.disputed.insert(5, vec![fields(day)]);
    assert_eq!(since(&disputed, 6), [5]);
    let mut complete = of(&[1, 2, 3]);
    assert_eq!(since(&complete, 3), [1]);
    complete.past.insert(1, SpecPast { began_with_table: true, ..SpecPast::default() });
    assert_eq!(since(&complete, 3), [0_i64; 0]);
}

#[test]
fn a_trusted_spec_is_not_ambiguous() {
    let specs: [(i64, Fields<'_>); 2] = [(1, &[(OTHER, "identity")]), (2, &[(TS, "day")])];
    let mut book = book(&specs, &[(OTHER, "int")]);
    book.past.insert(2, SpecPast { trusted_at: Some(at(NOW)), ..SpecPast::default() });
    assert!(doubt(&book, 2, &["42"]).is_none());
}

/// Month 683 is 2026-12, 684 is 2027-01, 695 is 2027-12, 696 is 2028-01: an interpretation that starts some
/// months ahead may be next month's rows of a stale writer.
#[test]
fn only_an_interpretation_far_ahead_is_put_aside() {
    let book = book(&[(1, &[(TS, "month")]), (2, &[(TS, "day")])], &[]);
    for (month, leaves_at) in [
        ("682", Some("2026-12-08T00:00:00Z")),
        ("683", Some("2027-01-08T00:00:00Z")),
        ("694", Some("2027-12-08T00:00:00Z")),
        ("695", Some("2028-01-08T00:00:00Z")),
        ("696", None),
    ] {
        match (verdict(&book, 2, &[month], NOW), leaves_at) {
            (Verdict::Expired { .. }, None) => {}
            (Verdict::Kept { reason, leaves_at: Some(found) }, Some(expected)) => {
                assert_eq!((reason, found), (KeptReason::AmbiguousSpec, at(expected)), "{month}");
            }
            other => panic!("{month}: {other:?}"),
        }
    }
}

#[test]
fn a_person_sees_every_interpretation() {
    let book = book(
        &[(1, &[(OTHER, "bucket")]), (2, &[(TS, "month")]), (3, &[(TS, "day")])],
        &[(OTHER, "string")],
    );
    let retention = Retention { source_field_id: TS, keep: DAY, now: at(NOW) };
    let judge = Judge::new(&book, retention);
    let interpretations = |value: &str| {
        judge.interpretations(
            Some(3),
            &StoredTuple { keys: vec![0], values: vec![Some(value.to_owned())] },
        )
    };
    assert_eq!(
        interpretations("7"),
        ["day 1970-01-08", "month 1970-08", "a value of bucket(16, other)"]
    );
    assert_eq!(interpretations("680"), ["day 1971-11-12", "month 2026-09"]);
}
