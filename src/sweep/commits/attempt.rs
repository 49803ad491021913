//! One commit: when it may start, and what becomes of it.

use std::time::Duration;

use super::{AUTHOR, Work};
use crate::catalog::busy::CATALOGS;
use crate::catalog::drop_history::history;
use crate::catalog::errors::{Failure, in_words, said, with_row};
use crate::catalog::removal_queue::undrained;
use crate::drop::tuples::per_tuple;
use crate::drop::{
    DropError, DropOutcome, DropRequest, Late, PolicyGuard, Receipt, Refusal, drop_tuples,
};
use crate::policy::Policy;
use crate::rules::backoff::Backoff;
use crate::sweep::expired::ExpiredTuple;
use crate::sweep::lease::LeasedSession;
use crate::sweep::report::{Outcome, milliseconds};
use crate::sweep::round::{Ended, Round, Stays};

/// The longest pause after the commit lock was not had. The first one is about as long as
/// the wait for it was, for whoever held the lock had it for longer than that.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(30);

/// What a commit came to, for the one who asked for it.
pub enum Step {
    /// It was committed, or there was nothing.
    Done,
    /// It failed, with its error noted; another batch may fare better.
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
    /// One commit of these tuples of the round, with these of their files; `is_piece` where another one
    /// will end the rest of the tuple. It is tried again at once where the connection was lost or the
    /// server asks for it, once; and after pauses where the commit lock was not had, or a table was locked
    /// under it, as often as the context says.
    pub(super) async fn commit(
        &mut self,
        session: &mut LeasedSession<'_>,
        round: &Round,
        tuples: &[usize],
        files: &[(i64, i32)],
        is_piece: bool,
    ) -> Step {
        let expired: Vec<_> = tuples.iter().filter_map(|at| round.tuples.get(*at)).collect();
        let wanted: Vec<_> = expired.iter().map(|expired| expired.tuple.clone()).collect();
        let lead: Vec<_> = expired.iter().map(|expired| expired.lead).collect();
        let doubtful: Vec<_> = expired.iter().map(|expired| !expired.doubt.is_none()).collect();
        let message = self.message(&expired);
        let request = DropRequest {
            table: self.table,
            tuples: &wanted,
            lead: &lead,
            policy: Some(PolicyGuard::of(self.policy)),
            found: files,
            found_below: round.found_below,
            late: round.late.map(|rule| Late { rule, doubtful: &doubtful }),
            is_piece,
            fence: self.policy.fence,
            author: AUTHOR,
            message: &message,
        };
        let (outcome, times) = match self.try_until_told(session, &request).await {
            Ok(told) => told,
            Err(step) => return step,
        };
        let busy = match outcome {
            DropOutcome::Dropped(receipt) => {
                self.dropped(&receipt, &expired, times);
                receipt.busy
            }
            DropOutcome::NothingMatches { busy } => busy,
            DropOutcome::Refused(refusal) => return self.refused(refusal),
        };
        self.tell_busy(&busy, &expired);
        for (number, at) in tuples.iter().enumerate() {
            if busy.contains(&number) {
                self.why.insert(*at, Stays::Busy);
            } else if !is_piece && !self.why.contains_key(at) {
                self.kept.remove(at);
            }
        }
        Step::Done
    }

    /// Tries a commit until it is known what became of it, with wait and hold in milliseconds; or says how
    /// the work goes on without it.
    async fn try_until_told(
        &mut self,
        session: &mut LeasedSession<'_>,
        request: &DropRequest<'_>,
    ) -> Result<(DropOutcome, (f64, f64)), Step> {
        let mut not_had = 0;
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
                    refusal @ (Refusal::LockNotHad
                    | Refusal::TableLocked(_)
                    | Refusal::CatalogLocked),
                )) => {
                    not_had += 1;
                    self.back_off(not_had, times.0, &refusal).await?;
                    continue;
                }
                Ok(outcome) => return Ok((outcome, times)),
                Err(error) => error,
            };
            match self.recover(session, request, &error).await? {
                Some(outcome) => return Ok((outcome, times)),
                None if matches!(error, DropError::HoldExceeded) => {
                    return Err(Step::Cancelled { hold: times.1 });
                }
                None if is_second_try => return Err(self.fail(error.to_string())),
                None => is_second_try = true,
            }
        }
    }

    /// Waits until a commit may start. `Some` where none can any more.
    async fn may_start(&mut self, session: &mut LeasedSession<'_>) -> sqlx::Result<Option<Step>> {
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
            self.tell_held_back(queue, ceiling);
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
        let ends = if self.has_begun { budget.turn_ends } else { budget.pass_ends };
        self.context.pacing.now().checked_add(pause).is_some_and(|then| then < ends)
    }

    /// Lets others have the lock that was not had, or gives up.
    async fn back_off(&mut self, not_had: u32, wait: f64, refusal: &Refusal) -> Result<(), Step> {
        let context = self.context;
        let locked_table = match refusal {
            Refusal::TableLocked(name) => Some(name.as_str()),
            Refusal::CatalogLocked => Some(CATALOGS),
            _ => None,
        };
        let backoff =
            Backoff { shortest: context.settings.limits.lock_timeout, longest: LONGEST_BACK_OFF };
        let pause = backoff.pause(not_had - 1, context.pacing.random());
        if not_had >= context.lock_tries || !self.has_time_for(pause) {
            self.tell_lock_not_had(not_had, wait, locked_table);
            let tries = if not_had == 1 { "try" } else { "tries" };
            let error = match locked_table {
                None => format!(
                    "the commit lock was not had within {wait} ms (sweep.lock_timeout), after {not_had} {tries}"
                ),
                Some(_) if *refusal == Refusal::CatalogLocked => format!(
                    "somebody else has locked the catalog's row of {CATALOGS} for longer than \
                     drop.row_lock_timeout; after {not_had} {tries}"
                ),
                Some(name) => format!(
                    "somebody else has locked the table {name} of the catalog, as DDL does, for longer than \
                     drop.row_lock_timeout; after {not_had} {tries}"
                ),
            };
            return Err(self.end(Ended::GaveUp, Outcome::LockTimeout, Some(error)));
        }
        self.tell_lock_backoff(not_had, wait, pause, locked_table);
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
    ) -> Result<Option<DropOutcome>, Step> {
        let is_lost = match error {
            // A server that ends the transaction ends the session with it.
            DropError::HoldExceeded | DropError::AnswerLost { .. } => true,
            DropError::Kept(_) => {
                let words = error.to_string();
                return Err(Step::Unfit { key: words.clone(), words });
            }
            DropError::Database(error) => match Failure::of(error) {
                Failure::ConnectionLost => true,
                Failure::TryAgain => false,
                Failure::Content => {
                    return Err(Step::Unfit { key: said(error), words: with_row(error) });
                }
                _ => return Err(self.fail(said(error))),
            },
        };
        if is_lost && let Err(away) = session.reestablish().await {
            let error = format!("{error}; then: {}", in_words(&away));
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
