//! What a tuple says about the values of a column in its rows: that all have this value, or that none has. Pure.

use std::collections::BTreeSet;

use crate::rules::expiry::{SpecBook, SpecField, StoredTuple};
use crate::rules::transform::canonical_integer;

/// Whether a tuple of a spec may have rows with this value in the column.
///
/// It may, unless its own spec has the column as it is (`identity`) and the tuple's value there is certainly another
/// one. It may also if its value would be this one by another spec of as many fields: a writer with an older spec
/// stores its values under the newer id.
pub fn may_have(
    book: &SpecBook,
    spec_id: Option<i64>,
    tuple: &StoredTuple,
    column: i64,
    value: &str,
) -> bool {
    let Some(own) = own_fields(book, spec_id, tuple) else { return true };
    let types = book.column_types.get(&column);
    let is_another = |text: &Option<String>| match text {
        // All rows of the null partition have no value there.
        None => tuple.keys.len() == own.len(),
        Some(text) => differs(text, value, types),
    };
    let by_own = stored(own, tuple, column);
    if !by_own.iter().any(is_another) || by_own.iter().flatten().any(|text| text == value) {
        return true;
    }
    let mut by_others = of_same_arity(book, own).flat_map(|fields| stored(fields, tuple, column));
    by_others.any(|text| text.as_deref() == Some(value))
}

/// Whether certainly all rows of a tuple have this value in the column: its own spec says so, and every other spec of
/// as many fields has the same field in that place, unless the values of its spec are trusted.
pub fn has_surely(
    book: &SpecBook,
    spec_id: Option<i64>,
    tuple: &StoredTuple,
    column: i64,
    value: &str,
) -> bool {
    let Some(own) = own_fields(book, spec_id, tuple) else { return false };
    let is_trusted = spec_id
        .and_then(|spec_id| book.past.get(&spec_id))
        .is_some_and(|past| past.trusted_at.is_some());
    own.iter().filter(|field| is_as_it_is(field, column)).any(|field| {
        let has_it = |fields: &[SpecField]| {
            fields.iter().any(|other| other.key_index == field.key_index && other.stores_as(field))
        };
        let is_alone = is_trusted || of_same_arity(book, own).all(has_it);
        text_of(field, tuple).as_deref() == Some(value) && is_alone
    })
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

/// What the tuple has for the column, by these fields.
fn stored(fields: &[SpecField], tuple: &StoredTuple, column: i64) -> Vec<Option<String>> {
    let of_column = fields.iter().filter(|field| is_as_it_is(field, column));
    of_column.map(|field| text_of(field, tuple)).collect()
}

/// Whether two texts of a column are certainly two values, by every type that the column was seen with.
fn differs(text: &str, value: &str, types: Option<&BTreeSet<String>>) -> bool {
    let by_type = |col_type: &String| match col_type.as_str() {
        "string" | "boolean" => text != value,
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
        for (col_type, spec_id, values, expected) in [
            ("int", Some(1), vec![Some("20713"), Some("42")], true),
            ("int", Some(1), vec![Some("20713"), Some("43")], false),
            ("int", Some(1), vec![Some("20713"), Some("-42")], false),
            // No writer should have stored these: nobody knows what they mean.
            ("int", Some(1), vec![Some("20713"), Some("042")], true),
            ("int", Some(1), vec![Some("20713"), Some("42.0")], true),
            ("int", Some(1), vec![Some("20713"), Some("")], true),
            ("string", Some(1), vec![Some("20713"), Some("042")], false),
            ("timestamptz", Some(1), vec![Some("20713"), Some("43")], true),
            ("int", Some(1), vec![Some("20713"), None], false),
            // The value may be one of the field that another spec has there.
            ("int", Some(1), vec![Some("42"), Some("20713")], true),
            // Damage, another spec, none.
            ("int", Some(1), vec![Some("20713")], true),
            ("int", Some(2), vec![Some("20713")], true),
            ("int", Some(3), vec![Some("20713"), Some("7")], true),
            ("int", Some(8), vec![Some("20713"), Some("43")], true),
            ("int", None, vec![], true),
        ] {
            let may = may_have(&book(col_type), spec_id, &tuple(&values), TEAM, "42");
            assert_eq!(may, expected, "{col_type} {spec_id:?} {values:?}");
        }
        let unknown = SpecBook { column_types: Default::default(), ..book("int") };
        assert!(may_have(&unknown, Some(1), &tuple(&[Some("1"), Some("43")]), TEAM, "42"));
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
