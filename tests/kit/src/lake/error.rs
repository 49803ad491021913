//! The errors of a writer whose commit is refused.

use std::io;

use thiserror::Error;

/// A refusal, by the status that the server would answer with.
#[derive(Debug, Error)]
pub enum LakeError {
    /// 404: no such catalog, namespace, table or column.
    #[error("not found: {0}")]
    NotFound(String),
    /// 409 `commit_conflict`: something that the commit relies on has changed.
    #[error("conflict: {0}")]
    Conflict(String),
    /// 409 `ddl_since_read_snapshot`: the table was altered or dropped since.
    #[error("the table was altered or dropped after the snapshot {read_snapshot} that was read")]
    DdlSinceReadSnapshot {
        /// The snapshot that the writer had read.
        read_snapshot: i64,
    },
    /// 409 `table_dropped`: the table, or its namespace, is gone.
    #[error("the table {table_id} is dropped")]
    TableDropped {
        /// The table that was written to.
        table_id: i64,
    },
    /// 409 `reconciliation_required`: a consumer has to read the table anew.
    #[error("the snapshot {snapshot_id} replaced rows in a way that no change describes")]
    ReconciliationRequired {
        /// The snapshot that carries a deletion and an alteration.
        snapshot_id: i64,
    },
    /// 410: below the floor.
    #[error("the snapshot {snapshot_id} is below the floor {floor}")]
    Expired {
        /// What was asked for.
        snapshot_id: i64,
        /// The oldest snapshot that can still be read.
        floor: i64,
    },
    /// 422: the request makes no sense.
    #[error("not valid: {0}")]
    Validation(String),
    /// 503: the commit lock could not be acquired in time.
    #[error("waited too long for the commit lock")]
    CommitQueueTimeout,
    /// The database refused a statement.
    #[error("database: {0}")]
    Database(#[from] sqlx::Error),
    /// An object could not be written or removed.
    #[error("object: {0}")]
    Object(#[from] io::Error),
}

/// The result of a writer's step.
pub type Result<T, E = LakeError> = std::result::Result<T, E>;
