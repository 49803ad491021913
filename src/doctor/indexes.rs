//! The indexes that the statements of tailrace need, and how to build each that is missing.

use super::{Finding, Level};
use crate::catalog::inventory::Objects;
use crate::installation::rights::as_identifier;

const CHECK: &str = "indexes";

/// An index of the server's: its name, its table, and the rest of its definition.
type Definition = (&'static str, &'static str, &'static str);

/// What our statements use beside primary keys, as a server at V27 has them.
pub const USED: &[Definition] = &[
    (
        "hog_data_file_live",
        "hog_data_file",
        "(catalog_id, table_id, begin_snapshot) where end_snapshot is null",
    ),
    (
        "hog_data_file_maintenance_scan",
        "hog_data_file",
        "(catalog_id, table_id, row_id_start, data_file_id)",
    ),
    ("hog_data_file_changefeed", "hog_data_file", "(catalog_id, table_id, begin_snapshot)"),
    (
        "hog_data_file_ended",
        "hog_data_file",
        "(catalog_id, end_snapshot) where end_snapshot is not null",
    ),
    (LOOKUP, "hog_file_partition_value", "(catalog_id, key_index, value, data_file_id)"),
    ("hog_delete_file_data_lookup", "hog_delete_file", "(catalog_id, data_file_id)"),
    ("hog_delete_file_changefeed", "hog_delete_file", "(catalog_id, table_id, begin_snapshot)"),
    (
        "hog_snapshot_change_conflict",
        "hog_snapshot_change",
        "(catalog_id, object_id, kind, snapshot_id)",
    ),
    ("hog_snapshot_change_by_snapshot", "hog_snapshot_change", "(catalog_id, snapshot_id)"),
    (
        "hog_table_version_live",
        "hog_table_version",
        "(catalog_id, table_id) where end_snapshot is null",
    ),
    ("hog_column_live", "hog_column", "(catalog_id, table_id) where end_snapshot is null"),
    (
        "hog_partition_spec_live",
        "hog_partition_spec",
        "(catalog_id, table_id) where end_snapshot is null",
    ),
    (
        "hog_file_removal_drain",
        "hog_file_removal",
        "(catalog_id, removal_id) where drained_at is null",
    ),
    (
        "hog_consumer_offset_retention_floor",
        "hog_consumer_offset",
        "(catalog_id, committed_snapshot)",
    ),
    (
        "hog_maintenance_summary_tier_table",
        "hog_maintenance_summary_tier",
        "(catalog_id, generation, table_id)",
    ),
];

const LOOKUP: &str = "hog_file_partition_value_lookup";

/// Those without which something else is slow, but no pass.
const SPARED: [&str; 5] = [
    "hog_data_file_ended",
    LOOKUP,
    "hog_file_removal_drain",
    "hog_consumer_offset_retention_floor",
    "hog_maintenance_summary_tier_table",
];

/// What is missing or not valid, each with the statements that build it without keeping writers
/// out. An index of a table that this server does not have is not missed.
pub fn findings(objects: &Objects, schema: &str) -> Vec<Finding> {
    let schema = as_identifier(schema);
    let mut findings = Vec::new();
    for (name, table, rest) in USED {
        if !objects.tables.contains_key(*table) {
            continue;
        }
        let (state, to_do, mut statements) = match objects.indexes.get(*name) {
            Some(index) if index.is_valid => continue,
            Some(_) => (
                "not valid",
                "unless somebody is building it right now (pg_stat_progress_create_index), build it \
                 anew, as the owner of the table; writers go on meanwhile",
                vec![format!("drop index concurrently {schema}.{name};")],
            ),
            None => (
                "missing",
                "build it, as the owner of the table; writers go on meanwhile",
                Vec::new(),
            ),
        };
        statements.push(format!("create index concurrently {name} on {schema}.{table} {rest};"));
        let level = if SPARED.contains(name) { Level::Warning } else { Level::Problem };
        findings.push(
            Finding::new(level, CHECK, format!("the index {name} is {state}"), why(name), to_do)
                .with(statements),
        );
    }
    if findings.is_empty() {
        findings.push(Finding::ok(CHECK, "every index that is used is there and valid"));
    }
    findings
}

fn why(name: &str) -> &'static str {
    match name {
        LOOKUP => "passes read all files of a large table instead of those that expired",
        "hog_data_file_ended" => "the feed of changes reads whole tables for what ended",
        "hog_file_removal_drain" => "the queue of objects to delete can only be read whole",
        "hog_consumer_offset_retention_floor" => "the slowest consumer is looked for among all",
        "hog_maintenance_summary_tier_table" => "doctor and debt read every table's sample for one",
        _ => {
            "statements that are meant to read a few rows read whole tables, some of them while \
              writers wait"
        }
    }
}
