use std::time::Duration;

use super::*;
use crate::rules::expiry::{SpecBook, SpecField};

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

#[test]
fn texts_are_listed_by_the_first_time_field() {
    let book = book(&[&["hour", "month"]], "timestamp");
    let judge = judge(&book, DAY, at("2026-11-02T00:30:00Z"));
    assert_eq!(judge.lookup_key_indexes(), BTreeSet::from([0]));
    assert_eq!(judge.expiry_of_text(0, "498191"), Some(at("2026-11-01T00:00:00Z")));
    assert_eq!(judge.expiry_of_text(0, "498192"), None);
    assert_eq!(judge.expiry_of_text(0, "no number"), None);
    assert_eq!(judge.expiry_of_text(2, "1"), None);
}
