//! What a list of tuples must be, by the specs that they name. Pure.

use std::collections::BTreeSet;

use super::call::PartitionItem;
use super::problem::Problem;
use crate::catalog::tuples::TupleOfSpec;
use crate::rules::expiry::{SpecBook, SpecField, StoredTuple};
use crate::rules::transform::{Undatable, canonical_integer};

/// A tuple that an item names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    pub tuple: TupleOfSpec,
    /// The position of the value by which its files are found.
    pub lookup_key: usize,
}

/// The most tuples that one drop may name.
pub const MOST_TUPLES: usize = 10_000;

/// The longest author of a snapshot, and name of whoever set or vouched for something, in bytes.
pub const LONGEST_AUTHOR: usize = 1024;

/// The longest message of a snapshot, and reason that somebody gives, in bytes.
pub const LONGEST_MESSAGE: usize = 8 * 1024;

/// Checks what needs no table: how many tuples there are, and that none is named twice once
/// `default_spec` stands for a spec that is not named.
pub fn check_list(items: &[PartitionItem], default_spec: Option<i64>) -> Result<(), Problem> {
    let refuse = |text: String| Err(Problem::Validation(text));
    if items.is_empty() || items.len() > MOST_TUPLES {
        return refuse(format!(
            "partitions has {} items: 1 to {MOST_TUPLES} are allowed",
            items.len()
        ));
    }
    let mut seen = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        if !seen.insert((item.spec_id.or(default_spec), &item.partition_values)) {
            return refuse(format!("partitions[{at}] {} is named twice", shown(item)));
        }
    }
    Ok(())
}

/// Checks the texts that go into the snapshot: Postgres stores no NUL in one, and every reader of the
/// catalog's snapshots gets them whole.
pub fn check_note(author: &str, message: Option<&str>) -> Result<(), Problem> {
    let message = message.unwrap_or_default();
    for (name, text, longest) in
        [("author", author, LONGEST_AUTHOR), ("message", message, LONGEST_MESSAGE)]
    {
        if text.contains('\0') {
            return Err(Problem::Validation(format!("{name} has a NUL, which no text can have")));
        }
        fits(text, longest).map_err(|why| Problem::Validation(format!("{name} {why}")))?;
    }
    Ok(())
}

/// Whether a text is at most so many bytes of UTF-8 long; else the rest of a sentence about it.
pub fn fits(text: &str, longest: usize) -> Result<(), String> {
    match text.len() {
        length if length <= longest => Ok(()),
        length => Err(format!("has {length} bytes, and at most {longest} are allowed")),
    }
}

/// The tuples that the items name, in order.
///
/// # Errors
/// 422 that names the item: no spec, an unknown one, another number of values than the spec has
/// keys, a wildcard, or a text that no writer stores for the field; the last two are allowed where
/// the item is `literal`.
pub fn resolve(
    items: &[PartitionItem],
    default_spec: Option<i64>,
    book: &SpecBook,
) -> Result<Vec<Resolved>, Problem> {
    items
        .iter()
        .enumerate()
        .map(|(at, item)| {
            resolve_one(item, default_spec, book).map_err(|reason| {
                Problem::Validation(format!("partitions[{at}] {} {reason}", shown(item)))
            })
        })
        .collect()
}

fn resolve_one(
    item: &PartitionItem,
    default_spec: Option<i64>,
    book: &SpecBook,
) -> Result<Resolved, String> {
    let spec_id = item
        .spec_id
        .or(default_spec)
        .ok_or("names no spec_id, and the table has no live partition spec")?;
    let fields = book
        .specs
        .get(&spec_id)
        .ok_or_else(|| format!("names spec {spec_id}, which the table does not have"))?;
    if fields.is_empty() {
        return Err(format!("names spec {spec_id}, which partitions by nothing"));
    }
    if fields.len() != item.partition_values.len() {
        return Err(format!(
            "has {} values, and spec {spec_id} has {} keys",
            item.partition_values.len(),
            fields.len()
        ));
    }
    if item.partition_values.iter().flatten().any(|text| text.contains('\0')) {
        return Err("has a NUL, which no partition value can have".to_owned());
    }
    if !item.literal {
        for (field, value) in fields.iter().zip(&item.partition_values) {
            check_text(field, value.as_deref())?;
        }
    }
    let keys = fields.iter().map(|field| field.key_index).collect();
    let tuple = StoredTuple { keys, values: item.partition_values.clone() };
    Ok(Resolved {
        tuple: TupleOfSpec { spec_id, tuple },
        lookup_key: lookup_key(fields, &item.partition_values),
    })
}

/// The position by whose value the files are found with the least reading: a time, else an
/// identity, else a bucket, which many files share; a null only where there is nothing else.
fn lookup_key(fields: &[SpecField], values: &[Option<String>]) -> usize {
    let cost = |position: &usize| match (
        values[*position].is_some(),
        fields[*position].transform.as_str(),
    ) {
        (false, _) => 3,
        (true, "bucket") => 2,
        (true, "identity") => 1,
        (true, _) => 0,
    };
    (0..fields.len()).min_by_key(cost).unwrap_or(0)
}

/// Whether a writer may have stored the text for the field. Null is the null partition.
fn check_text(field: &SpecField, text: Option<&str>) -> Result<(), String> {
    let Some(text) = text else { return Ok(()) };
    let key = field.key_index;
    if text == "*" {
        return Err(format!(
            "has a wildcard at key {key}, and there are none: name each partition (or say literal, if the text * is meant)"
        ));
    }
    let hint = "say literal, if this very text is meant";
    match (field.transform.as_str(), canonical_integer(text)) {
        ("year" | "month" | "day" | "hour", Err(Undatable::Malformed)) => Err(format!(
            "has {text:?} at key {key}, which is no {} (a canonical decimal counted from 1970): {hint}",
            field.transform
        )),
        ("bucket", number) => {
            let buckets = i128::from(field.transform_param.unwrap_or(0));
            match number {
                Ok(number) if (0..buckets).contains(&number) => Ok(()),
                _ => Err(format!(
                    "has {text:?} at key {key}, which is no bucket of 0 to {}: {hint}",
                    buckets - 1
                )),
            }
        }
        _ => Ok(()),
    }
}

fn shown(item: &PartitionItem) -> String {
    const SHOWN: usize = 200;
    let text = serde_json::to_string(&item.partition_values).unwrap_or_default();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests;
