//! Which of the wanted tuples a file has. Pure.
//!
//! A tuple is compared as a list of texts, one per key in the order of the keys: `key` for a null
//! and `key:value` for a value, so that the database need build no JSON for a file.

use std::collections::HashMap;

use crate::catalog::discovery::TupleOfSpec;
use crate::rules::expiry::StoredTuple;

/// A value, null or not, at a key: the files that have it are found together.
pub type Lead<'a> = (i32, Option<&'a str>);

/// The wanted tuples, to be found by what a file has.
pub struct Matcher<'a> {
    by_spec: HashMap<i64, HashMap<Vec<String>, i32>>,
    leads: Vec<Lead<'a>>,
    /// For each tuple the index of its lead.
    lead_of: Vec<Option<usize>>,
}

impl<'a> Matcher<'a> {
    /// For these tuples, each with the position of its lead. A tuple without keys is nobody's.
    pub fn new(tuples: &'a [TupleOfSpec], positions: &[usize]) -> Self {
        let mut matcher = Matcher {
            by_spec: HashMap::new(),
            leads: Vec::new(),
            lead_of: Vec::with_capacity(tuples.len()),
        };
        let mut known = HashMap::new();
        for ((wanted, position), number) in tuples.iter().zip(positions).zip(0..) {
            let TupleOfSpec { spec_id, tuple } = wanted;
            let value = tuple.values.get(*position).map(Option::as_deref);
            let lead = tuple.keys.get(*position).copied().zip(value);
            matcher.lead_of.push(lead.map(|lead| {
                *known.entry(lead).or_insert_with(|| {
                    matcher.leads.push(lead);
                    matcher.leads.len() - 1
                })
            }));
            if lead.is_some() {
                matcher.by_spec.entry(*spec_id).or_default().insert(texts(tuple), number);
            }
        }
        matcher
    }

    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        self.leads.is_empty()
    }

    /// The distinct leads.
    pub fn leads(&self) -> &[Lead<'a>] {
        &self.leads
    }

    /// The tuple with these texts.
    pub fn by_texts(&self, spec_id: i64, texts: &[String]) -> Option<i32> {
        self.by_spec.get(&spec_id)?.get(texts).copied()
    }

    /// As [`Self::by_texts`], where the file was found by a lead: a file has several values and may
    /// be found by as many, and is its tuple's by one of them alone.
    pub fn by_lead(&self, spec_id: i64, texts: &[String], lead: usize) -> Option<i32> {
        let number = self.by_texts(spec_id, texts)?;
        let own = usize::try_from(number).ok().and_then(|at| self.lead_of.get(at));
        (own == Some(&Some(lead))).then_some(number)
    }

    /// The tuple that is this one.
    pub fn by_tuple(&self, spec_id: i64, tuple: &StoredTuple) -> Option<i32> {
        self.by_texts(spec_id, &texts(tuple))
    }
}

fn texts(tuple: &StoredTuple) -> Vec<String> {
    let text = |(key, value): (&i32, &Option<String>)| match value {
        None => key.to_string(),
        Some(value) => format!("{key}:{value}"),
    };
    tuple.keys.iter().zip(&tuple.values).map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(spec_id: i64, pairs: &[(i32, Option<&str>)]) -> TupleOfSpec {
        let (keys, values) =
            pairs.iter().map(|(key, value)| (*key, value.map(str::to_owned))).unzip();
        TupleOfSpec { spec_id, tuple: StoredTuple { keys, values } }
    }

    fn found(matcher: &Matcher<'_>, spec_id: i64, texts: &[&str]) -> Option<i32> {
        let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
        matcher.by_texts(spec_id, &texts)
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
        assert_eq!(matcher.leads(), [(0, Some("5"))]);
        for (spec_id, texts, expected) in [
            (1, &["0:5", "1"][..], Some(0)),
            (1, &["0:5", "1:"], Some(1)),
            (2, &["0:5"], Some(2)),
            (1, &["0:5"], None),
            (1, &["0:5", "2"], None),
            (2, &["0:5", "1"], None),
            (2, &[], None),
            (3, &["0:5"], None),
        ] {
            assert_eq!(found(&matcher, spec_id, texts), expected, "{spec_id} {texts:?}");
        }
        assert_eq!(matcher.by_tuple(1, &tuples[1].tuple), Some(1));
    }

    #[test]
    fn a_file_is_found_by_the_lead_of_its_own_tuple_alone() {
        let tuples = [
            tuple(1, &[(0, Some("5")), (1, Some("6"))]),
            tuple(1, &[(0, Some("9")), (1, Some("6"))]),
        ];
        let matcher = Matcher::new(&tuples, &[0, 1]);
        assert_eq!(matcher.leads(), [(0, Some("5")), (1, Some("6"))]);
        let texts = ["0:5".to_owned(), "1:6".to_owned()];
        assert_eq!(matcher.by_lead(1, &texts, 0), Some(0));
        assert_eq!(matcher.by_lead(1, &texts, 1), None);
    }
}
