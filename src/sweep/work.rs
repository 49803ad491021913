//! The commits of one table: batch by batch, each tried again where that may help.

use std::collections::BTreeSet;

use super::batch::{Batch, group};
use super::lease::LeasedSession;
use super::pace;
use super::pass::Progress;
use super::plan::{ExpiredTuple, NOT_PARQUET};
use super::report::{Outcome, PartitionReport, SnapshotReport, TableReport, milliseconds};
use super::round::{Ended, Round, RoundEnd};
use super::table::Context;
use crate::catalog::failure::{Failure, in_words};
use crate::catalog::files::files_of;
use crate::catalog::tables::{TableIdentity, file_id_counter};
use crate::catalog::tail::history;
use crate::drop::{
    Attempt, DropError, DropOutcome, DropRequest, PolicyGuard, Receipt, Refusal, drop_tuples,
};
use crate::events;
use crate::instant::UtcInstant;
use crate::policy::Policy;

/// The author of our snapshots.
pub const AUTHOR: &str = "tailrace";

/// What the database said, with its SQLSTATE.
fn said(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(database) => {
            let code = database.code().unwrap_or_default();
            format!("the database says: {} (SQLSTATE {code})", database.message())
        }
        other => other.to_string(),
    }
}

/// A table whose commits fail this often in a row is left until the next pass: each failure has
/// taken the commit lock for nothing.
const GIVE_UP_AFTER: usize = 3;

/// The commits of one table.
pub struct Work<'a> {
    table: &'a TableIdentity,
    policy: &'a Policy,
    cutoff: UtcInstant,
    context: &'a Context<'a>,
    snapshots: Vec<SnapshotReport>,
    busy: usize,
    oversize: usize,
    /// What ended the work early, with its words.
    ended: Option<(Outcome, Option<String>)>,
    /// Errors of batches; the others went on.
    errors: Vec<String>,
    failures_in_a_row: usize,
    gave_up: bool,
    /// Of the round at hand: the tuples that stay or may stay.
    kept: BTreeSet<usize>,
    /// Of these, the ones of which a commit left something.
    stays: BTreeSet<usize>,
}

/// Files that were found before a commit was asked for.
struct Found {
    below: i64,
    files: Vec<(i64, i32)>,
    is_piece: bool,
}

/// What one commit is asked to end.
struct Chosen<'r> {
    round: &'r Round,
    /// Indexes into the round's tuples.
    tuples: &'r [usize],
    found: Found,
}

impl<'r> Chosen<'r> {
    fn tuples(&self) -> impl Iterator<Item = &'r ExpiredTuple> {
        self.tuples.iter().filter_map(|at| self.round.tuples.get(*at))
    }
}

/// What a commit came to, for the one who asked for it.
enum Step {
    /// It was committed, or there was nothing, or it was given up.
    Ended,
    /// It failed, with its error noted; another batch may fare better.
    Failed,
    /// No further commit of this table makes sense in this pass.
    Stop,
}

impl<'a> Work<'a> {
    /// Nothing done yet on the table, by this policy, which makes old what ended before `cutoff`.
    pub fn new(
        table: &'a TableIdentity,
        policy: &'a Policy,
        cutoff: UtcInstant,
        context: &'a Context<'a>,
    ) -> Self {
        Work {
            table,
            policy,
            cutoff,
            context,
            snapshots: Vec::new(),
            busy: 0,
            oversize: 0,
            ended: None,
            errors: Vec::new(),
            failures_in_a_row: 0,
            gave_up: false,
            kept: BTreeSet::new(),
            stays: BTreeSet::new(),
        }
    }

    /// Works until every tuple of the round was tried, or no further commit makes sense. May be
    /// called for round after round, as long as all were tried.
    pub async fn run(&mut self, session: &mut LeasedSession<'_>, round: &Round) -> RoundEnd {
        self.kept = (0..round.tuples.len()).collect();
        self.stays.clear();
        let ended = match self.gave_up {
            true => Ended::GaveUp,
            false => self.all(session, round).await,
        };
        self.gave_up = ended != Ended::AllTried;
        RoundEnd { kept: std::mem::take(&mut self.kept).into_iter().collect(), ended }
    }

    async fn all(&mut self, session: &mut LeasedSession<'_>, round: &Round) -> Ended {
        let files: Vec<i64> = round.tuples.iter().map(|tuple| tuple.counts.files).collect();
        for batch in group(&files, &self.context.settings.batch) {
            let step = match batch {
                Batch::Whole(tuples) => {
                    let found = Found {
                        below: round.found_below,
                        files: round.files(&tuples),
                        is_piece: false,
                    };
                    self.commit(session, &Chosen { round, tuples: &tuples, found }).await
                }
                Batch::Split(tuple) => self.split(session, round, tuple).await,
                Batch::Oversize(tuple) => {
                    self.tell_oversize(&round.tuples[tuple]);
                    Step::Ended
                }
            };
            let failures_in_a_row = match step {
                Step::Stop if self.context.stop.is_cancelled() => return Ended::Stopped,
                Step::Stop => return Ended::GaveUp,
                Step::Failed => self.failures_in_a_row + 1,
                Step::Ended => 0,
            };
            self.failures_in_a_row = failures_in_a_row;
            if failures_in_a_row == GIVE_UP_AFTER {
                return Ended::GaveUp;
            }
        }
        Ended::AllTried
    }

