//! One commit: when it may start, and what becomes of it.

use std::time::Duration;

use super::{AUTHOR, Work};
use crate::backoff::Backoff;
use crate::catalog::deadline::within;
use crate::catalog::failure::{Failure, in_words, said, with_row};
use crate::catalog::removals::undrained;
use crate::catalog::tail::history;
use crate::drop::commit::per_tuple;
use crate::drop::{
    Attempt, DropError, DropOutcome, DropRequest, Late, PolicyGuard, Receipt, Refusal, drop_tuples,
};
use crate::policy::Policy;
use crate::sweep::lease::LeasedSession;
use crate::sweep::plan::ExpiredTuple;
use crate::sweep::report::{Outcome, milliseconds};
use crate::sweep::round::{Ended, Round, Stays};

use super::line::Found;

/// What a report says of a commit that was cancelled for its length.
pub const HOLD_EXCEEDED: &str =
    "a statement under the commit lock ran into drop.max_hold and was rolled back whole";

/// The longest pause after the commit lock was not had. The first one is about as long as
/// the wait for it was, for whoever held the lock had it for longer than that.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(30);

/// The longest that looking at the removal queue may take.
const LOOK: Duration = Duration::from_secs(60);

/// What one commit is asked to end.
pub struct Chosen<'r> {
    /// The round.
    pub round: &'r Round,
    /// Indexes into the round's tuples.
    pub tuples: &'r [usize],
    /// Their files.
    pub found: &'r Found,
    /// Another commit will end the rest of the tuple.
    pub is_piece: bool,
}

