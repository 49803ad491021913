//! One commit: when it may start, and how it ended.

use std::time::Duration;

use super::{AUTHOR, Work};
use crate::catalog::busy::CATALOGS;
use crate::catalog::drop_history::history;
use crate::catalog::errors::{Failure, describe, said, with_row};
use crate::catalog::removal_queue::undrained;
use crate::drop::tuples::per_tuple;
use crate::drop::{
    DropError, DropOutcome, DropRequest, Late, PolicyGuard, Receipt, Refusal, drop_tuples,
};
use crate::policy::Policy;
use crate::rules::backoff::Backoff;
use crate::sweep::context::Context;
use crate::sweep::expired::ExpiredTuple;
use crate::sweep::expired_batch::{Ended, ExpiredBatch, Stays};
use crate::sweep::lease::LeasedSession;
use crate::sweep::report::{Outcome, milliseconds};

/// The longest pause after the commit lock could not be acquired. The first one is about as long as
/// the wait for it was, for whoever held the lock had it for longer than that.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(30);

/// The pause before a table is planned anew in the same pass.
const BEFORE_PLANNING_ANEW: Duration = Duration::from_millis(500);

/// What a commit came to, for the one who asked for it.
pub enum AttemptResult {
    /// It was committed, or there was nothing.
    Done,
    /// It failed, with its error noted; another batch may succeed.
    Failed,
    /// The server refuses it for its content: what it said, and the same with what it said of the row.
    Unfit { key: String, words: String },
    /// The server cancelled it for its length, after a hold of so many milliseconds.
    Cancelled { hold: f64 },
    /// No further commit can start now, for a reason that is noted.
    End(Ended),
}

/// The tuples, as a message names them.
pub fn named(tuples: &[&ExpiredTuple]) -> String {
    match tuples {
        [] => String::new(),
        [one] => format!("partition {}", one.display),
        [first, .., last] => {
            format!("{} partitions, {} to {}", tuples.len(), first.display, last.display)
        }
    }
}

