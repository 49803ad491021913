//! Compares the rows of claims that exist with those that should exist. Pure.
//!
//! Rows are kept where possible: renewing a row writes only its lease, and changing its ids writes all of
//! them.

use std::collections::BTreeSet;

use crate::catalog::compaction_claims::ClaimRow;

/// The most files that one row names.
pub const MOST_IDS: usize = 4_096;

/// The name space of our keys.
const PREFIX: &str = "tailrace/";

/// What has to be done to a table's rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Keys of rows that stay as they are, and get a new lease.
    pub renewed: Vec<String>,
    /// Rows that are new, or whose ids change.
    pub written: Vec<ClaimRow>,
    /// Keys of rows that go.
    pub removed: Vec<String>,
}

/// What leads from some rows to rows that name exactly the wanted files, each once. No new row has a key that
/// is `taken`.
///
/// Where rows have become too thin, all are packed anew.
pub fn changes(existing: &[ClaimRow], wanted: &BTreeSet<i64>, taken: &BTreeSet<String>) -> Changes {
    let mut missing = wanted.clone();
    let mut rows: Vec<ClaimRow> = existing
        .iter()
        .map(|row| {
            let ids = row.ids.iter().copied().filter(|id| missing.remove(id)).collect();
            ClaimRow { group_key: row.group_key.clone(), ids }
        })
        .collect();
    let mut missing = missing.into_iter();
    for row in &mut rows {
        let room = MOST_IDS.saturating_sub(row.ids.len());
        row.ids.extend(missing.by_ref().take(room));
    }
    let mut missing: Vec<i64> = missing.collect();
    let needed = wanted.len().div_ceil(MOST_IDS);
    let is_thin = rows.iter().filter(|row| !row.ids.is_empty()).count() > 2 * needed;
    if is_thin || rows.iter().any(|row| row.ids.len() > MOST_IDS) {
        rows.iter_mut().for_each(|row| row.ids.clear());
        let mut all = wanted.iter().copied();
        for row in &mut rows {
            row.ids.extend(all.by_ref().take(MOST_IDS));
        }
        missing = all.collect();
    }
    let mut keys: BTreeSet<String> = rows.iter().map(|row| row.group_key.clone()).collect();
    keys.extend(taken.iter().cloned());
    let unused = (0_u64..).map(|n| format!("{PREFIX}{n}")).filter(|key| !keys.contains(key));
    let new = missing
        .chunks(MOST_IDS)
        .zip(unused)
        .map(|(ids, group_key)| ClaimRow { group_key, ids: ids.to_vec() });
    let mut changes = Changes { written: new.collect(), ..Changes::default() };
    for (row, before) in rows.into_iter().zip(existing) {
        if row.ids.is_empty() {
            changes.removed.push(row.group_key);
        } else if row.ids == before.ids {
            changes.renewed.push(row.group_key);
        } else {
            changes.written.push(row);
        }
    }
    changes
}

/// What leads from some rows to rows that name only those of their files that stay.
pub fn without_others(existing: &[ClaimRow], staying: &BTreeSet<i64>) -> Changes {
    let mut changes = Changes::default();
    for row in existing {
        let ids: Vec<i64> = row.ids.iter().copied().filter(|id| staying.contains(id)).collect();
        let group_key = row.group_key.clone();
        if ids.is_empty() {
            changes.removed.push(group_key);
        } else if ids.len() < row.ids.len() {
            changes.written.push(ClaimRow { group_key, ids });
        }
    }
    changes
}

#[cfg(test)]
mod tests;
