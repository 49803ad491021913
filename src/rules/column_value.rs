//! What a tuple says about the values of a column in its rows: that all have this value, or that none has. Pure.

use std::collections::BTreeSet;

use crate::rules::expiry::{SpecBook, SpecField, StoredTuple};
use crate::rules::transform::canonical_integer;

/// Whether a tuple of a spec may have rows with this value in the column.
///
/// It may, unless its own spec has the column as it is (`identity`), the tuple's value there is certainly another one,
/// and it can be of no other field: a writer with an older spec stores its values under the newer id.
pub fn may_have(
    book: &SpecBook,
    spec_id: Option<i64>,
    tuple: &StoredTuple,
    column: i64,
    value: &str,
) -> bool {
    let Some(own) = own_fields(book, spec_id, tuple) else { return true };
    let types = book.column_types.get(&column);
    let is_another = |field: &SpecField| match text_of(field, tuple) {
        // All rows of the null partition have no value there.
        None => tuple.keys.len() == own.len(),
        Some(text) => differs(&text, value, types),
    };
    let mut of_column = own.iter().filter(|field| is_as_it_is(field, column)).peekable();
    of_column.peek().is_none()
        || !of_column.all(|field| is_another(field) && is_of_field(book, spec_id, own, field))
}

/// Whether certainly all rows of a tuple have this value in the column: its own spec says so, and the value can be of
/// no other field.
pub fn has_surely(
    book: &SpecBook,
    spec_id: Option<i64>,
    tuple: &StoredTuple,
    column: i64,
    value: &str,
) -> bool {
    let Some(own) = own_fields(book, spec_id, tuple) else { return false };
    own.iter().filter(|field| is_as_it_is(field, column)).any(|field| {
        text_of(field, tuple).as_deref() == Some(value) && is_of_field(book, spec_id, own, field)
    })
}

/// Whether a value in the place of a field is certainly of that field: every spec of as many fields has it there, and
/// every spec that a writer may know is known; or the values of the spec are trusted.
fn is_of_field(
    book: &SpecBook,
    spec_id: Option<i64>,
    own: &[SpecField],
    field: &SpecField,
) -> bool {
    let Some(spec_id) = spec_id else { return false };
    let has_it = |fields: &[SpecField]| {
        fields.iter().any(|other| other.key_index == field.key_index && other.stores_as(field))
    };
    let is_trusted = book.past.get(&spec_id).is_some_and(|past| past.trusted_at.is_some());
    is_trusted
        || of_same_arity(book, own).all(has_it)
            && book.without_predecessor(spec_id).next().is_none()
}

fn own_fields<'a>(
    book: &'a SpecBook,
    spec_id: Option<i64>,
    tuple: &StoredTuple,
) -> Option<&'a [SpecField]> {
    let own = spec_id.and_then(|spec_id| book.specs.get(&spec_id))?;
    (own.len() == tuple.values.len()).then_some(own.as_slice())
}

fn of_same_arity<'a>(
    book: &'a SpecBook,
    own: &'a [SpecField],
) -> impl Iterator<Item = &'a [SpecField]> {
    let all = book.specs.values().chain(book.disputed.values().flatten());
    all.map(Vec::as_slice).filter(|fields| fields.len() == own.len())
}

fn is_as_it_is(field: &SpecField, column: i64) -> bool {
    field.source_field_id == column && field.transform == "identity"
}

fn text_of(field: &SpecField, tuple: &StoredTuple) -> Option<String> {
    let at = tuple.keys.iter().position(|key| *key == field.key_index)?;
    tuple.values.get(at)?.clone()
}