    /// A tuple in several snapshots, oldest files first.
    async fn split(
        &mut self,
        session: &mut LeasedSession<'_>,
        round: &Round,
        tuple: usize,
    ) -> Step {
        let TableIdentity { catalog, namespace, table, .. } = self.table;
        let expired = &round.tuples[tuple];
        tracing::info!(
            event = events::TUPLE_SPLIT,
            catalog,
            namespace,
            table,
            partition = expired.display,
            files = expired.counts.files,
            "A partition is too large for one commit and goes in several snapshots"
        );
        let piece = usize::try_from(self.context.settings.batch.files_per_commit).unwrap_or(1);
        let found = match round.is_found() {
            true => {
                Found { below: round.found_below, files: round.files(&[tuple]), is_piece: false }
            }
            false => match self.found_of(session, expired).await {
                Ok(found) => found,
                Err(error) => return self.fail(said(&error)),
            },
        };
        let last = found.files.chunks(piece).len().saturating_sub(1);
        let mut step = Step::Ended;
        for (at, files) in found.files.chunks(piece).enumerate() {
            let found = Found { below: found.below, files: files.to_vec(), is_piece: at < last };
            step = self.commit(session, &Chosen { round, tuples: &[tuple], found }).await;
            if !matches!(step, Step::Ended) {
                break;
            }
        }
        step
    }

    /// All files that a tuple has by now.
    async fn found_of(
        &self,
        session: &mut LeasedSession<'_>,
        expired: &ExpiredTuple,
    ) -> sqlx::Result<Found> {
        let &TableIdentity { catalog_id, table_id, .. } = self.table;
        let connection = session.connection();
        let below = file_id_counter(connection, catalog_id).await?.unwrap_or_default();
        let tuple = std::slice::from_ref(&expired.tuple);
        let files =
            files_of(connection, catalog_id, table_id, tuple, &[expired.lead], 0, i64::MAX).await?;
        Ok(Found { below, files, is_piece: false })
    }

