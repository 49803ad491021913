//! Tests of what a judge says of specs, apart from their values: keys, instants, doubts; and of a book as it was.

use std::time::Duration;

use super::{Judge, Retention, SpecBook, SpecField, SpecPast};
use crate::rules::expiry::evidence::Mark;
use crate::rules::instant::UtcInstant;

const COLUMN: i64 = 1;
const TENANT: i64 = 2;

fn field(key_index: i32, source_field_id: i64, transform: &str) -> SpecField {
    SpecField { key_index, source_field_id, transform: transform.to_owned(), transform_param: None }
}

fn book(specs: &[(i64, Vec<SpecField>)]) -> SpecBook {
    let mut book = SpecBook::of_definitions(specs.iter().cloned());
    book.column_types.entry(COLUMN).or_default().insert("timestamp".to_owned());
    book.column_types.entry(TENANT).or_default().insert("int".to_owned());
    let began = SpecPast { began_with_table: true, ..SpecPast::default() };
    book.past.insert(1, began);
    book
}

fn judge(book: &SpecBook) -> Judge {
    let (keep, now) = (Duration::from_secs(7 * 86_400), UtcInstant::from_days(20_000));
    Judge::new(book, Retention { source_field_id: COLUMN, keep, now })
}

#[test]
fn the_lookup_key_is_the_first_time_field_of_the_column() {
    let judge = judge(&book(&[
        (1, vec![field(3, TENANT, "identity"), field(5, COLUMN, "day")]),
        (2, vec![field(4, TENANT, "identity")]),
        (3, vec![field(7, COLUMN, "hour"), field(8, COLUMN, "day")]),
    ]));
    assert_eq!(judge.lookup_keys().collect::<Vec<_>>(), [(1, 5), (3, 7)]);
    let of = |spec_id| {
        let spec = judge.spec(spec_id).expect("a spec");
        (spec.keys(), spec.lookup_key(), spec.lookup_key_index())
    };
    assert_eq!(of(1), (&[3, 5][..], Some(1), Some(5)));
    assert_eq!(of(2), (&[4][..], None, None));
    assert_eq!(of(3), (&[7, 8][..], Some(0), Some(7)));
}

#[test]
fn only_identity_of_a_timestamp_has_instants() {
    let judge = judge(&book(&[
        (1, vec![field(0, COLUMN, "day")]),
        (2, vec![field(0, COLUMN, "identity"), field(1, TENANT, "identity")]),
        (3, vec![field(0, TENANT, "identity"), field(1, TENANT, "identity")]),
    ]));
    let of = [1, 2, 3, 9].map(|spec_id| judge.has_instants(spec_id));
    assert_eq!(of, [false, true, false, false]);
}

/// In doubt is a spec with a time field in whose place another column was, or before which one is unknown, unless
/// it is trusted.
#[test]
fn a_spec_may_doubt_where_another_field_was_before() {
    let day = || vec![field(0, COLUMN, "day")];
    let tenant = || vec![field(0, TENANT, "identity")];
    let doubts = |book: &SpecBook| {
        let judge = judge(book);
        let each: Vec<bool> = judge.specs().map(|(_, spec)| spec.may_doubt()).collect();
        assert_eq!(judge.may_doubt(), each.contains(&true));
        each
    };
    assert_eq!(doubts(&book(&[(1, day())])), [false]);
    assert_eq!(doubts(&book(&[(1, day()), (2, day())])), [false, false]);
    let mut after = book(&[(1, tenant()), (2, day())]);
    assert_eq!(doubts(&after), [false, true]);
    after.past.entry(2).or_default().trusted_at = Some(UtcInstant::from_days(1));
    assert_eq!(doubts(&after), [false, false]);
    // Spec 1 is not known. What has no time field is in no doubt.
    let mut unknown = book(&[(2, day())]);
    assert_eq!(doubts(&unknown), [true]);
    unknown.past.entry(2).or_default().trusted_at = Some(UtcInstant::from_days(1));
    assert_eq!(doubts(&unknown), [false]);
    assert_eq!(doubts(&book(&[(2, tenant())])), [false]);
}

#[test]
fn a_book_as_of_a_time_has_what_was_noted_by_then() {
    let mut book = book(&[(1, vec![field(0, COLUMN, "day")]), (2, vec![field(0, COLUMN, "day")])]);
    let noted = |day: Option<i64>| {
        let at = day.map(|day| UtcInstant::from_days(day.into()));
        let mark = Mark { row_id: Some(7), noted_at: at, ..Mark::default() };
        SpecPast { mark: Some(mark), trusted_at: at, ..SpecPast::default() }
    };
    book.past.insert(2, noted(Some(10)));
    let then = |day: i64| book.clone().as_of(UtcInstant::from_days(day.into()));
    assert_eq!(then(11), book);
    assert_eq!(then(10), book);
    let before = then(9);
    assert_eq!(before.past.get(&2), Some(&SpecPast::default()));
    assert_eq!((&before.specs, &before.column_types), (&book.specs, &book.column_types));
    // A mark without a time stays.
    book.past.insert(2, noted(None));
    assert_eq!(book.clone().as_of(UtcInstant::from_days(9)), book);
}

#[test]
fn a_disputed_spec_is_known_by_its_definitions_alone() {
    let day = vec![field(0, COLUMN, "day")];
    let mut book = book(&[(1, day.clone()), (2, day.clone())]);
    book.dispute(2);
    assert_eq!(book.specs.keys().copied().collect::<Vec<_>>(), [1]);
    assert_eq!(book.disputed.get(&2), Some(&vec![day]));
    book.dispute(2);
    book.dispute(9);
    assert_eq!(book.disputed.len(), 1);
}

/// The first later spec that stores something else there, or has another number of fields.
#[test]
fn the_first_spec_without_a_definition_is_another_one() {
    let both = || vec![field(0, COLUMN, "day"), field(1, TENANT, "identity")];
    let turned = vec![field(0, TENANT, "identity"), field(1, COLUMN, "day")];
    let day = field(0, COLUMN, "day");
    let same = book(&[(1, both()), (2, both())]);
    assert_eq!(same.first_without(&day, 2, 1), None);
    let changed = book(&[(1, both()), (2, both()), (4, turned), (5, both())]);
    assert_eq!(changed.first_without(&day, 2, 1), Some(4));
    assert_eq!(changed.first_without(&day, 2, 4), None);
    assert_eq!(changed.first_without(&day, 1, 4), Some(5));
}
