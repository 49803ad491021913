//! The commits of one table, batch by batch.
//!
//! `commit` makes one commit, and repeats it where that may help at once. A commit that was cancelled for its
//! length goes to the end of the `commit_queue`, so that no other commit waits for it. A commit that the
//! database refuses for its content is halved in the queue until the tuple that cannot be ended is found
//! (`unfit`).

mod attempt;
mod commit_queue;
mod log;
mod unfit;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::context::Context;
use super::expired_batch::{Ended, ExpiredBatch, ExpiredBatchEnd, Stays};
use super::lease::LeasedSession;
use super::report::{Outcome, SnapshotReport, TableReport, some_of};
use super::waiting::parts::{PartOf, PartState};
use crate::catalog::tables::TableIdentity;
use crate::drop::request::HOLD_EXCEEDED;
use crate::policy::Policy;
use crate::rules::backoff::Backoff;
use crate::rules::batches::{Batch, group};
use crate::rules::instant::UtcInstant;
use attempt::AttemptResult;
use commit_queue::{CommitQueue, Task, Turn, pieces};
use unfit::Unfit;

/// The author of our snapshots.
pub const AUTHOR: &str = "tailrace";

/// A table whose commits fail this often in a row is left until the next pass: each failure has
/// taken the commit lock for nothing.
const GIVE_UP_AFTER: usize = 3;

/// A commit that is cancelled for its length is tried so often in all, then left until the next
/// pass.
const TRIES_IF_CANCELLED: u32 = 5;

/// The pauses of a commit that was cancelled, at the size that it has: what made it slow, cold
/// pages most likely, may be over by then.
const CANCELLED: Backoff =
    Backoff { shortest: Duration::from_secs(5), longest: Duration::from_secs(60) };

