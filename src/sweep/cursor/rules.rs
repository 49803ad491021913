//! The digest of the rules that a cursor counts for. Pure.
//!
//! It is one of values, each under a name that is written here, so that neither a type that is renamed
//! nor one that gains a field which says nothing of how files are judged resets the cursors. Where the
//! digest does change, the next pass over each table is a full one, once; nothing else follows.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::window::{SpecBook, SpecField};

/// Goes up when the same version judges otherwise than it did.
const RULES: &str = "2: evidence";

/// The text that is hashed, as JSON: maps and sets are ordered, so the same values are the same text.
#[derive(Serialize)]
struct Covered<'a> {
    version: &'a str,
    rules: &'a str,
    specs: BTreeMap<i64, Vec<Field<'a>>>,
    disputed: BTreeMap<i64, Vec<Vec<Field<'a>>>>,
    column_types: &'a BTreeMap<i64, BTreeSet<String>>,
}

#[derive(Serialize)]
struct Field<'a> {
    key_index: i32,
    source_field_id: i64,
    transform: &'a str,
    transform_param: Option<i32>,
}

impl<'a> From<&'a SpecField> for Field<'a> {
    fn from(field: &'a SpecField) -> Self {
        let SpecField { key_index, source_field_id, transform, transform_param } = field;
        Field {
            key_index: *key_index,
            source_field_id: *source_field_id,
            transform,
            transform_param: *transform_param,
        }
    }
}

/// The digest of all that is known of a table's specs and column types, and of the version of this
/// program.
pub(super) fn digest(version: &str, book: &SpecBook) -> Vec<u8> {
    // Names say nothing of values. Marks and trust are left out: what they keep is looked up by each
    // pass anyway.
    let SpecBook { specs, disputed, column_types, column_names: _, past: _ } = book;
    let covered = Covered {
        version,
        rules: RULES,
        specs: specs.iter().map(|(id, spec)| (*id, fields(spec))).collect(),
        disputed: disputed
            .iter()
            .map(|(id, specs)| (*id, specs.iter().map(|spec| fields(spec)).collect()))
            .collect(),
        column_types,
    };
    // Strings, numbers and lists of them always serialise.
    Sha256::digest(serde_json::to_vec(&covered).unwrap_or_default()).to_vec()
}

fn fields(spec: &[SpecField]) -> Vec<Field<'_>> {
    spec.iter().map(Field::from).collect()
}

#[cfg(test)]
mod tests;
