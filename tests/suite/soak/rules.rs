//! Checks what a snapshot did to the table against what it may do.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use sqlx::FromRow;
use tailrace_kit::lake::{FileRow, Table, VectorRow};

use crate::support::contents::Rows;
use crate::support::program::days_ago;

use super::history::State;

/// What a snapshot says of itself, and the drop history of it.
#[derive(Debug, FromRow)]
pub struct Deed {
    /// Its id.
    pub snapshot_id: i64,
    /// Its changes: kind and object.
    changes: Vec<String>,
    /// Files, vectors, records and bytes that the drop history says it ended.
    told: Option<(i64, i64, i64, i64)>,
    /// Whether a policy was behind it.
    by_policy: bool,
}

/// The deeds of the snapshots of a window.
pub async fn deeds(table: &Table, after: i64, through: i64) -> Result<Vec<Deed>> {
    let deeds = sqlx::query_as(
        "SELECT s.snapshot_id,
                ARRAY (SELECT concat(kind, ' ', object_id) FROM hog_snapshot_change c
                        WHERE c.catalog_id = $1 AND c.snapshot_id = s.snapshot_id
                        ORDER BY 1) AS changes,
                (SELECT (h.files_ended, h.delete_files_ended, h.records, h.bytes)
                   FROM tailrace.drop_history h
                  WHERE h.catalog_id = $1 AND h.snapshot_id = s.snapshot_id) AS told,
                EXISTS (SELECT FROM tailrace.drop_history h
                         WHERE h.catalog_id = $1 AND h.snapshot_id = s.snapshot_id
                           AND h.policy_revision IS NOT NULL) AS by_policy
           FROM hog_snapshot s
          WHERE s.catalog_id = $1 AND s.snapshot_id > $2 AND s.snapshot_id <= $3
          ORDER BY s.snapshot_id",
    )
    .bind(table.catalog.catalog_id)
    .bind(after)
    .bind(through)
    .fetch_all(table.catalog.pool())
    .await?;
    Ok(deeds)
}

/// What a snapshot did to the rows of files and vectors.
pub struct Step<'a> {
    /// Files that began in it.
    pub begun: Vec<&'a FileRow>,
    /// Files that ended in it.
    pub ended: Vec<&'a FileRow>,
    /// Vectors that began in it.
    pub new_vectors: Vec<&'a VectorRow>,
    /// Vectors that ended in it.
    pub old_vectors: Vec<&'a VectorRow>,
    /// Files that are visible at it.
    pub live: Vec<&'a FileRow>,
}

/// How often what was seen.
#[derive(Default)]
pub struct Counts {
    snapshots: u64,
    by_policy: u64,
    by_hand: u64,
    files_dropped: u64,
    compactions: u64,
    compacted: u64,
}

impl Counts {
    /// Adds them up in words.
    pub fn count_into(&self, tally: &mut BTreeMap<&'static str, u64>) {
        tally.extend([
            ("snapshots checked", self.snapshots),
            ("partition drops by policy", self.by_policy),
            ("partition drops by hand", self.by_hand),
            ("files dropped", self.files_dropped),
            ("compactions", self.compactions),
            ("files compacted", self.compacted),
        ]);
    }
}

/// Holds a snapshot against the rules; `now` is the state at it, `before` are the rows that were
/// visible up to it.
pub fn hold(
    table: &Table,
    deed: &Deed,
    step: &Step<'_>,
    now: &State,
    before: &Rows,
    counts: &mut Counts,
) {
    counts.snapshots += 1;
    let change = |kind: &str| vec![format!("{kind} {}", table.table_id)];
    for file in now.vectors.keys() {
        assert!(now.files.contains(file), "{deed:?}: a vector on the ended file {file}");
    }
    if deed.told.is_some() {
        assert_eq!(deed.changes, change("table_deleted_from"));
        a_drop_is_whole(deed, step);
        counts.by_policy += u64::from(deed.by_policy);
        counts.by_hand += u64::from(!deed.by_policy);
        counts.files_dropped += step.ended.len() as u64;
    } else if !step.ended.is_empty() {
        assert_eq!(deed.changes, change("table_compacted"));
        assert_eq!((step.begun.len(), step.new_vectors.len()), (1, 0), "{deed:?}");
        assert_eq!(now.rows, *before, "{deed:?}: a rewrite changes nothing that can be seen");
        counts.compactions += 1;
        counts.compacted += step.ended.len() as u64;
    }
}

fn a_drop_is_whole(deed: &Deed, step: &Step<'_>) {
    let records = step.ended.iter().map(|file| file.record_count).sum();
    let bytes = step.ended.iter().map(|file| file.file_size_bytes).sum();
    let ended = (step.ended.len() as i64, step.old_vectors.len() as i64, records, bytes);
    assert_eq!(deed.told, Some(ended), "{deed:?}");
    assert!(!step.ended.is_empty(), "{deed:?}");
    assert_eq!((step.begun.len(), step.new_vectors.len()), (0, 0), "{deed:?}");
    let tuple = |file: &FileRow| (file.spec_id, file.values.clone());
    let dropped: BTreeSet<_> = step.ended.iter().map(|file| tuple(file)).collect();
    let left: Vec<_> = step.live.iter().filter(|file| dropped.contains(&tuple(file))).collect();
    assert!(left.is_empty(), "{deed:?} left {left:?}");
    if deed.by_policy {
        // No policy here keeps less than 7 days.
        let youngest: Option<i64> = days_ago(8).parse().ok();
        for file in &step.ended {
            let day = file.values[0].as_deref().and_then(|day| day.parse().ok());
            assert!(day.is_some() && day <= youngest, "{deed:?}: {file:?}");
        }
    }
}
