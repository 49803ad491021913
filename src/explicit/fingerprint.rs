//! What makes two requests the same. Pure.
//!
//! Covered: the names in the path, the tuples as a set with their `literal`, fence and both
//! guards. Not covered: author, message, dry_run, and the order of the tuples.

use serde::Serialize;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::call::{DropBody, PartitionItem, TableRef, TruncateBody};

/// Spec, texts, whether they are meant literally.
type Tuple<'a> = (Option<i64>, &'a [Option<String>], bool);

#[derive(Serialize)]
struct Covered<'a> {
    kind: &'static str,
    catalog: &'a str,
    namespace: &'a str,
    table: &'a str,
    tuples: Vec<Tuple<'a>>,
    fence: bool,
    expected_table_uuid: Option<Uuid>,
    read_snapshot: Option<i64>,
}

/// The fingerprint of a drop. A spec that is not named reads as `default_spec`: in a retry, the
/// one that the receipt stored.
pub fn of_drop(table: &TableRef, body: &DropBody, default_spec: Option<i64>) -> Vec<u8> {
    let tuple = |item: &'_ PartitionItem| (item.spec_id.or(default_spec), item.literal);
    let mut tuples: Vec<_> = body
        .partitions
        .iter()
        .map(|item| {
            let (spec_id, literal) = tuple(item);
            (spec_id, item.partition_values.as_slice(), literal)
        })
        .collect();
    tuples.sort_unstable();
    hash(&Covered {
        kind: "drop",
        catalog: &table.catalog,
        namespace: &table.namespace,
        table: &table.table,
        tuples,
        fence: body.fence,
        expected_table_uuid: body.expected_table_uuid,
        read_snapshot: body.read_snapshot,
    })
}

/// The fingerprint of a truncate.
pub fn of_truncate(table: &TableRef, expected: Option<Uuid>, body: &TruncateBody) -> Vec<u8> {
    hash(&Covered {
        kind: "truncate",
        catalog: &table.catalog,
        namespace: &table.namespace,
        table: &table.table,
        tuples: Vec::new(),
        fence: true,
        expected_table_uuid: expected,
        read_snapshot: body.read_snapshot,
    })
}

fn hash(covered: &Covered<'_>) -> Vec<u8> {
    // Strings, numbers and lists of them always serialise.
    let text = serde_json::to_vec(covered).unwrap_or_default();
    Sha256::digest(&text).to_vec()
}
