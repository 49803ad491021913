//! Which of the wanted tuples a file has. Pure.

use std::collections::HashMap;

use crate::catalog::tuples::TupleOfSpec;
use crate::catalog::values::Value;
use crate::rules::expiry::StoredTuple;

/// The wanted tuples, to be found by what a file has.
#[derive(Debug)]
pub struct Matcher<'a> {
    by_spec: HashMap<i64, HashMap<&'a StoredTuple, i32>>,
    lookup_values: Vec<Value>,
    /// For each tuple the index of its lookup value.
    lookup_value_of: Vec<Option<usize>>,
}

impl<'a> Matcher<'a> {
    /// For these tuples, each with its lookup key. A tuple without keys is nobody's.
    pub fn new(tuples: &'a [TupleOfSpec], lookup_keys: &[usize]) -> Self {
        let mut matcher = Matcher {
            by_spec: HashMap::new(),
            lookup_values: Vec::new(),
            lookup_value_of: Vec::with_capacity(tuples.len()),
        };
        let mut known = HashMap::new();
        for ((wanted, lookup_key), number) in tuples.iter().zip(lookup_keys).zip(0..) {
            let TupleOfSpec { spec_id, tuple } = wanted;
            let value = tuple.values.get(*lookup_key);
            let lookup_value = tuple.keys.get(*lookup_key).copied().zip(value);
            matcher.lookup_value_of.push(lookup_value.map(|(key_index, value)| {
                *known.entry((key_index, value)).or_insert_with(|| {
                    matcher.lookup_values.push(Value { key_index, value: value.clone() });
                    matcher.lookup_values.len() - 1
                })
            }));
            if lookup_value.is_some() {
                matcher.by_spec.entry(*spec_id).or_default().insert(tuple, number);
            }
        }
        matcher
    }

    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        self.lookup_values.is_empty()
    }

    /// The distinct values by which files are looked up.
    pub fn lookup_values(&self) -> &[Value] {
        &self.lookup_values
    }

    /// The tuple that is this one.
    pub fn by_tuple(&self, spec_id: i64, tuple: &StoredTuple) -> Option<i32> {
        self.by_spec.get(&spec_id)?.get(tuple).copied()
    }

    /// As [`Self::by_tuple`], where the file was found by a value: a file has several values and may
    /// be found by as many, and is its tuple's by one of them alone.
    pub fn by_lookup_value(&self, spec_id: i64, tuple: &StoredTuple, value: &Value) -> Option<i32> {
        let number = self.by_tuple(spec_id, tuple)?;
        let lookup_value = (*self.lookup_value_of.get(usize::try_from(number).ok()?)?)?;
        (self.lookup_values.get(lookup_value)? == value).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(pairs: &[(i32, Option<&str>)]) -> StoredTuple {
        let (keys, values) =
            pairs.iter().map(|(key, value)| (*key, value.map(str::to_owned))).unzip();
        StoredTuple { keys, values }
    }

    fn tuple(spec_id: i64, pairs: &[(i32, Option<&str>)]) -> TupleOfSpec {
        TupleOfSpec { spec_id, tuple: stored(pairs) }
    }

    fn value(key_index: i32, text: &str) -> Value {
        Value { key_index, value: Some(text.to_owned()) }
    }

    #[test]
    fn a_file_is_matched_by_its_spec_and_all_of_its_values() {
        let tuples = [
            tuple(1, &[(0, Some("5")), (1, None)]),
            tuple(1, &[(0, Some("5")), (1, Some(""))]),
            tuple(2, &[(0, Some("5"))]),
            tuple(2, &[]),
        ];
        let matcher = Matcher::new(&tuples, &[0, 0, 0, 0]);
        assert_eq!(matcher.lookup_values(), [value(0, "5")]);
        for (spec_id, pairs, expected) in [
            (1, &[(0, Some("5")), (1, None)][..], Some(0)),
            (1, &[(0, Some("5")), (1, Some(""))], Some(1)),
            (2, &[(0, Some("5"))], Some(2)),
            (1, &[(0, Some("5"))], None),
            (1, &[(0, Some("5")), (2, None)], None),
            (2, &[(0, Some("5")), (1, None)], None),
            (2, &[], None),
            (3, &[(0, Some("5"))], None),
        ] {
            let found = matcher.by_tuple(spec_id, &stored(pairs));
            assert_eq!(found, expected, "{spec_id} {pairs:?}");
        }
    }

    #[test]
    fn a_file_is_found_by_the_lookup_key_of_its_own_tuple_alone() {
        let tuples = [
            tuple(1, &[(0, Some("5")), (1, Some("6"))]),
            tuple(1, &[(0, Some("9")), (1, Some("6"))]),
        ];
        let matcher = Matcher::new(&tuples, &[0, 1]);
        assert_eq!(matcher.lookup_values(), [value(0, "5"), value(1, "6")]);
        let found = stored(&[(0, Some("5")), (1, Some("6"))]);
        assert_eq!(matcher.by_lookup_value(1, &found, &value(0, "5")), Some(0));
        assert_eq!(matcher.by_lookup_value(1, &found, &value(1, "6")), None);
    }
}
