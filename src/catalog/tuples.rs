//! Tuples of a table's files, and how they are compared.
//!
//! A file is matched by its spec and its whole tuple, keys and values, never by a text alone:
//! the lookup index is shared by all tables of the catalog, and key_index means something else
//! under each spec. In SQL a tuple is the JSON array `[[key_index, value], ...]` of all the rows
//! that the file has, so a file with a missing row is equal to no complete tuple.

use serde::Serialize;
use sqlx::types::Json;

use crate::rules::expiry::StoredTuple;

/// A complete tuple of a spec, to be found or dropped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TupleOfSpec {
    /// The spec.
    pub spec_id: i64,
    /// The spec's keys and a value for each.
    pub tuple: StoredTuple,
}

#[derive(Serialize)]
struct WantedTuple<'a> {
    spec_id: i64,
    tuple: Vec<(i32, Option<&'a str>)>,
}

/// The tuples as the statements take them, in order.
pub(super) fn wanted(tuples: &[TupleOfSpec]) -> Json<Vec<impl Serialize + '_>> {
    let pairs = |tuple: &StoredTuple| tuple.keys.iter().copied().zip(0_usize..).collect::<Vec<_>>();
    Json(
        tuples
            .iter()
            .map(|wanted| WantedTuple {
                spec_id: wanted.spec_id,
                tuple: pairs(&wanted.tuple)
                    .into_iter()
                    .map(|(key, at)| (key, wanted.tuple.values.get(at).and_then(Option::as_deref)))
                    .collect(),
            })
            .collect(),
    )
}
