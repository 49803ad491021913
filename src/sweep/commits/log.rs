//! What the log, the report and the observer receive about commits.

use std::time::Duration;

use super::attempt::AttemptResult;
use super::{TRIES_IF_CANCELLED, Work};
use crate::catalog::tables::TableIdentity;
use crate::drop::{Receipt, Refusal};
use crate::events;
use crate::sweep::context::Progress;
use crate::sweep::expired::ExpiredTuple;
use crate::sweep::expired_batch::Ended;
use crate::sweep::plan::NOT_PARQUET;
use crate::sweep::report::{Outcome, PartitionReport, RESTORED, SnapshotReport, milliseconds};

impl Work<'_> {
    /// A snapshot was made, after so many milliseconds of wait and hold.
    pub(super) fn dropped(
        &mut self,
        receipt: &Receipt,
        expired: &[&ExpiredTuple],
        (wait, hold): (f64, f64),
    ) {
        let TableIdentity { catalog, namespace, table, .. } = self.table;
        let counts = receipt.counts;
        self.unfit.went_through();
        let partitions: Vec<_> = expired
            .iter()
            .zip(&receipt.per_tuple)
            .filter(|(_, counts)| counts.files > 0)
            .map(|(expired, counts)| PartitionReport::of(expired, *counts))
            .collect();
        tracing::info!(
            event = events::DROP_COMMITTED,
            catalog,
            namespace,
            table,
            snapshot_id = receipt.snapshot_id,
            tuples = partitions.len(),
            oldest = partitions.first().map(|partition| partition.display.as_str()),
            newest = partitions.last().map(|partition| partition.display.as_str()),
            files_ended = counts.files,
            delete_files_ended = counts.delete_files,
            records = counts.records,
            bytes = counts.bytes,
            lock_wait_ms = wait,
            lock_hold_ms = hold,
            "Expired partitions were dropped in one snapshot"
        );
        self.snapshots.push(SnapshotReport {
            snapshot_id: receipt.snapshot_id,
            partitions,
            files_ended: counts.files,
            delete_files_ended: counts.delete_files,
            records: counts.records,
            bytes: counts.bytes,
            lock_wait_ms: wait,
            lock_hold_ms: hold,
        });
        (self.context.progress)(Progress::Dropped { table: self.table, files: counts.files });
    }

    pub(super) fn log_busy(&mut self, busy: &[usize], tuples: &[&ExpiredTuple]) {
        let TableIdentity { catalog, namespace, table, .. } = self.table;
        self.busy += busy.len();
        for expired in busy.iter().filter_map(|at| tuples.get(*at)) {
            tracing::warn!(
                event = events::TUPLE_BUSY,
                catalog,
                namespace,
                table,
                partition = expired.display,
                files = expired.counts.files,
                "Another session has locked rows of a partition; the next pass tries the partition again"
            );
        }
    }

    pub(super) fn log_oversize(&mut self, expired: &ExpiredTuple) {
        let TableIdentity { catalog, namespace, table, .. } = self.table;
        self.oversize += 1;
        self.errors.push(format!(
            "partition {} has {} files, more than sweep.max_files_per_tuple: raise it, or let sweep.oversize be split",
            expired.display, expired.counts.files
        ));
        tracing::error!(
            event = events::TUPLE_OVERSIZE,
            catalog,
            namespace,
            table,
            partition = expired.display,
            files = expired.counts.files,
            "A partition is too large for one commit and is kept"
        );
    }

    /// A refusal that is not about the lock.
    pub(super) fn refused(&mut self, refusal: Refusal) -> AttemptResult {
        let TableIdentity { catalog, namespace, table, .. } = self.table;
        let (outcome, error) = match refusal {
            Refusal::PolicyChanged => {
                tracing::warn!(
                    event = events::POLICY_CHANGED,
                    catalog,
                    namespace,
                    table,
                    "The policy changed, or is being changed, after planning; the next pass plans anew"
                );
                (Outcome::PolicyChanged, None)
            }
            Refusal::GuardsChanged => {
                tracing::info!(
                    event = events::GUARDS_CHANGED,
                    catalog,
                    namespace,
                    table,
                    "A pause or a hold changed, or is being changed, after planning; the pass plans the table anew"
                );
                return self.end(Ended::OutOfTime, Outcome::Partial, None);
            }
            Refusal::NewestChanged => {
                tracing::info!(
                    event = events::NEWEST_CHANGED,
                    catalog,
                    namespace,
                    table,
                    "Files of the table were ended by another hand, or the table was altered, after the newest \
                     values that its policy keeps were looked for; the pass plans the table anew"
                );
                return self.end(Ended::OutOfTime, Outcome::Partial, None);
            }
            Refusal::Gone | Refusal::Renamed => {
                tracing::info!(
                    event = events::TABLE_GONE,
                    catalog,
                    namespace,
                    table,
                    "The table was dropped, replaced or renamed after planning"
                );
                (Outcome::Gone, None)
            }
            Refusal::NotParquet => (Outcome::Failed, Some(NOT_PARQUET.to_owned())),
            Refusal::Restored => (Outcome::Failed, Some(RESTORED.to_owned())),
            // Locks that could not be acquired are waited for by whoever tries; the others are not refused to a
            // policy.
            Refusal::LockNotAcquired
            | Refusal::TableLocked(_)
            | Refusal::CatalogLocked
            | Refusal::RowsLocked
            | Refusal::HasReceipt
            | Refusal::Recreated
            | Refusal::AheadOfHead { .. }
            | Refusal::BelowFloor { .. }
            | Refusal::DdlSince
            | Refusal::FilesSince { .. }
            | Refusal::TooManyFiles { .. } => (Outcome::LockTimeout, None),
        };
        self.end(Ended::GaveUp, outcome, error)
    }

    pub(super) fn log_split(&self, expired: &ExpiredTuple) {
        let TableIdentity { catalog, namespace, table, .. } = self.table;
        tracing::info!(
            event = events::TUPLE_SPLIT,
            catalog,
            namespace,
            table,
            partition = expired.display,
            files = expired.counts.files,
            "A partition is too large for one commit and is dropped in several snapshots"
        );
    }

    /// `pause` is none where there is no further try.
    pub(super) fn log_cancelled(&self, tries: u32, hold: f64, pause: Option<Duration>) {
        let TableIdentity { catalog, namespace, table, .. } = self.table;
        tracing::warn!(
            event = events::HOLD_EXCEEDED,
            catalog,
            namespace,
            table,
            tries,
            tries_at_most = TRIES_IF_CANCELLED,
            lock_hold_ms = hold,
            pause_ms = pause.map(milliseconds),
            "A commit ran into drop.max_hold and was rolled back whole; it is tried again at the same size"
        );
    }

    pub(super) fn log_held_back(&self, queue: i64, ceiling: i64) {
        let TableIdentity { catalog, namespace, table, .. } = self.table;
        tracing::warn!(
            event = events::HELD_BACK,
            catalog,
            namespace,
            table,
            queue_at_least = queue,
            ceiling,
            "The server has too many objects to delete already; the next pass tries again"
        );
    }

    pub(super) fn log_lock_backoff(
        &self,
        tries: u32,
        wait: f64,
        pause: Duration,
        locked_table: Option<&str>,
    ) {
        let TableIdentity { catalog, namespace, table, .. } = self.table;
        tracing::info!(
            event = events::LOCK_BACKOFF,
            catalog,
            namespace,
            table,
            tries,
            lock_wait_ms = wait,
            pause_ms = milliseconds(pause),
            locked_table,
            "The commit lock, or the lock of a table, could not be acquired in time; the commit is retried after a pause"
        );
    }

    pub(super) fn log_lock_not_acquired(&self, tries: u32, wait: f64, locked_table: Option<&str>) {
        let TableIdentity { catalog, namespace, table, .. } = self.table;
        tracing::warn!(
            event = events::LOCK_NOT_HAD,
            catalog,
            namespace,
            table,
            tries,
            lock_wait_ms = wait,
            locked_table,
            "The commit lock, or the lock of a table, could not be acquired in time; the next pass tries again"
        );
    }
}
