//! Which tuples a hold keeps: a pure function of the hold, the table's specs and the tuple. A tuple that may have
//! held rows is held.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::rules::column_value::may_have;
use crate::rules::expiry::{SpecBook, StoredTuple};

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
    /// A hold on a value keeps what [`may_have`] rows with it.
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
            may_have(book, spec_id, tuple, *column, value)
        };
        self.values.iter().find(keeps).map(|(id, ..)| *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::expiry::SpecField;

    const TEAM: i64 = 2;

    /// Spec 1 is (day(1), identity(2)), spec 2 (day(1)).
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
        ]);
        book.column_types.insert(TEAM, [col_type.to_owned()].into());
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
    fn a_value_is_held_wherever_it_may_be() {
        let scope = HoldScope::Value { source_field_id: TEAM, value: "42".to_owned() };
        let held = Held::of([(9, scope)]);
        assert!(!held.is_empty());
        for (spec_id, values, expected) in [
            (Some(1), vec![Some("20713"), Some("42")], Some(9)),
            (Some(1), vec![Some("20713"), Some("43")], None),
            (Some(2), vec![Some("20713")], Some(9)),
            (None, vec![], Some(9)),
        ] {
            let by = held.by(&book("int"), spec_id, &tuple(&values));
            assert_eq!(by, expected, "{spec_id:?} {values:?}");
        }
    }

    #[test]
    fn a_partition_is_held_under_its_own_spec_alone() {
        let partition = HeldPartition { spec_id: 2, values: vec![Some("20713".to_owned())] };
        let held = Held::of([(3, HoldScope::Partitions(vec![partition]))]);
        assert!(!held.is_empty());
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