/// Whether two texts of a column are certainly two values, by every type that the column was seen with.
fn differs(text: &str, value: &str, types: Option<&BTreeSet<String>>) -> bool {
    let by_type = |col_type: &String| match col_type.as_str() {
        "string" => text != value,
        "boolean" => {
            text != value && [text, value].iter().all(|one| matches!(*one, "true" | "false"))
        }
        "int8" | "int16" | "int" | "long" => {
            text != value && canonical_integer(text).is_ok() && canonical_integer(value).is_ok()
        }
        _ => false,
    };
    types.is_some_and(|types| !types.is_empty() && types.iter().all(by_type))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::expiry::SpecPast;
    use crate::rules::instant::UtcInstant;

    const TEAM: i64 = 2;

    /// Spec 1 is (day(1), identity(2)), spec 2 (day(1)), spec 3 (day(1), bucket(2)), spec 4 (identity(2), day(1)).
    fn book(col_type: &str) -> SpecBook {
        let field = |key_index, source_field_id, transform: &str| SpecField {
            key_index,
            source_field_id,
            transform: transform.to_owned(),
            transform_param: None,
        };
        let mut book = SpecBook::of_definitions([
            (1, vec![field(0, 1, "day"), field(1, TEAM, "identity")]),
            (2, vec![field(0, 1, "day")]),
            (3, vec![field(0, 1, "day"), field(1, TEAM, "bucket")]),
            (4, vec![field(0, TEAM, "identity"), field(1, 1, "day")]),
        ]);
        book.column_types.insert(TEAM, BTreeSet::from([col_type.to_owned()]));
        book.past.entry(1).or_default().began_with_table = true;
        book
    }

    fn tuple(values: &[Option<&str>]) -> StoredTuple {
        StoredTuple {
            keys: (0..).take(values.len()).collect(),
            values: values.iter().map(|value| value.map(str::to_owned)).collect(),
        }
    }

    #[test]
    fn a_tuple_may_have_a_value_unless_it_certainly_has_another() {
        let may = |book: &SpecBook, spec_id, values: &[Option<&str>], value| {
            may_have(book, spec_id, &tuple(values), TEAM, value)
        };
        let alone = |col_type| {
            let mut alone = book(col_type);
            alone.specs.retain(|spec_id, _| *spec_id < 3);
            alone
        };
        for (col_type, values, value, expected) in [
            ("int", [Some("20713"), Some("42")], "42", true),
            ("int", [Some("20713"), Some("43")], "42", false),
            ("int", [Some("20713"), Some("-42")], "42", false),
            ("int", [Some("20713"), None], "42", false),
            // No writer should have stored these: nobody knows what they mean.
            ("int", [Some("20713"), Some("042")], "42", true),
            ("int", [Some("20713"), Some("42.0")], "42", true),
            ("int", [Some("20713"), Some("")], "42", true),
            ("string", [Some("20713"), Some("042")], "42", false),
            ("boolean", [Some("20713"), Some("false")], "true", false),
            ("boolean", [Some("20713"), Some("False")], "true", true),
            ("boolean", [Some("20713"), Some("true")], "True", true),
            ("timestamptz", [Some("20713"), Some("43")], "42", true),
        ] {
            let may = may(&alone(col_type), Some(1), &values, value);
            assert_eq!(may, expected, "{col_type} {values:?} {value}");
        }
        // Another spec has a bucket, or another field, in that place.
        let other = [Some("20713"), Some("43")];
        assert!(may(&book("int"), Some(1), &other, "42"));
        let mut trusted = book("int");
        trusted.past.entry(1).or_default().trusted_at = Some(UtcInstant::EARLIEST);
        assert!(!may(&trusted, Some(1), &other, "42"));
        // A spec before it is not known.
        let mut unknown = alone("int");
        unknown.past.clear();
        assert!(may(&unknown, Some(1), &other, "42"));
        // Damage, a spec without the column, an unknown one, none, an unknown type.
        assert!(may(&alone("int"), Some(1), &[Some("20713")], "42"));
        assert!(may(&alone("int"), Some(2), &[Some("20713")], "42"));
        assert!(may(&alone("int"), Some(8), &other, "42"));
        assert!(may(&alone("int"), None, &[], "42"));
        let untyped = SpecBook { column_types: Default::default(), ..alone("int") };
        assert!(may(&untyped, Some(1), &other, "42"));
    }

    /// Another column's own value, or another transform of the column, says nothing of the column's value.
    #[test]
    fn only_the_column_as_it_is_tells_its_value() {
        let field = |source_field_id, transform: &str, key_index| SpecField {
            key_index,
            source_field_id,
            transform: transform.to_owned(),
            transform_param: None,
        };
        let mut book = SpecBook::of_definitions([
            (1, vec![field(3, "identity", 0), field(TEAM, "identity", 1)]),
            (2, vec![field(TEAM, "year", 0)]),
        ]);
        book.column_types.insert(TEAM, BTreeSet::from(["int".to_owned()]));
        book.past.entry(1).or_default().began_with_table = true;
        assert!(may_have(&book, Some(1), &tuple(&[Some("41"), Some("42")]), TEAM, "42"));
        assert!(!may_have(&book, Some(1), &tuple(&[Some("42"), Some("41")]), TEAM, "42"));
        assert!(may_have(&book, Some(2), &tuple(&[Some("41")]), TEAM, "42"));
    }

    #[test]
    fn a_tuple_has_a_value_surely_where_no_spec_has_another_field_there() {
        let of = |book: &SpecBook, spec_id, values: &[Option<&str>]| {
            has_surely(book, spec_id, &tuple(values), TEAM, "42")
        };
        let shared = book("int");
        let values = [Some("20713"), Some("42")];
        // Specs 3 and 4 have other fields in that place.
        assert!(!of(&shared, Some(1), &values));
        let mut trusted = shared.clone();
        let past = SpecPast { trusted_at: Some(UtcInstant::EARLIEST), ..SpecPast::default() };
        trusted.past.insert(1, past);
        assert!(of(&trusted, Some(1), &values));
        let mut alone = shared.clone();
        alone.specs.retain(|spec_id, _| *spec_id < 3);
        for (spec_id, values, expected) in [
            (Some(1), &values[..], true),
            (Some(1), &[Some("20713"), Some("43")][..], false),
            (Some(1), &[Some("20713"), Some("042")], false),
            (Some(1), &[Some("20713"), None], false),
            (Some(1), &[Some("42")], false),
            (Some(2), &[Some("42")], false),
            (None, &[], false),
        ] {
            assert_eq!(of(&alone, spec_id, values), expected, "{spec_id:?} {values:?}");
        }
    }
}
