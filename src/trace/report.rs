//! What became of drops, as JSON has it.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::state::{Hold, Stage};
use crate::catalog::drop_lifecycle::read::DropRow;
use crate::catalog::live_file::Counts;
use crate::catalog::removal_queue::{Namer, Stuck};
use crate::rules::instant::UtcInstant;

/// The drops of several catalogs, as `tailrace trace --output json` has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// By name.
    pub catalogs: Vec<TraceReport>,
}

/// Drops of a catalog or of a table, and what the catalog says that decides about them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TraceReport {
    /// The catalog's name.
    pub catalog: String,
    /// The database's time when it was read.
    pub as_of: UtcInstant,
    /// Snapshots below it cannot be read any more; what ended at or below it may be purged.
    pub floor: i64,
    /// The newest snapshot.
    pub head: i64,
    /// How long snapshots can be read; null for ever.
    pub snapshot_retention_seconds: Option<i64>,
    /// Objects in the server's queue, the whole catalog's, up to 100 000.
    pub undrained: i64,
    /// What of it the server tried and has not drained, the oldest first, up to 100: a path that a row still
    /// names is skipped at each run.
    pub stuck: Vec<StuckObject>,
    /// Drops of the whole catalog that are not gone, up to 200 000; those that a restore took back
    /// are left out.
    pub not_gone: i64,
    /// When the oldest of those was made: what was dropped before is gone.
    pub oldest_not_gone: Option<UtcInstant>,
    /// The newest first.
    pub drops: Vec<DropTrace>,
    /// Where there may be older drops: ask for them with `before` at this.
    pub next_before: Option<i64>,
}

/// A queued path that the server tried, and has not drained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct StuckObject {
    /// The row of the queue.
    pub removal_id: i64,
    /// The path.
    pub path: String,
    /// When it was queued.
    pub queued_at: UtcInstant,
    /// How often it was tried.
    pub attempts: i32,
    /// When last.
    pub last_attempt_at: Option<UtcInstant>,
    /// A row that names the path.
    pub named_by: NamedBy,
}

/// A row that names a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum NamedBy {
    /// A data file.
    DataFile(Naming),
    /// A deletion vector.
    Vector(Naming),
    /// Neither a file nor a vector: an upload, which is not looked at, or the object cannot be deleted.
    NoFile,
    /// Unknown: the server is older than V17.
    Unknown,
}

/// Which row it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Naming {
    /// The id of the file or vector.
    pub file_id: i64,
    /// NAMESPACE.TABLE, as the table is named now or was named last.
    pub table: Option<String>,
    /// Its id.
    pub table_id: i64,
    /// The snapshot in which it ended; null while it is live.
    pub end_snapshot: Option<i64>,
}

impl StuckObject {
    /// As the catalog has it; `by_path` says whether the rows were looked for that name it.
    pub(super) fn of(stuck: Stuck, by_path: bool) -> Self {
        let named_by = match stuck.named_by {
            None if by_path => NamedBy::NoFile,
            None => NamedBy::Unknown,
            Some(Namer { is_vector, file_id, table_id, table, end_snapshot }) => {
                let naming = Naming { file_id, table, table_id, end_snapshot };
                if is_vector { NamedBy::Vector(naming) } else { NamedBy::DataFile(naming) }
            }
        };
        StuckObject {
            removal_id: stuck.removal_id,
            path: stuck.path,
            queued_at: stuck.scheduled_at.into(),
            attempts: stuck.attempts,
            last_attempt_at: stuck.last_attempt_at.map(UtcInstant::from),
            named_by,
        }
    }
}

/// What became of a drop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DropTrace {
    /// The snapshot that it made.
    pub snapshot_id: i64,
    /// When.
    pub dropped_at: UtcInstant,
    /// NAMESPACE.TABLE, as the table is named now or was named last; null if it went before a pass
    /// looked.
    pub table: Option<String>,
    /// The table's UUID.
    pub table_uuid: Uuid,
    /// The revision of the policy that it acted for; null for an explicit drop or a truncate.
    pub policy_revision: Option<i64>,
    /// Data files ended.
    pub files_ended: i64,
    /// Deletion vectors ended.
    pub delete_files_ended: i64,
    /// Rows of the files, as written.
    pub records: i64,
    /// Bytes of the files.
    pub bytes: i64,
    /// What it ended, by partition: the first 100. None where it emptied the whole table.
    pub partitions: Vec<TracedPartition>,
    /// How many partitions there were.
    pub partitions_ended: i64,
    /// How far it has come.
    pub stage: Stage,
    /// Rows of its files that are left, up to 10 000; null where it is unknown: the server is
    /// older than V19 and the table has more than 100 000 files, or the drop is undone.
    pub files_left: Option<i64>,
    /// When a pass first saw that no row was left.
    pub purged_seen_at: Option<UtcInstant>,
    /// The highest undrained id in the server's queue then; 0 where nothing was queued.
    pub last_removal_id: Option<i64>,
    /// When a pass first saw that nothing in the queue at or below that id was left.
    pub gone_seen_at: Option<UtcInstant>,
    /// When a pass first saw that the catalog does not know the drop.
    pub undone_seen_at: Option<UtcInstant>,
    /// What holds it up now.
    pub held_by: Vec<Hold>,
}

/// A partition that a drop ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TracedPartition {
    /// The spec of its files.
    pub spec_id: i64,
    /// The partition values by key index.
    pub partition_values: Vec<Option<String>>,
    /// As a person reads them.
    pub display: String,
    /// Files, vectors, rows and bytes.
    #[serde(flatten)]
    pub counts: Counts,
}

impl DropTrace {
    /// What the drop history has of it; where it is now is for others to say.
    pub(super) fn of(row: DropRow, stage: Stage) -> Self {
        let is_whole_table = row.partitions.is_empty();
        DropTrace {
            snapshot_id: row.snapshot_id,
            dropped_at: row.dropped_at,
            table: row.table,
            table_uuid: row.table_uuid,
            policy_revision: row.policy_revision,
            files_ended: row.counts.files,
            delete_files_ended: row.counts.delete_files,
            records: row.counts.records,
            bytes: row.counts.bytes,
            partitions: Vec::new(),
            partitions_ended: if is_whole_table { 0 } else { row.partitions_total },
            stage,
            files_left: None,
            purged_seen_at: row.noted.purged.map(|(at, _)| at),
            last_removal_id: row.noted.purged.map(|(_, mark)| mark),
            gone_seen_at: row.noted.gone_at,
            undone_seen_at: row.noted.undone_at,
            held_by: Vec::new(),
        }
    }
}
