//! The digest of what a table's calendar was judged by. Pure.
//!
//! It is one of values, each under a name that is written here, so that neither a type that is renamed
//! nor one that gains a field which says nothing of how files are judged changes it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::rules::expiry::{SpecBook, SpecField};

/// Goes up when the program dates values otherwise than it did, with the text below.
pub const RULES_NUMBER: u8 = 3;
const RULES: &str = "3: calendar";

/// The length of a SHA-256.
const PART: usize = 32;

/// Digests of what decides how values are dated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BookDigest {
    /// Of the rules and of the types of the policy's column: where they change, what could not be dated may
    /// be datable.
    pub rules: Vec<u8>,
    /// Of all specs that are known: where they change, a value may mean more or less than it did.
    pub specs: Vec<u8>,
    /// The number of the rules, by which a pass knows without the book that they are others.
    pub number: Option<u8>,
}

#[derive(Serialize)]
struct Rules<'a> {
    rules: &'a str,
    column_types: Option<&'a BTreeSet<String>>,
}

#[derive(Serialize)]
struct Specs<'a> {
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

impl BookDigest {
    /// Of a book, for a policy on this column. Names say nothing of values; marks and trust decide about
    /// evidence, which is checked anew at each look.
    pub fn of(book: &SpecBook, source_field_id: i64) -> Self {
        let SpecBook { specs, disputed, column_types, column_names: _, past: _ } = book;
        BookDigest {
            rules: hashed(&Rules {
                rules: RULES,
                column_types: column_types.get(&source_field_id),
            }),
            specs: hashed(&Specs {
                specs: specs.iter().map(|(id, spec)| (*id, fields(spec))).collect(),
                disputed: disputed
                    .iter()
                    .map(|(id, specs)| (*id, specs.iter().map(|spec| fields(spec)).collect()))
                    .collect(),
                column_types,
            }),
            number: Some(RULES_NUMBER),
        }
    }

    /// As it is stored: one after the other.
    pub fn to_bytes(&self) -> Vec<u8> {
        [&self.rules[..], &self.specs[..], self.number.as_slice()].concat()
    }

    /// As it was stored, with or without the number; what nobody stored is like no other.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let (rules, rest) = bytes.split_at(PART.min(bytes.len()));
        let (specs, number) = rest.split_at(PART.min(rest.len()));
        BookDigest { rules: rules.to_vec(), specs: specs.to_vec(), number: number.first().copied() }
    }
}

/// As JSON: maps and sets are ordered, so the same values are the same text.
fn hashed(values: &impl Serialize) -> Vec<u8> {
    // Strings, numbers and lists of them always serialise.
    Sha256::digest(serde_json::to_vec(values).unwrap_or_default()).to_vec()
}

fn fields(spec: &[SpecField]) -> Vec<Field<'_>> {
    spec.iter().map(Field::from).collect()
}

#[cfg(test)]
mod tests;
