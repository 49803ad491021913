//! Which tuples a hold keeps: a pure function of the hold, the table's specs and the tuple. What cannot be told
//! is held.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::rules::expiry::{SpecBook, SpecField, StoredTuple};
use crate::rules::transform::canonical_integer;

/// A partition as a hold names it. Names are those of the stored JSON.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
pub struct HeldPartition {
    /// The spec of its files.
    pub spec_id: i64,
    /// The partition values by key index.
    pub values: Vec<Option<String>>,
}

/// What a hold keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldScope {
    /// All of the table, files of no spec included.
    Table,
    /// These partitions.
    Partitions(Vec<HeldPartition>),
    /// Every partition that may have rows with this value in this column.
    Value { source_field_id: i64, value: String },
}

/// The holds of one table.
#[derive(Debug, Clone, Default)]
pub struct Held {
    /// The hold of the whole table with the lowest id.
    table: Option<i64>,
    /// By partition the hold that names it.
    partitions: HashMap<HeldPartition, i64>,
    /// The holds on a value: id, column and value.
    values: Vec<(i64, i64, String)>,
}

impl Held {
    /// By holds and their ids; of several that keep a tuple the first one given is named.
    pub fn of(holds: impl IntoIterator<Item = (i64, HoldScope)>) -> Self {
        let mut held = Held::default();
        for (id, scope) in holds {
            match scope {
                HoldScope::Table => held.table = held.table.or(Some(id)),
                HoldScope::Partitions(partitions) => {
                    for partition in partitions {
                        held.partitions.entry(partition).or_insert(id);
                    }
                }
                HoldScope::Value { source_field_id, value } => {
                    held.values.push((id, source_field_id, value));
                }
            }
        }
        held
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.table.is_none() && self.partitions.is_empty() && self.values.is_empty()
    }

    /// The hold that keeps files of a spec with these values, if one does.
    ///
    /// A hold on a value keeps a tuple unless the tuple's own spec has the column as it is (`identity`) and the
    /// tuple's value there is another one. It also keeps a tuple whose value would be the held one by another
    /// spec of as many fields: a writer with an older spec stores its values under the newer id.
    pub fn by(&self, book: &SpecBook, spec_id: Option<i64>, tuple: &StoredTuple) -> Option<i64> {
        if self.table.is_some() {
            return self.table;
        }
        if let Some(spec_id) = spec_id
            && !self.partitions.is_empty()
        {
            let partition = HeldPartition { spec_id, values: tuple.values.clone() };
            if let Some(id) = self.partitions.get(&partition) {
                return Some(*id);
            }
        }
        let keeps = |(_, column, value): &&(i64, i64, String)| {
            !is_another(book, spec_id, tuple, *column, value)
        };
        self.values.iter().find(keeps).map(|(id, ..)| *id)
    }
}

/// Whether all rows of a tuple have another value in the column than this one.
fn is_another(
    book: &SpecBook,
    spec_id: Option<i64>,
    tuple: &StoredTuple,
    column: i64,
    value: &str,
) -> bool {
    let types = book.column_types.get(&column);
    let own = spec_id.and_then(|spec_id| book.specs.get(&spec_id));
    let Some(own) = own.filter(|fields| fields.len() == tuple.values.len()) else { return false };
    let stored = |fields: &[SpecField]| -> Vec<Option<String>> {
        let of_column =
            |field: &&SpecField| field.source_field_id == column && field.transform == "identity";
        let text = |field: &SpecField| {
            let at = tuple.keys.iter().position(|key| *key == field.key_index)?;
            tuple.values.get(at)?.clone()
        };
        fields.iter().filter(of_column).map(text).collect()
    };
    let by_own = stored(own);
    let differs = |text: &Option<String>| match text {
        // All rows of the null partition have no value there.
        None => tuple.keys.len() == own.len(),
        Some(text) => differs(text, value, types),
    };
    if !by_own.iter().any(differs) || by_own.iter().flatten().any(|text| text == value) {
        return false;
    }
    let others = book.specs.values().chain(book.disputed.values().flatten());
    let of_same_arity = others.filter(|fields| fields.len() == own.len());
    !of_same_arity.flat_map(|fields| stored(fields)).flatten().any(|text| text == value)
}

/// Whether two texts of a column are surely two values, by every type that the column was seen with.
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
    fn a_value_is_held_wherever_it_may_be() {
        let held =
            Held::of([(9, HoldScope::Value { source_field_id: TEAM, value: "42".to_owned() })]);
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
            let by = held.by(&book(col_type), spec_id, &tuple(&values));
            assert_eq!(by, expected.then_some(9), "{col_type} {spec_id:?} {values:?}");
        }
        let unknown = SpecBook { column_types: Default::default(), ..book("int") };
        assert_eq!(held.by(&unknown, Some(1), &tuple(&[Some("1"), Some("43")])), Some(9));
    }

    #[test]
    fn a_partition_is_held_under_its_own_spec_alone() {
        let partition = HeldPartition { spec_id: 2, values: vec![Some("20713".to_owned())] };
        let held = Held::of([(3, HoldScope::Partitions(vec![partition]))]);
        for (spec_id, value, expected) in [
            (Some(2), Some("20713"), Some(3)),
            (Some(2), Some("20714"), None),
            (Some(2), None, None),
            (Some(5), Some("20713"), None),
            (None, Some("20713"), None),
        ] {
            assert_eq!(held.by(&book("int"), spec_id, &tuple(&[value])), expected, "{spec_id:?}");
        }
    }

    #[test]
    fn a_hold_of_a_table_keeps_all_of_it() {
        let held = Held::of([(4, HoldScope::Table), (3, HoldScope::Table)]);
        assert_eq!(held.by(&book("int"), Some(2), &tuple(&[Some("1")])), Some(4));
        assert_eq!(held.by(&book("int"), None, &tuple(&[])), Some(4));
        assert!(Held::default().is_empty() && !held.is_empty());
        assert_eq!(Held::default().by(&book("int"), None, &tuple(&[])), None);
    }
}