impl<'r> Chosen<'r> {
    /// The tuples.
    pub fn tuples(&self) -> impl Iterator<Item = &'r ExpiredTuple> {
        self.tuples.iter().filter_map(|at| self.round.tuples.get(*at))
    }
}

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
    /// One commit. It is tried again at once where the connection was lost or the server asks
    /// for it, once; and after pauses where the commit lock was not had, as often as the
    /// context says.
    pub(super) async fn commit(
        &mut self,
        session: &mut LeasedSession<'_>,
        chosen: &Chosen<'_>,
    ) -> Step {
        let mut not_had = 0;
        let mut is_second_try = false;
        loop {
            let (error, times) = match self.may_start(session).await {
                Ok(Some(end)) => return end,
                Err(error) => (DropError::Database(error), (0.0, 0.0)),
                Ok(None) => {
                    self.has_begun = true;
                    let attempt = self.attempt(session, chosen).await;
                    self.context.pacing.held(self.table.catalog_id, attempt.lock_hold);
                    let times = (milliseconds(attempt.lock_wait), milliseconds(attempt.lock_hold));
                    match attempt.result {
                        Ok(DropOutcome::Refused(Refusal::LockNotHad)) => {
                            not_had += 1;
                            match self.back_off(not_had, times.0).await {
                                Some(end) => return end,
                                None => continue,
                            }
                        }
                        Ok(outcome) => return self.take(outcome, chosen, times),
                        Err(DropError::HoldExceeded) => {
                            return Step::Cancelled { hold: times.1 };
                        }
                        Err(error) => (error, times),
                    }
                }
            };
            match self.recover(session, chosen, &error, times).await {
                Some(step) => return step,
                None if is_second_try => return self.fail(error.to_string()),
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
        let counted = undrained(session.connection(), catalog_id, ceiling.saturating_add(1));
        let queue = within(LOOK, counted).await?;
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

    /// Lets others have the commit lock that was not had, or gives up.
    async fn back_off(&mut self, not_had: u32, wait: f64) -> Option<Step> {
        let context = self.context;
        let backoff =
            Backoff { shortest: context.settings.limits.lock_timeout, longest: LONGEST_BACK_OFF };
        let pause = backoff.pause(not_had - 1, context.pacing.random());
        if not_had >= context.lock_tries || !self.has_time_for(pause) {
            self.tell_lock_not_had(not_had, wait);
            let tries = if not_had == 1 { "try" } else { "tries" };
            let error = format!(
                "the commit lock was not had within {wait} ms (sweep.lock_timeout), after {not_had} {tries}"
            );
            return Some(self.end(Ended::GaveUp, Outcome::LockTimeout, Some(error)));
        }
        self.tell_lock_backoff(not_had, wait, pause);
        context.pacing.sleep(pause, context.stop).await;
        None
    }

    /// After an error that may pass: a session that answers, and what became of a commit whose
    /// answer was lost. `None` where it is worth another try.
    async fn recover(
        &mut self,
        session: &mut LeasedSession<'_>,
        chosen: &Chosen<'_>,
        error: &DropError,
        times: (f64, f64),
    ) -> Option<Step> {
        let is_lost = match error {
            DropError::HoldExceeded => false,
            DropError::Kept(_) => {
                let words = error.to_string();
                return Some(Step::Unfit { key: words.clone(), words });
            }
            DropError::AnswerLost { .. } => true,
            DropError::Database(error) => match Failure::of(error) {
                Failure::ConnectionLost => true,
                Failure::TryAgain => false,
                Failure::Content => {
                    return Some(Step::Unfit { key: said(error), words: with_row(error) });
                }
                _ => return Some(self.fail(said(error))),
            },
        };
        if is_lost && let Err(away) = session.reestablish().await {
            let error = format!("{error}; then: {}", in_words(&away));
            return Some(self.end(Ended::GaveUp, Outcome::Failed, Some(error)));
        }
        let DropError::AnswerLost { drop_id, busy, .. } = error else { return None };
        match history(session.connection(), *drop_id).await {
            Ok(None) => None,
            Ok(Some(row)) => {
                let requested: Vec<_> =
                    chosen.tuples().map(|expired| expired.tuple.clone()).collect();
                let receipt = Receipt {
                    snapshot_id: row.snapshot_id,
                    counts: row.counts,
                    per_tuple: per_tuple(&row, &requested),
                    busy: busy.clone(),
                };
                Some(self.take(DropOutcome::Dropped(receipt), chosen, times))
            }
            Err(unknown) => {
                let error = format!("{error}; then: {unknown}");
                Some(self.end(Ended::GaveUp, Outcome::Failed, Some(error)))
            }
        }
    }

    async fn attempt(&self, session: &mut LeasedSession<'_>, chosen: &Chosen<'_>) -> Attempt {
        let tuples: Vec<&ExpiredTuple> = chosen.tuples().collect();
        let requested: Vec<_> = tuples.iter().map(|tuple| tuple.tuple.clone()).collect();
        let lead: Vec<_> = tuples.iter().map(|tuple| tuple.lead).collect();
        let message = self.message(&tuples);
        let doubtful: Vec<_> = tuples.iter().map(|tuple| !tuple.doubt.is_none()).collect();
        let request = DropRequest {
            table: self.table,
            tuples: &requested,
            lead: &lead,
            policy: Some(PolicyGuard::of(self.policy)),
            found: &chosen.found.files,
            found_below: chosen.found.below,
            late: chosen.round.late.map(|rule| Late { rule, doubtful: &doubtful }),
            is_piece: chosen.is_piece,
            fence: self.policy.fence,
            author: AUTHOR,
            message: &message,
        };
        drop_tuples(session.connection(), &request, &self.context.settings.limits).await
    }

    /// What the snapshot says of itself.
    fn message(&self, tuples: &[&ExpiredTuple]) -> String {
        let Policy { field, keep, .. } = self.policy;
        let (cutoff, span) = (self.cutoff, named(tuples));
        format!("partition retention: {field} keep {keep}, cutoff {cutoff}; {span}")
    }

    /// Takes note of what became of a commit; `times` are wait and hold in milliseconds.
    fn take(&mut self, outcome: DropOutcome, chosen: &Chosen<'_>, times: (f64, f64)) -> Step {
        let busy = match outcome {
            DropOutcome::Dropped(receipt) => {
                self.dropped(&receipt, chosen, times);
                receipt.busy
            }
            DropOutcome::NothingMatches { busy } => busy,
            DropOutcome::Refused(refusal) => return self.refused(refusal),
        };
        self.tell_busy(&busy, chosen);
        for (number, at) in chosen.tuples.iter().enumerate() {
            if busy.contains(&number) {
                self.why.insert(*at, Stays::Busy);
            } else if !chosen.is_piece && !self.why.contains_key(at) {
                self.kept.remove(at);
            }
        }
        Step::Done
    }
}
