//! What can be wrong with a request, in hoglake's own codes, so that its clients know them.

use std::time::Duration;

use crate::installation::Unfit;
use crate::rules::hold::HeldPartition;

/// Why a request was not carried out. Nothing was written, but for [`Problem::Unavailable`] and
/// [`Problem::OutcomeUnknown`].
///
/// Each has the status and code of the contract's table ("Wire conventions"); the text is for
/// people and carries nothing of the server's insides.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// 400 `bad_request`: a body or parameter that cannot be parsed.
    #[error("{0}")]
    BadRequest(String),
    /// 404 `not_found`: catalog, namespace or table.
    #[error("{0}")]
    NotFound(String),
    /// 409 `commit_conflict`: retry after a fresh read.
    #[error("{0}")]
    CommitConflict(String),
    /// 409 `table_recreated`: `expected_table_uuid` differs.
    #[error("table {table} has another UUID than the expected one")]
    TableRecreated {
        /// `ns.table`
        table: String,
    },
    /// 409 `ddl_since_read_snapshot`.
    #[error("table {table} was altered or dropped after snapshot {read_snapshot}")]
    DdlSinceReadSnapshot {
        /// `ns.table`
        table: String,
        /// The snapshot that was refused.
        read_snapshot: i64,
    },
    /// 409 `table_dropped`: the named table was dropped.
    #[error("table {table} was dropped")]
    TableDropped {
        /// `ns.table`
        table: String,
    },
    /// 409 `reconciliation_required`: a window that cannot be answered as a list of changes.
    #[error("{0}")]
    ReconciliationRequired(String),
    /// 409 `pass_running`.
    #[error("a pass is running")]
    PassRunning,
    /// 409 `property_takes_over`: an unset that would put the table's property in force.
    #[error("{0}")]
    PropertyTakesOver(String),
    /// 409 `paused`: a pause covers the table.
    #[error("{0}; nothing was dropped")]
    Paused(String),
    /// 409 `partition_held`: holds keep some of the named partitions.
    #[error(
        "{} of the {asked} named partitions are held, and nothing was dropped: {words}",
        .held.len() + .more
    )]
    PartitionHeld {
        /// How many partitions were named.
        asked: usize,
        /// The first of those that are held.
        held: Vec<HeldPartition>,
        /// How many more are.
        more: usize,
        /// Which holds keep them.
        words: String,
    },
    /// 409 `partition_held`: holds keep some of the table, or all of it, and a truncate would end all.
    #[error("partitions of the table are held, and nothing was dropped: {words}")]
    TableHeld {
        /// The first of the partitions that the holds list.
        held: Vec<HeldPartition>,
        /// How many more they list.
        more: usize,
        /// Which holds there are.
        words: String,
    },
    /// 409 `plan_drift`: what is held for its number is not what the approver saw.
    #[error("{what}: {}; nothing was approved, look at `tailrace plan` and approve that", .drift.join("; "))]
    PlanDrift {
        /// What differs.
        what: String,
        /// In which way, one by one.
        drift: Vec<String>,
    },
    /// 409 `nothing_held`: nothing is held for its number.
    #[error("{0}")]
    NothingHeld(String),
    /// 403 `four_eyes`: somebody else has to approve.
    #[error("{0}")]
    FourEyes(String),
    /// 409 `guards_changed`: a pause or a hold of the catalog changed while the drop was planned, twice.
    #[error(
        "pauses or holds of the catalog changed while the drop was planned, twice; nothing was dropped, try again"
    )]
    GuardsChanged,
    /// 410 `expired`: `read_snapshot` or a window below the floor.
    #[error("{0}")]
    Expired(String),
    /// 422 `validation`: anything else wrong with the request.
    #[error("{0}")]
    Validation(String),
    /// 503 `commit_queue_timeout`: the lock of a commit, a row or a table could not be acquired in time, or the hold took
    /// too long.
    #[error("{reason}; nothing was written, try again")]
    CommitQueueTimeout {
        /// What was waited for.
        reason: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// 503 `unavailable`: the database is away, or was lost on the way. Whether the request was
    /// carried out is unknown where it was lost at COMMIT: the same key tells.
    #[error("the database is away; try again, with the same idempotency key")]
    Unavailable,
    /// 503 `unavailable`: the answer to the COMMIT of a request without a key was lost.
    #[error(
        "the database was lost while it committed: whether the files of table {table} were ended \
         is not known; if they were, it is the newest drop of the table in `tailrace trace` and \
         GET .../drops. Look there before you ask again, or files that were added since are \
         dropped too"
    )]
    OutcomeUnknown {
        /// `ns.table`
        table: String,
    },
    /// 503 `unavailable`: our schema in the database is not the one that this program works with.
    #[error("{0}; nothing was done")]
    Unfit(Unfit),
    /// 500 `internal_error`: a trigger, a constraint or what a row holds. What the database said is in
    /// our log, not in the answer.
    #[error(
        "the database refuses to end these files of table {table}, for a trigger, a constraint or \
         what a row holds; nothing was written, the server's log says which, and the same request \
         fails until that is mended"
    )]
    Refused {
        /// `ns.table`
        table: String,
    },
    /// 500 `internal_error`. The cause is in our log, not in the answer.
    #[error("the request could not be carried out; the server's log says why")]
    Internal,
}