/// The commits of one table.
pub struct Work<'a> {
    table: &'a TableIdentity,
    policy: &'a Policy,
    cutoff: UtcInstant,
    context: &'a Context<'a>,
    snapshots: Vec<SnapshotReport>,
    busy: usize,
    oversize: usize,
    /// What waits, as this pass leaves it: too large, in words, and whether anything is busy.
    waits: (Vec<String>, bool),
    /// What ended the work early, with its words.
    stopped_by: Option<(Outcome, Option<String>)>,
    /// Errors of batches; the others went on.
    errors: Vec<String>,
    failures_in_a_row: usize,
    /// Where the policy keeps the newest values: the snapshot up to which nothing but our own drops ended any since
    /// they were looked for.
    newest_as_of: Option<i64>,
    unfit: Unfit,
    /// Whether a commit was tried.
    has_begun: bool,
    /// How the last expired batch ended.
    ended: Ended,
    /// Of the expired batch at hand: the tuples that stay or may stay.
    kept: BTreeSet<usize>,
    /// Why, where that is known.
    why: BTreeMap<usize, Stays>,
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
            waits: (Vec::new(), false),
            stopped_by: None,
            errors: Vec::new(),
            failures_in_a_row: 0,
            newest_as_of: None,
            unfit: Unfit::default(),
            has_begun: false,
            ended: Ended::AllTried,
            kept: BTreeSet::new(),
            why: BTreeMap::new(),
        }
    }

    /// Works until every tuple of the batch was tried, or no further commit makes sense. May be
    /// called for batch after batch; after one in which not everything was tried it does nothing.
    ///
    /// Before each commit it rests until the catalog's commit lock may be held again
    /// (`sweep.lock_duty`). No commit starts once the table's time slice is over, but the first one of
    /// this work, which may start as long as the time of the pass is not over.
    pub async fn run(
        &mut self,
        session: &mut LeasedSession<'_>,
        expired_batch: &ExpiredBatch,
    ) -> ExpiredBatchEnd {
        self.kept = (0..expired_batch.tuples.len()).collect();
        self.why.clear();
        // Ours were proven to follow on what an earlier batch knew.
        self.newest_as_of = self.newest_as_of.max(expired_batch.newest_as_of);
        let mut queue = self.commit_queue(expired_batch);
        if self.ended == Ended::AllTried {
            self.ended = self.go_through(session, expired_batch, &mut queue).await;
        }
        let kept = std::mem::take(&mut self.kept).into_iter().collect();
        let (why, parts) = (std::mem::take(&mut self.why), queue.into_parts());
        ExpiredBatchEnd { kept, why, parts, ended: self.ended }
    }

    /// Notes what waits when the pass has done with the table: tuples that are too large, in words, and
    /// whether any is busy. It is told as long as it is so, also by a pass that left them alone.
    pub fn still_waits(&mut self, oversize: Vec<String>, is_busy: bool) {
        self.waits = (oversize, is_busy);
    }

    /// Whether a commit of the table went through in this pass.
    pub fn went_through(&self) -> bool {
        self.context.went_through || !self.snapshots.is_empty()
    }

    async fn go_through(
        &mut self,
        session: &mut LeasedSession<'_>,
        expired_batch: &ExpiredBatch,
        queue: &mut CommitQueue,
    ) -> Ended {
        while let Some(mut task) = queue.next() {
            let result = match self.until_due(&task).await {
                Some(end) => end,
                None => self.work_on(session, expired_batch, &mut task).await,
            };
            match result {
                AttemptResult::Done => self.failures_in_a_row = 0,
                AttemptResult::Failed => {
                    queue.leave(task);
                    self.failures_in_a_row += 1;
                }
                AttemptResult::Unfit { key, words } => {
                    self.unfit(expired_batch, task, key, words, queue)
                }
                AttemptResult::Cancelled { hold } => self.put_off(task, hold, queue),
                AttemptResult::End(ended) => {
                    queue.put_back(task);
                    return ended;
                }
            }
            if self.failures_in_a_row == GIVE_UP_AFTER || self.gives_up_unfit() {
                return Ended::GaveUp;
            }
        }
        Ended::AllTried
    }

    /// The commits of an expired batch. What failed together is halved at once; tuples that are known to fail
    /// are in commits of their own.
    fn commit_queue(&self, expired_batch: &ExpiredBatch) -> CommitQueue {
        let (limits, sizes) = (&self.context.settings.batch, expired_batch.sizes());
        let batches = |tuples: &[usize]| {
            let files: Vec<i64> = tuples.iter().map(|at| sizes[*at]).collect();
            let batches = group(&files, limits).into_iter();
            batches.map(|batch| batch.of(tuples)).collect::<Vec<_>>()
        };
        let mut queue = CommitQueue::default();
        let fresh: Vec<usize> = (0..expired_batch.parts_from).collect();
        batches(&fresh).into_iter().for_each(|batch| queue.add(batch, Turn::Fresh, 0));
        for PartOf { tuples, halvings, state } in &expired_batch.parts {
            let turn = match state {
                PartState::Alone => Turn::Again,
                PartState::Untried | PartState::Together => Turn::Half,
            };
            for batch in batches(tuples) {
                match batch {
                    Batch::Whole(tuples) if *state == PartState::Together && tuples.len() > 1 => {
                        queue.halve_later(tuples, *halvings);
                    }
                    batch => queue.add(batch, turn, *halvings),
                }
            }
        }
        for tuple in expired_batch.alone_from..expired_batch.tuples.len() {
            batches(&[tuple]).into_iter().for_each(|batch| queue.add(batch, Turn::Alone, 0));
        }
        queue
    }

    /// Waits until a task is due that was put off.
    async fn until_due(&mut self, task: &Task) -> Option<AttemptResult> {
        let Context { pacing, budget, stop, .. } = self.context;
        let Turn::Due(due) = task.turn else { return None };
        if due >= budget.slice_ends {
            return Some(self.out_of_time(Some(HOLD_EXCEEDED.to_owned())));
        }
        pacing.sleep(due.saturating_duration_since(pacing.now()), stop).await;
        None
    }

    /// Puts a commit that was cancelled to the end of the queue, or leaves it until the next pass.
    fn put_off(&mut self, task: Task, hold: f64, queue: &mut CommitQueue) {
        let pacing = self.context.pacing;
        let tries = task.cancelled + 1;
        let pause =
            (tries < TRIES_IF_CANCELLED).then(|| CANCELLED.pause(task.cancelled, pacing.random()));
        self.log_cancelled(tries, hold, pause);
        match pause {
            Some(pause) => {
                let now = pacing.now();
                let turn = Turn::Due(now.checked_add(pause).unwrap_or(now));
                queue.put_at_the_end(Task { cancelled: tries, turn, ..task });
            }
            None => {
                queue.leave(task);
                self.fail(HOLD_EXCEEDED.to_owned());
                self.failures_in_a_row += 1;
            }
        }
    }

    async fn work_on(
        &mut self,
        session: &mut LeasedSession<'_>,
        expired_batch: &ExpiredBatch,
        task: &mut Task,
    ) -> AttemptResult {
        match &task.batch {
            Batch::Whole(tuples) => {
                self.commit(session, expired_batch, tuples, &expired_batch.files(tuples), false)
                    .await
            }
            Batch::Oversize(tuple) => {
                self.why.insert(*tuple, Stays::Oversize);
                self.log_oversize(&expired_batch.tuples[*tuple]);
                AttemptResult::Done
            }
            Batch::Split(tuple) => {
                let only = std::slice::from_ref(tuple);
                let pieces = task.pieces.get_or_insert_with(|| {
                    self.log_split(&expired_batch.tuples[*tuple]);
                    pieces(expired_batch.files(only), self.context.settings.batch.files_per_commit)
                });
                while let Some(files) = pieces.front() {
                    let is_piece = pieces.len() > 1;
                    let result = self.commit(session, expired_batch, only, files, is_piece).await;
                    if !matches!(result, AttemptResult::Done) {
                        return result;
                    }
                    pieces.pop_front();
                }
                AttemptResult::Done
            }
        }
    }

    /// Notes an error, each only once: what fails one batch usually fails them all.
    fn fail(&mut self, error: String) -> AttemptResult {
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
        AttemptResult::Failed
    }

    /// Ends the work, with what the report says of it.
    fn end(&mut self, ended: Ended, outcome: Outcome, error: Option<String>) -> AttemptResult {
        self.stopped_by = Some((outcome, error));
        AttemptResult::End(ended)
    }

    /// Notes that the time was over before all had been looked at.
    pub fn cut_short(&mut self) {
        if self.stopped_by.is_none() {
            self.ended = Ended::OutOfTime;
            self.stopped_by = Some((Outcome::Partial, None));
        }
    }

    fn out_of_time(&mut self, error: Option<String>) -> AttemptResult {
        self.end(Ended::OutOfTime, Outcome::Partial, error)
    }

    /// What came of it.
    pub fn report(mut self) -> TableReport {
        // Where the time was over in the middle, nothing is known yet of whose fault it is.
        let is_at_its_end = matches!(self.ended, Ended::AllTried | Ended::GaveUp);
        if is_at_its_end && !self.went_through() {
            self.errors.extend(std::mem::take(&mut self.unfit).of_table());
        }
        let (oversize, is_busy) = self.waits;
        let (outcome, error) = match self.stopped_by {
            _ if self.oversize < self.errors.len() => (Outcome::Failed, None),
            Some((outcome, error)) => (outcome, error),
            None if self.oversize > 0 => (Outcome::Oversize, None),
            None if !oversize.is_empty() => (Outcome::Oversize, Some(some_of(&oversize))),
            None if self.busy > 0 || is_busy => (Outcome::Busy, None),
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
