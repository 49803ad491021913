//! The index by which each statement may read the tables that grow, and how many rows it may read.

use std::collections::BTreeMap;

use super::watch::{Executed, Scan};

/// The tables that have a row for each file, value, vector or snapshot of a catalog.
const LARGE: [&str; 6] = [
    "hog_data_file",
    "hog_file_column_stats",
    "hog_file_partition_value",
    "hog_delete_file",
    "hog_snapshot_change",
    "hog_snapshot",
];

/// The statements that look for files, by words that no other has. What a drop sends beside them,
/// before and under the lock, goes by [`DROP`].
const NAMES: [(&str, &str); 21] = [
    ("catalogs", "as \"has_older_epoch!\""),
    ("new files", "begin_snapshot > g.through_snapshot"),
    ("compared through", "snapshot_id <= $2\n"),
    ("evidence", "as \"is_provided!\""),
    ("rows of paths", "as \"is_vector?\""),
    ("newest snapshots", "from hog_snapshot where catalog_id = $1 and snapshot_id > $2"),
    ("next_piece", "limit $5) as piece) as f\n"),
    ("live since", "begin_snapshot > $3\n            order by begin_snapshot"),
    ("newest live", "order by begin_snapshot desc"),
    ("late values", "with ahead as materialized"),
    ("late block", "p.begin_snapshot = $4"),
    ("live in ids", "f.data_file_id >= $3 and f.data_file_id < $4"),
    ("distinct values", "with recursive texts"),
    ("entries of values", "as counted"),
    ("files with values", "as value_no, key_index, value, from_id"),
    ("guards", "as \"ddl_since!\""),
    ("facts", "compared as materialized"),
    ("noted head", "insert into tailrace.noted_head"),
    ("whole", "as \"is_whole!\""),
    ("drops without rows", "and f.end_snapshot = s.snapshot_id)"),
    ("count live", "select pg_catalog.count(*) as \"files!\" from ("),
];

/// What every pass may do beside: look at all catalogs with the snapshots since, see whether the catalog is whole, compare what it noted with it, note its
/// head, and look at what became of earlier drops, once for each.
const ALWAYS: [(&str, i64); 7] = [
    ("new files", 2),
    ("catalogs", 1_000),
    ("compared through", 1_000),
    ("whole", 1),
    ("facts", 2_000),
    ("noted head", 1),
    ("drops without rows", 1_000),
];

/// All other statements.
const DROP: &str = "drop";

/// What a statement may look at.
#[derive(Debug, Clone, Copy)]
pub enum Most<'a> {
    /// By these indexes and no others, so many rows or descents each, over all executions; `a|b` is
    /// either.
    By(&'a [(&'a str, i64)]),
    /// By whatever index, so many rows or descents in one scan.
    Each(i64),
}

/// By [`Most::By`], in short.
pub fn by<'a>(name: &'a str, indexes: &'a [(&'a str, i64)]) -> (&'a str, Most<'a>) {
    (name, Most::By(indexes))
}

/// What the statements of a drop may look at: see [`Most::Each`].
pub fn drop_of<'a>(most: i64) -> (&'a str, Most<'a>) {
    (DROP, Most::Each(most))
}

/// Each statement that was executed and reads a large table is expected, each one that is expected
/// was executed, and each keeps to what it may look at.
pub fn assert_keeps_to(what: &str, executed: &[Executed], expected: &[(&str, Most<'_>)]) {
    let expected: BTreeMap<&str, Most<'_>> = expected.iter().copied().collect();
    let always: BTreeMap<&str, Most<'_>> =
        ALWAYS.into_iter().map(|(name, most)| (name, Most::Each(most))).collect();
    let mut seen: BTreeMap<&str, BTreeMap<&str, i64>> = BTreeMap::new();
    for statement in executed {
        let scans: Vec<&Scan> = statement.scans.iter().filter(|scan| is_of_large(scan)).collect();
        if scans.is_empty() {
            continue;
        }
        let name = name_of(&statement.sql);
        let Some(most) = expected.get(name).or_else(|| always.get(name)) else {
            panic!("{what}: nothing is said of {name:?}: {statement:#?}");
        };
        let looks = seen.entry(name).or_default();
        for scan in scans {
            assert!(scan.kind.contains("Index"), "{what}: {name}: {scan:?} in {}", statement.sql);
            if let Most::Each(most) = most {
                assert!(looked(scan) <= *most, "{what}: {name}: {scan:?} in {}", statement.sql);
            }
            *looks.entry(&scan.by).or_default() += looked(scan);
        }
    }
    for (name, most) in &expected {
        let looks = seen.get(name).unwrap_or_else(|| panic!("{what}: {name} was not executed"));
        if let Most::By(indexes) = most {
            let names: Vec<&str> = indexes.iter().map(|(index, _)| *index).collect();
            for (index, looked) in looks {
                let most =
                    indexes.iter().find(|(named, _)| named.split('|').any(|one| one == *index));
                let most =
                    most.unwrap_or_else(|| panic!("{what}: {name} by {index}, not {names:?}"));
                assert!(
                    *looked <= most.1,
                    "{what}: {name} looked at {looked} by {index}: {most:?}"
                );
            }
        }
    }
}

/// What was looked at of files, values and vectors, by whatever statement.
pub fn looked_at(executed: &[Executed]) -> i64 {
    // Whether a file is new is asked once for each table whose catalog has a new head.
    let others = executed.iter().filter(|statement| name_of(&statement.sql) != "new files");
    let scans = others.flat_map(|statement| &statement.scans);
    let of_files = |scan: &&Scan| LARGE[..4].iter().any(|table| is_of(table, scan));
    scans.filter(of_files).map(looked).sum()
}

/// Rows, or descents of an index where these are more.
fn looked(scan: &Scan) -> i64 {
    scan.rows.max(if scan.times > 1.0 { scan.times } else { 0.0 }).ceil() as i64
}

fn is_of_large(scan: &Scan) -> bool {
    LARGE.iter().any(|table| is_of(table, scan))
}

/// Whether a scan is of the table: indexes begin with its name.
fn is_of(table: &str, scan: &Scan) -> bool {
    scan.by.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

fn name_of(sql: &str) -> &'static str {
    NAMES.iter().find(|(_, words)| sql.contains(words)).map_or(DROP, |(name, _)| name)
}
