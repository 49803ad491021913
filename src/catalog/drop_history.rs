//! The history of drops (`tailrace.drop_history`), which each drop writes in its own transaction.

use sqlx::types::Json;
use uuid::Uuid;

use super::live_file::Counts;
use super::session::Session;
use super::tuples::TupleOfSpec;
use crate::rules::expiry::StoredTuple;

/// What the drop history says of a drop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRow {
    /// The snapshot that the drop made.
    pub snapshot_id: i64,
    /// Over all of its tuples.
    pub counts: Counts,
    /// What each tuple gave; tuples that gave nothing are left out. Empty for a whole table.
    pub partitions: Vec<(TupleOfSpec, Counts)>,
}

/// An element of `drop_history.partitions`, and of `drop_receipt.ended`.
#[derive(Debug, serde::Deserialize)]
pub(super) struct PartitionRow {
    spec_id: Option<i64>,
    tuple: Option<Vec<(i32, Option<String>)>>,
    #[serde(flatten)]
    counts: Counts,
}

impl PartitionRow {
    /// The tuple and its counts; `None` for the one element of a whole table.
    pub(super) fn into_tuple(self) -> Option<(TupleOfSpec, Counts)> {
        let (keys, values) = self.tuple?.into_iter().unzip();
        let tuple = StoredTuple { keys, values };
        Some((TupleOfSpec { spec_id: self.spec_id?, tuple }, self.counts))
    }
}

/// Reads the history of a drop; `None` means that it was never committed.
pub async fn history(connection: &mut Session, drop_id: Uuid) -> sqlx::Result<Option<HistoryRow>> {
    let row = sqlx::query!(
        r#"select snapshot_id, files_ended, delete_files_ended, records, bytes,
                  partitions as "partitions: Json<Vec<PartitionRow>>"
           from tailrace.drop_history where drop_id = $1"#,
        drop_id
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| HistoryRow {
        snapshot_id: row.snapshot_id,
        counts: Counts {
            files: row.files_ended,
            delete_files: row.delete_files_ended,
            records: row.records,
            bytes: row.bytes,
        },
        partitions: row.partitions.0.into_iter().filter_map(PartitionRow::into_tuple).collect(),
    }))
}