    fn tell_oversize(&mut self, expired: &ExpiredTuple) {
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
            "A partition is too large for one commit and stays"
        );
    }

    /// One commit, tried twice where the first try failed for a reason that may pass: what was
    /// cancelled for its length was cold, and is warm now.
    async fn commit(&mut self, session: &mut LeasedSession<'_>, chosen: &Chosen<'_>) -> Step {
        let mut failure = None;
        for _ in 0..2 {
            if self.context.stop.is_cancelled() {
                self.ended = Some((Outcome::Partial, None));
                return Step::Stop;
            }
            let attempt = self.attempt(session, chosen).await;
            let (wait, hold) = (attempt.lock_wait, attempt.lock_hold);
            let error = match attempt.result {
                Ok(outcome) => {
                    let step = self.take(outcome, chosen, milliseconds(wait), milliseconds(hold));
                    pace::rest(hold, self.context.settings.lock_duty, self.context.stop).await;
                    return step;
                }
                Err(error) => error,
            };
            pace::rest(hold, self.context.settings.lock_duty, self.context.stop).await;
            let lost = match &error {
                DropError::HoldExceeded => false,
                DropError::AnswerLost { .. } => true,
                DropError::Database(error) => match Failure::of(error) {
                    Failure::ConnectionLost => true,
                    Failure::TryAgain => false,
                    _ => return self.fail(said(error)),
                },
            };
            if lost && let Err(away) = session.reestablish().await {
                self.ended =
                    Some((Outcome::Failed, Some(format!("{error}; then: {}", in_words(&away)))));
                return Step::Stop;
            }
            if let DropError::AnswerLost { drop_id, busy, .. } = &error {
                match history(session.connection(), *drop_id).await {
                    Ok(Some(row)) => {
                        let requested: Vec<_> =
                            chosen.tuples().map(|expired| expired.tuple.clone()).collect();
                        let receipt = Receipt {
                            snapshot_id: row.snapshot_id,
                            counts: row.counts,
                            per_tuple: crate::drop::commit::per_tuple(&row, &requested),
                            busy: busy.clone(),
                        };
                        let outcome = DropOutcome::Dropped(receipt);
                        return self.take(outcome, chosen, milliseconds(wait), milliseconds(hold));
                    }
                    Ok(None) => {}
                    Err(unknown) => {
                        self.ended =
                            Some((Outcome::Failed, Some(format!("{error}; then: {unknown}"))));
                        return Step::Stop;
                    }
                }
            }
            failure = Some(error);
        }
        self.fail(failure.map(|error| error.to_string()).unwrap_or_default())
    }

    /// Notes an error, each only once: what fails one batch usually fails them all.
    fn fail(&mut self, error: String) -> Step {
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
        Step::Failed
    }

    async fn attempt(&self, session: &mut LeasedSession<'_>, chosen: &Chosen<'_>) -> Attempt {
        let Found { below, files, is_piece } = &chosen.found;
        let chosen: Vec<&ExpiredTuple> = chosen.tuples().collect();
        let requested: Vec<_> = chosen.iter().map(|tuple| tuple.tuple.clone()).collect();
        let lead: Vec<_> = chosen.iter().map(|tuple| tuple.lead).collect();
        let message = self.message(&chosen);
        let request = DropRequest {
            table: self.table,
            tuples: &requested,
            lead: &lead,
            policy: Some(PolicyGuard::of(self.policy)),
            found: files,
            found_below: *below,
            is_piece: *is_piece,
            fence: self.policy.fence,
            author: AUTHOR,
            message: &message,
        };
        drop_tuples(session.connection(), &request, &self.context.settings.limits).await
    }

    /// What the snapshot says of itself.
    fn message(&self, chosen: &[&ExpiredTuple]) -> String {
        let Policy { field, keep, .. } = self.policy;
        let span = match chosen {
            [] => String::new(),
            [one] => format!("partition {}", one.display),
            [first, .., last] => {
                format!("{} partitions, {} to {}", chosen.len(), first.display, last.display)
            }
        };
        format!("partition retention: {field} keep {keep}, cutoff {}; {span}", self.cutoff)
    }

    fn take(&mut self, outcome: DropOutcome, chosen: &Chosen<'_>, wait: f64, hold: f64) -> Step {
        let busy = match outcome {
            DropOutcome::Dropped(receipt) => {
                self.dropped(&receipt, chosen, wait, hold);
                receipt.busy
            }
            DropOutcome::NothingMatches { busy } => busy,
            DropOutcome::Refused(refusal) => {
                self.refused(refusal, wait);
                return Step::Stop;
            }
        };
        self.tell_busy(&busy, chosen);
        for (number, at) in chosen.tuples.iter().enumerate() {
            if busy.contains(&number) {
                self.stays.insert(*at);
            } else if !chosen.found.is_piece && !self.stays.contains(at) {
                self.kept.remove(at);
            }
        }
        Step::Ended
    }

    fn dropped(&mut self, receipt: &Receipt, chosen: &Chosen<'_>, wait: f64, hold: f64) {
        let TableIdentity { catalog, namespace, table, .. } = self.table;
        let counts = receipt.counts;
        let partitions: Vec<_> = chosen
            .tuples()
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

    fn tell_busy(&mut self, busy: &[usize], chosen: &Chosen<'_>) {
        let TableIdentity { catalog, namespace, table, .. } = self.table;
        self.busy += busy.len();
        let tuples: Vec<&ExpiredTuple> = chosen.tuples().collect();
        for expired in busy.iter().filter_map(|at| tuples.get(*at)) {
            tracing::warn!(
                event = events::TUPLE_BUSY,
                catalog,
                namespace,
                table,
                partition = expired.display,
                files = expired.counts.files,
                "Somebody else has locked rows of a partition; it waits for the next pass"
            );
        }
    }

    fn refused(&mut self, refusal: Refusal, wait: f64) {
        let TableIdentity { catalog, namespace, table, .. } = self.table;
        self.ended = Some(match refusal {
            Refusal::LockNotHad => {
                tracing::warn!(
                    event = events::LOCK_NOT_HAD,
                    catalog,
                    namespace,
                    table,
                    lock_wait_ms = wait,
                    "The commit lock was not had in time; the next pass tries again"
                );
                let error =
                    format!("the commit lock was not had within {wait} ms (sweep.lock_timeout)");
                (Outcome::LockTimeout, Some(error))
            }
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
            Refusal::Gone => {
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
        });
    }

    /// What came of it.
    pub fn report(self) -> TableReport {
        let (outcome, error) = match self.ended {
            _ if self.oversize < self.errors.len() => (Outcome::Failed, None),
            Some((outcome, error)) => (outcome, error),
            None if self.oversize > 0 => (Outcome::Oversize, None),
            None if self.busy > 0 => (Outcome::Busy, None),
            // What was planned may have gone by other hands meanwhile.
            None if self.snapshots.is_empty() => (Outcome::NothingToDo, None),
            None => (Outcome::Dropped, None),
        };
        let mut errors = self.errors;
        errors.extend(error);
        let error = (!errors.is_empty()).then(|| errors.join("; "));
        let mut report = TableReport::new(self.table, outcome, error);
        report.snapshots = self.snapshots;
        report
    }
}
