//! What is answered and logged when an explicit drop is refused or fails.

use super::Execution;
use crate::catalog::commit_tail::Written;
use crate::catalog::errors::{Failure, with_row};
use crate::catalog::tables::TableIdentity;
use crate::drop::DropError;
use crate::drop::guard::Refusal;
use crate::drop::hold::Times;
use crate::events;
use crate::explicit::problem::Problem;
use crate::explicit::{RETRY_AFTER, internal};

/// So many partitions of a refused request are named in the log.
const TOLD: usize = 20;

impl Execution<'_> {
    /// A refusal, in the contract's words ("Wire conventions").
    pub(super) fn refused(&self, refusal: Refusal) -> Problem {
        let table = self.table();
        let read_snapshot = self.guard.read_snapshot.unwrap_or_default();
        match refusal {
            Refusal::LockNotAcquired => {
                queue_timeout("the commit lock could not be acquired in time (drop.lock_timeout)")
            }
            Refusal::TableLocked(name) => queue_timeout(&format!(
                "somebody else has locked the table {name} of the catalog, as DDL does \
                 (drop.row_lock_timeout)"
            )),
            Refusal::CatalogLocked => queue_timeout(
                "somebody else has locked the catalog's row of hog_catalog (drop.row_lock_timeout)",
            ),
            // Policies are not asked for in an operator's name.
            Refusal::RowsLocked | Refusal::PolicyChanged | Refusal::NewestChanged => queue_timeout(
                "somebody else has locked rows of the named partitions (drop.row_lock_timeout)",
            ),
            Refusal::HasReceipt => Problem::Internal,
            Refusal::GuardsChanged => Problem::GuardsChanged,
            Refusal::Restored => Problem::CommitConflict(
                "the catalog was restored to an earlier time meanwhile".to_owned(),
            ),
            Refusal::Gone => Problem::TableDropped { table },
            Refusal::Recreated => Problem::TableRecreated { table },
            Refusal::Renamed => {
                Problem::CommitConflict(format!("table {table} was renamed meanwhile"))
            }
            Refusal::NotParquet => Problem::Validation(format!(
                "table {table} is not made of parquet files, and has no partitions to drop"
            )),
            Refusal::AheadOfHead { head } => Problem::Validation(format!(
                "read_snapshot {read_snapshot} is ahead of the head, {head}"
            )),
            Refusal::BelowFloor { floor } => Problem::Expired(format!(
                "read_snapshot {read_snapshot} is below the floor, {floor}"
            )),
            Refusal::DdlSince => Problem::DdlSinceReadSnapshot { table, read_snapshot },
            Refusal::FilesSince { snapshot_id } => Problem::CommitConflict(format!(
                "files came to the named partitions of {table} in snapshot {snapshot_id}, after read_snapshot {read_snapshot}"
            )),
            Refusal::TooManyFiles { files } => Problem::Validation(format!(
                "the request matches {files} files, and one commit ends at most {} (drop.max_files): split it",
                self.guard.max_files
            )),
        }
    }

    /// A failure of the commit.
    pub(super) fn failed(&self, error: DropError) -> Problem {
        match error {
            DropError::HoldExceeded => {
                queue_timeout("the drop took longer than drop.max_hold and was rolled back whole")
            }
            DropError::Kept(_) => self.database_refuses(&error.to_string()),
            DropError::Database(error) if Failure::of(&error) == Failure::Content => {
                self.database_refuses(&with_row(&error))
            }
            DropError::Database(error) => internal(error),
            DropError::AnswerLost { drop_id, error, .. } => {
                let problem = match self.guard.receipt {
                    Some(_) => Problem::Unavailable,
                    None => Problem::OutcomeUnknown { table: self.table() },
                };
                tracing::error!(
                    event = events::REQUEST_FAILED,
                    code = problem.code(),
                    error =
                        format!("{error}; tailrace.drop_history has drop {drop_id} if it was made"),
                    "The answer to the COMMIT of a request was lost"
                );
                problem
            }
        }
    }

    /// The server refuses the drop for what it holds: the log has what it said, and of which row.
    fn database_refuses(&self, words: &str) -> Problem {
        let TableIdentity { catalog, namespace, table, .. } = self.identity;
        let problem = Problem::Refused { table: self.table() };
        let tuples = self.selection.tuples().iter().take(TOLD);
        let partitions: Vec<_> = tuples.map(|tuple| &tuple.tuple.values).collect();
        tracing::error!(
            event = events::REQUEST_FAILED,
            code = problem.code(),
            catalog,
            namespace,
            table,
            tuples = self.selection.tuples().len(),
            whole_table = self.selection.is_whole_table(),
            partitions = serde_json::to_string(&partitions).unwrap_or_default(),
            error = words,
            "The database refuses to end the files of a request"
        );
        problem
    }

    fn table(&self) -> String {
        format!("{}.{}", self.identity.namespace, self.identity.table)
    }

    pub(super) fn log_drop(&self, written: Option<&Written>, head: i64, times: &Times) {
        let TableIdentity { catalog, namespace, table, .. } = self.identity;
        let counts = written.map(|written| written.counts).unwrap_or_default();
        tracing::info!(
            event = events::EXPLICIT_DROP,
            catalog,
            namespace,
            table,
            committed = written.is_some(),
            snapshot_id = written.map_or(head, |written| written.snapshot_id),
            tuples = self.selection.tuples().len(),
            whole_table = self.selection.is_whole_table(),
            author = self.author,
            files_ended = counts.files,
            delete_files_ended = counts.delete_files,
            records = counts.records,
            bytes = counts.bytes,
            lock_wait_ms = times.wait.as_secs_f64() * 1e3,
            lock_hold_ms = times.hold.as_secs_f64() * 1e3,
            "Partitions were dropped by request"
        );
    }
}

fn queue_timeout(reason: &str) -> Problem {
    Problem::CommitQueueTimeout { reason: reason.to_owned(), retry_after: RETRY_AFTER }
}