impl Work<'_> {
    /// One commit of these tuples of the batch, with these of their files; `is_piece` where another one
    /// will end the rest of the tuple. It is tried again at once where the connection was lost or the
    /// server asks for it, once; and after pauses where the commit lock could not be acquired, or a table was locked
    /// under it, as often as the context says.
    pub(super) async fn commit(
        &mut self,
        session: &mut LeasedSession<'_>,
        expired_batch: &ExpiredBatch,
        tuples: &[usize],
        files: &[(i64, i32)],
        is_piece: bool,
    ) -> AttemptResult {
        let expired: Vec<_> =
            tuples.iter().filter_map(|at| expired_batch.tuples.get(*at)).collect();
        let wanted: Vec<_> = expired.iter().map(|expired| expired.tuple.clone()).collect();
        let lookup_keys: Vec<_> = expired.iter().map(|expired| expired.lookup_key).collect();
        let ambiguous: Vec<_> = expired.iter().map(|expired| !expired.doubt.is_none()).collect();
        let message = self.message(&expired);
        let request = DropRequest {
            table: self.table,
            tuples: &wanted,
            lookup_keys: &lookup_keys,
            policy: Some(PolicyGuard {
                // Of a piece the rest is still to be ended, by the same approval.
                uses_approval: !is_piece && expired.iter().any(|tuple| tuple.is_approved),
                ..PolicyGuard::of(self.policy).newest_as_of(self.newest_as_of)
            }),
            found: files,
            found_below: expired_batch.found_below,
            late: expired_batch.late.map(|rule| Late { rule, ambiguous: &ambiguous }),
            is_piece,
            fence: self.policy.fence,
            author: AUTHOR,
            message: &message,
        };
        let (outcome, times) = match self.try_until_told(session, &request).await {
            Ok(told) => told,
            Err(result) => return result,
        };
        let busy = match outcome {
            DropOutcome::Dropped(receipt) => {
                self.dropped(&receipt, &expired, times);
                // Under the lock of this commit nobody else had been at the table, nor could be.
                self.newest_as_of = self.newest_as_of.max(Some(receipt.snapshot_id));
                receipt.busy
            }
            DropOutcome::NothingMatches { busy } => busy,
            DropOutcome::Refused(refusal) => {
                if matches!(refusal, Refusal::GuardsChanged | Refusal::NewestChanged) {
                    // Whoever changes the guards, or ends rows, may be at it again and again.
                    let Context { pacing, stop, .. } = self.context;
                    pacing.sleep(BEFORE_PLANNING_ANEW, stop).await;
                }
                return self.refused(refusal);
            }
        };
        self.log_busy(&busy, &expired);
        for (number, at) in tuples.iter().enumerate() {
            if busy.contains(&number) {
                self.why.insert(*at, Stays::Busy);
            } else if !is_piece && !self.why.contains_key(at) {
                self.kept.remove(at);
            }
        }
        AttemptResult::Done
    }

    /// Tries a commit until it is known what became of it, with wait and hold in milliseconds; or says how
    /// the work goes on without it.
    async fn try_until_told(
        &mut self,
        session: &mut LeasedSession<'_>,
        request: &DropRequest<'_>,
    ) -> Result<(DropOutcome, (f64, f64)), AttemptResult> {
        let mut failed_tries = 0;
        let mut is_second_try = false;
        loop {
            let (result, times) = match self.may_start(session).await {
                Ok(Some(end)) => return Err(end),
                Err(error) => (Err(DropError::Database(error)), (0.0, 0.0)),
                Ok(None) => {
                    self.has_begun = true;
                    let limits = &self.context.settings.limits;
                    let attempt = drop_tuples(session.connection(), request, limits).await;
                    self.context.pacing.held(self.table.catalog_id, attempt.lock_hold);
                    let times = (milliseconds(attempt.lock_wait), milliseconds(attempt.lock_hold));
                    (attempt.result, times)
                }
            };
            let error = match result {
                Ok(DropOutcome::Refused(
                    refusal @ (Refusal::LockNotAcquired
                    | Refusal::TableLocked(_)
                    | Refusal::CatalogLocked),
                )) => {
                    failed_tries += 1;
                    self.back_off(failed_tries, times.0, &refusal).await?;
                    continue;
                }
                Ok(outcome) => return Ok((outcome, times)),
                Err(error) => error,
            };
            match self.recover(session, request, &error).await? {
                Some(outcome) => return Ok((outcome, times)),
                None if matches!(error, DropError::HoldExceeded) => {
                    return Err(AttemptResult::Cancelled { hold: times.1 });
                }
                None if is_second_try => return Err(self.fail(error.to_string())),
                None => is_second_try = true,
            }
        }
    }

    /// Waits until a commit may start. `Some` where none can any more.
    async fn may_start(
        &mut self,
        session: &mut LeasedSession<'_>,
    ) -> sqlx::Result<Option<AttemptResult>> {
        let context = self.context;
        let catalog_id = self.table.catalog_id;
        let rest = context.pacing.rest(catalog_id, context.settings.lock_duty);
        if !context.stop.is_cancelled() && !self.has_time_for(rest) {
            return Ok(Some(self.out_of_time(None)));
        }
        context.pacing.sleep(rest, context.stop).await;
        if context.stop.is_cancelled() {
            return Ok(Some(self.end(Ended::Stopped, Outcome::Partial, None)));
        }
        let Some(ceiling) = context.settings.removal_queue_ceiling else { return Ok(None) };
        let queue = match context.pacing.queue(catalog_id) {
            Some(queue) => queue,
            None => {
                let (began, at_most) = (context.pacing.now(), ceiling.saturating_add(1));
                let queue = undrained(session.connection(), catalog_id, at_most).await?;
                context.pacing.counted(catalog_id, queue, began);
                queue
            }
        };
        Ok((queue > ceiling).then(|| {
            self.log_held_back(queue, ceiling);
            let error = format!(
                "at least {queue} files wait for the server to delete their objects, more than \
                 sweep.removal_queue_ceiling"
            );
            self.end(Ended::GaveUp, Outcome::HeldBack, Some(error))
        }))
    }

    /// Whether a commit may still start after a pause.
    fn has_time_for(&self, pause: Duration) -> bool {
        let budget = &self.context.budget;
        let ends = if self.has_begun { budget.slice_ends } else { budget.pass_ends };
        self.context.pacing.now().checked_add(pause).is_some_and(|then| then < ends)
    }

    /// Lets others have the lock that could not be acquired, or gives up.
    async fn back_off(
        &mut self,
        failed_tries: u32,
        wait: f64,
        refusal: &Refusal,
    ) -> Result<(), AttemptResult> {
        let context = self.context;
        let locked_table = match refusal {
            Refusal::TableLocked(name) => Some(name.as_str()),
            Refusal::CatalogLocked => Some(CATALOGS),
            _ => None,
        };
        let backoff =
            Backoff { shortest: context.settings.limits.lock_timeout, longest: LONGEST_BACK_OFF };
        let pause = backoff.pause(failed_tries - 1, context.pacing.random());
        if failed_tries >= context.lock_tries || !self.has_time_for(pause) {
            self.log_lock_not_acquired(failed_tries, wait, locked_table);
            let tries = if failed_tries == 1 { "try" } else { "tries" };
            let error = match locked_table {
                None => format!(
                    "the commit lock could not be acquired within {wait} ms (sweep.lock_timeout), after {failed_tries} {tries}"
                ),
                Some(_) if *refusal == Refusal::CatalogLocked => format!(
                    "somebody else has locked the catalog's row of {CATALOGS} for longer than \
                     drop.row_lock_timeout; after {failed_tries} {tries}"
                ),
                Some(name) => format!(
                    "somebody else has locked the table {name} of the catalog, as DDL does, for longer than \
                     drop.row_lock_timeout; after {failed_tries} {tries}"
                ),
            };
            return Err(self.end(Ended::GaveUp, Outcome::LockTimeout, Some(error)));
        }
        self.log_lock_backoff(failed_tries, wait, pause, locked_table);
        context.pacing.sleep(pause, context.stop).await;
        Ok(())
    }

    /// After an error that may pass: a session that answers, and what became of a commit whose
    /// answer was lost. `None` where it is worth another try.
    async fn recover(
        &mut self,
        session: &mut LeasedSession<'_>,
        request: &DropRequest<'_>,
        error: &DropError,
    ) -> Result<Option<DropOutcome>, AttemptResult> {
        let is_lost = match error {
            // A server that ends the transaction ends the session with it.
            DropError::HoldExceeded | DropError::AnswerLost { .. } => true,
            DropError::Kept(_) => {
                let words = error.to_string();
                return Err(AttemptResult::Unfit { key: words.clone(), words });
            }
            DropError::Database(error) => match Failure::of(error) {
                Failure::ConnectionLost => true,
                Failure::TryAgain => false,
                Failure::Content => {
                    return Err(AttemptResult::Unfit { key: said(error), words: with_row(error) });
                }
                _ => return Err(self.fail(said(error))),
            },
        };
        if is_lost && let Err(away) = session.reestablish().await {
            let error = format!("{error}; then: {}", describe(&away));
            return Err(self.end(Ended::GaveUp, Outcome::Failed, Some(error)));
        }
        let DropError::AnswerLost { drop_id, busy, .. } = error else { return Ok(None) };
        match history(session.connection(), *drop_id).await {
            Ok(None) => Ok(None),
            Ok(Some(row)) => Ok(Some(DropOutcome::Dropped(Receipt {
                snapshot_id: row.snapshot_id,
                counts: row.counts,
                per_tuple: per_tuple(&row, request.tuples),
                busy: busy.clone(),
            }))),
            Err(unknown) => {
                let error = format!("{error}; then: {unknown}");
                Err(self.end(Ended::GaveUp, Outcome::Failed, Some(error)))
            }
        }
    }

    /// What the snapshot says of itself.
    fn message(&self, tuples: &[&ExpiredTuple]) -> String {
        let Policy { field, keep, .. } = self.policy;
        let (cutoff, span) = (self.cutoff, named(tuples));
        format!("partition retention: {field} keep {keep}, cutoff {cutoff}; {span}")
    }
}
