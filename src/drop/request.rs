//! The request for a drop, its limits, and its possible results.

use std::time::Duration;

use uuid::Uuid;

use super::guard::{PolicyGuard, Refusal};
use crate::catalog::drop_write::LateBound;
use crate::catalog::live_file::Counts;
use crate::catalog::tables::TableIdentity;
use crate::catalog::tuples::TupleOfSpec;
use crate::rules::expiry::evidence::EvidenceRule;

/// The limits of a drop. The server enforces those of a statement or a wait. From Postgres 17 on it also
/// enforces `max_hold`, so that a stopped or disconnected client cannot prolong a hold. Before that
/// tailrace enforces `max_hold`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest wait for the commit lock.
    pub lock_timeout: Duration,
    /// The longest wait under the commit lock for a row or a table that somebody else has locked.
    pub row_lock_timeout: Duration,
    /// The longest that the commit lock may be held before COMMIT; what takes longer is rolled back whole.
    pub max_hold: Duration,
}

/// The rule of a policy's drop for files that were appended after its tuples were examined. Of an
/// ambiguous tuple no such file is ended. Of another tuple no file is ended whose column statistics
/// show newer rows. Files that are not ended are left to the next pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateRule {
    /// The column whose upper bounds are looked up; `None` where bounds keep nothing, or may not be
    /// read.
    pub field_id: Option<i64>,
    /// How they are checked.
    pub rule: EvidenceRule,
}

impl LateRule {
    /// What the write asks of late files' bounds; `None` for nothing.
    pub fn bound(&self) -> Option<LateBound> {
        Some(LateBound {
            field_id: self.field_id?,
            units: self.rule.units,
            cutoff: self.rule.cutoff,
        })
    }
}

/// A [`LateRule`] for the tuples of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Late<'a> {
    pub rule: LateRule,
    /// For each tuple whether it is ambiguous: its values may be no times of the policy's column.
    pub ambiguous: &'a [bool],
}

/// A drop.
#[derive(Debug, Clone)]
pub struct DropRequest<'a> {
    /// The table; under the lock it must still be live, with the same UUID, and called so.
    pub table: &'a TableIdentity,
    /// The tuples, every key of the spec in each.
    pub tuples: &'a [TupleOfSpec],
    /// For each tuple the position of a value that is not null, by which its files are found.
    pub lookup_keys: &'a [usize],
    /// The policy, if the drop acts for one.
    pub policy: Option<PolicyGuard>,
    /// What the caller found before: every live file of the tuples with an id below
    /// `found_below`, as (file id, index into `tuples`). Files that ended since are no error.
    pub found: &'a [(i64, i32)],
    /// The id counter as it was read before `found` was looked for; 0 where nothing was.
    pub found_below: i64,
    /// The rule for files that nobody has examined: those that are not in `found`.
    pub late: Option<Late<'a>>,
    /// Whether this is a piece of a larger drop: only `found` is ended, and newer files are left to
    /// a later piece.
    pub is_piece: bool,
    /// Whether `table_altered` is published too (see [`crate::catalog::drop_write::DropWrite::fence`]).
    pub fence: bool,
    /// `hog_snapshot.author`.
    pub author: &'a str,
    /// `hog_snapshot.commit_message`.
    pub message: &'a str,
}

/// What a committed drop did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The one snapshot that it made.
    pub snapshot_id: i64,
    /// The sums over all tuples.
    pub counts: Counts,
    /// What each tuple of the request gave, in its order.
    pub per_tuple: Vec<Counts>,
    /// The indexes of the tuples that were left out because somebody else had locked a row.
    pub busy: Vec<usize>,
}

/// What became of a drop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DropOutcome {
    /// It was committed.
    Dropped(Receipt),
    /// No live file matches, apart from those of the busy tuples: no snapshot was made.
    NothingMatches {
        /// The indexes of the tuples that were left out because somebody else had locked a row.
        busy: Vec<usize>,
    },
    /// It gave up.
    Refused(Refusal),
}

/// The message for a commit that was cancelled because it took too long.
pub const HOLD_EXCEEDED: &str =
    "the work under the commit lock ran into drop.max_hold and was rolled back whole";

/// A drop that failed.
#[derive(Debug, thiserror::Error)]
pub enum DropError {
    /// The work under the commit lock took longer than `max_hold`; nothing was written.
    #[error("{HOLD_EXCEEDED}")]
    HoldExceeded,
    /// The connection broke at COMMIT. The drop is whole or absent; the history shows which
    /// ([`crate::catalog::drop_history::history`] by this id).
    #[error("the answer to COMMIT was lost ({error})")]
    AnswerLost {
        /// Finds the history row, if there is one.
        drop_id: Uuid,
        /// The indexes of the tuples that were left out because somebody else had locked a row.
        busy: Vec<usize>,
        /// What the driver said.
        error: sqlx::Error,
    },
    /// The server reported no error, but did not end every row, as where a trigger keeps a row. Everything
    /// was rolled back, because a file could have ended without its vector, or a vector without its file.
    #[error(
        "the database keeps files or deletion vectors live that it was told to end (at least {0}), and \
         does not say why: a trigger may do so"
    )]
    Kept(i64),
    /// Anything else that the database said; nothing was written.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// A drop with the times that it took of the commit lock.
#[derive(Debug)]
pub struct Attempt {
    /// What became of it.
    pub result: Result<DropOutcome, DropError>,
    /// From asking for the commit lock until it was granted or given up; the last try counts.
    pub lock_wait: Duration,
    /// How long the lock was held, tries that were rolled back included.
    pub lock_hold: Duration,
}