impl Problem {
    /// The HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            Self::BadRequest(_) => 400,
            Self::NotFound(_) => 404,
            Self::CommitConflict(_)
            | Self::TableRecreated { .. }
            | Self::DdlSinceReadSnapshot { .. }
            | Self::TableDropped { .. }
            | Self::ReconciliationRequired(_)
            | Self::PassRunning
            | Self::PropertyTakesOver(_)
            | Self::Paused(_)
            | Self::PartitionHeld { .. }
            | Self::TableHeld { .. }
            | Self::PlanDrift { .. }
            | Self::NothingHeld(_)
            | Self::GuardsChanged => 409,
            Self::FourEyes(_) => 403,
            Self::Expired(_) => 410,
            Self::Validation(_) => 422,
            Self::CommitQueueTimeout { .. }
            | Self::Unavailable
            | Self::OutcomeUnknown { .. }
            | Self::Unfit(_) => 503,
            Self::Refused { .. } | Self::Internal => 500,
        }
    }

    /// The code of `error` in the body.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadRequest(_) => "bad_request",
            Self::NotFound(_) => "not_found",
            Self::CommitConflict(_) => "commit_conflict",
            Self::TableRecreated { .. } => "table_recreated",
            Self::DdlSinceReadSnapshot { .. } => "ddl_since_read_snapshot",
            Self::TableDropped { .. } => "table_dropped",
            Self::ReconciliationRequired(_) => "reconciliation_required",
            Self::PassRunning => "pass_running",
            Self::PropertyTakesOver(_) => "property_takes_over",
            Self::Paused(_) => "paused",
            Self::PartitionHeld { .. } | Self::TableHeld { .. } => "partition_held",
            Self::GuardsChanged => "guards_changed",
            Self::PlanDrift { .. } => "plan_drift",
            Self::NothingHeld(_) => "nothing_held",
            Self::FourEyes(_) => "four_eyes",
            Self::Expired(_) => "expired",
            Self::Validation(_) => "validation",
            Self::CommitQueueTimeout { .. } => "commit_queue_timeout",
            Self::Unavailable | Self::OutcomeUnknown { .. } | Self::Unfit(_) => "unavailable",
            Self::Refused { .. } | Self::Internal => "internal_error",
        }
    }

    /// The body: `error` and `detail`, and the fields that the contract names for the code.
    pub fn body(&self) -> serde_json::Value {
        let mut body = serde_json::json!({"error": self.code(), "detail": self.to_string()});
        match self {
            Self::TableRecreated { table } => {
                body["tables"] = serde_json::json!([table]);
                body["retry"] = "re-prepare".into();
            }
            Self::DdlSinceReadSnapshot { table, read_snapshot } => {
                body["tables"] = serde_json::json!([table]);
                body["read_snapshot"] = (*read_snapshot).into();
                body["retry"] = "re-prepare".into();
            }
            Self::PartitionHeld { held, more, .. } | Self::TableHeld { held, more, .. } => {
                body["partitions"] = serde_json::json!(held);
                body["more"] = (*more).into();
            }
            Self::PlanDrift { drift, .. } => body["drift"] = serde_json::json!(drift),
            _ => {}
        }
        body
    }
}
