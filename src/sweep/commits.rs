//! The commits of one table, batch by batch.
//!
//! `commit` makes one of them, and tries it again where that may help at once; what was cancelled
//! for its length waits at the end of the `line`, where it is in nobody's way. What the server refuses
//! for its content is halved there, until the tuple is found that cannot go (`unfit`).

mod attempt;
mod line;
mod log;
mod unfit;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::context::Context;
use super::lease::LeasedSession;
use super::report::{Outcome, SnapshotReport, TableReport, some_of};
use super::round::{Ended, Round, RoundEnd, Stays};
use super::waiting::parts::{PartOf, PartState};
use crate::catalog::tables::TableIdentity;
use crate::drop::request::HOLD_EXCEEDED;
use crate::policy::Policy;
use crate::rules::backoff::Backoff;
use crate::rules::batches::{Batch, group};
use crate::rules::instant::UtcInstant;
use attempt::Step;
use line::{Line, Task, Turn, pieces};
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
    unfit: Unfit,
    /// Whether a commit was tried.
    has_begun: bool,
    /// How the last round ended.
    ended: Ended,
    /// Of the round at hand: the tuples that stay or may stay.
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
            unfit: Unfit::default(),
            has_begun: false,
            ended: Ended::AllTried,
            kept: BTreeSet::new(),
            why: BTreeMap::new(),
        }
    }

    /// Works until every tuple of the round was tried, or no further commit makes sense. May be
    /// called for round after round; after one in which not everything was tried it does nothing.
    ///
    /// Before each commit it rests until the catalog's commit lock may be held again
    /// (`sweep.lock_duty`). No commit starts once the table's turn is over, but the first one of
    /// this work, which may start as long as the time of the pass is not over.
    pub async fn run(&mut self, session: &mut LeasedSession<'_>, round: &Round) -> RoundEnd {
        self.kept = (0..round.tuples.len()).collect();
        self.why.clear();
        let mut line = self.line(round);
        if self.ended == Ended::AllTried {
            self.ended = self.go_through(session, round, &mut line).await;
        }
        let kept = std::mem::take(&mut self.kept).into_iter().collect();
        let (why, parts) = (std::mem::take(&mut self.why), line.into_parts());
        RoundEnd { kept, why, parts, ended: self.ended }
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
        round: &Round,
        line: &mut Line,
    ) -> Ended {
        while let Some(mut task) = line.next() {
            let step = match self.until_due(&task).await {
                Some(end) => end,
                None => self.work_on(session, round, &mut task).await,
            };
            match step {
                Step::Done => self.failures_in_a_row = 0,
                Step::Failed => {
                    line.leave(task);
                    self.failures_in_a_row += 1;
                }
                Step::Unfit { key, words } => self.unfit(round, task, key, words, line),
                Step::Cancelled { hold } => self.put_off(task, hold, line),
                Step::End(ended) => {
                    line.put_back(task);
                    return ended;
                }
            }
            if self.failures_in_a_row == GIVE_UP_AFTER || self.gives_up_unfit() {
                return Ended::GaveUp;
            }
        }
        Ended::AllTried
    }

    /// The commits of a round. What failed together is halved at once; tuples that are known to fail
    /// are in commits of their own.
    fn line(&self, round: &Round) -> Line {
        let (limits, sizes) = (&self.context.settings.batch, round.sizes());
        let batches = |tuples: &[usize]| {
            let files: Vec<i64> = tuples.iter().map(|at| sizes[*at]).collect();
            let batches = group(&files, limits).into_iter();
            batches.map(|batch| batch.of(tuples)).collect::<Vec<_>>()
        };
        let mut line = Line::default();
        let fresh: Vec<usize> = (0..round.parts_from).collect();
        batches(&fresh).into_iter().for_each(|batch| line.add(batch, Turn::Fresh, 0));
        for PartOf { tuples, halvings, state } in &round.parts {
            let turn = match state {
                PartState::Alone => Turn::Again,
                PartState::Untried | PartState::Together => Turn::Half,
            };
            for batch in batches(tuples) {
                match batch {
                    Batch::Whole(tuples) if *state == PartState::Together && tuples.len() > 1 => {
                        line.halve_later(tuples, *halvings);
                    }
                    batch => line.add(batch, turn, *halvings),
                }
            }
        }
        for tuple in round.alone_from..round.tuples.len() {
            batches(&[tuple]).into_iter().for_each(|batch| line.add(batch, Turn::Alone, 0));
        }
        line
    }

    /// Waits until a task is due that was put off.
    async fn until_due(&mut self, task: &Task) -> Option<Step> {
        let Context { pacing, budget, stop, .. } = self.context;
        let Turn::Due(due) = task.turn else { return None };
        if due >= budget.turn_ends {
            return Some(self.out_of_time(Some(HOLD_EXCEEDED.to_owned())));
        }
        pacing.sleep(due.saturating_duration_since(pacing.now()), stop).await;
        None
    }

    /// Puts a commit that was cancelled to the end of the line, or leaves it until the next pass.
    fn put_off(&mut self, task: Task, hold: f64, line: &mut Line) {
        let pacing = self.context.pacing;
        let tries = task.cancelled + 1;
        let pause =
            (tries < TRIES_IF_CANCELLED).then(|| CANCELLED.pause(task.cancelled, pacing.random()));
        self.tell_cancelled(tries, hold, pause);
        match pause {
            Some(pause) => {
                let now = pacing.now();
                let turn = Turn::Due(now.checked_add(pause).unwrap_or(now));
                line.put_at_the_end(Task { cancelled: tries, turn, ..task });
            }
            None => {
                line.leave(task);
                self.fail(HOLD_EXCEEDED.to_owned());
                self.failures_in_a_row += 1;
            }
        }
    }

    async fn work_on(
        &mut self,
        session: &mut LeasedSession<'_>,
        round: &Round,
        task: &mut Task,
    ) -> Step {
        match &task.batch {
            Batch::Whole(tuples) => {
                self.commit(session, round, tuples, &round.files(tuples), false).await
            }
            Batch::Oversize(tuple) => {
                self.why.insert(*tuple, Stays::Oversize);
                self.tell_oversize(&round.tuples[*tuple]);
                Step::Done
            }
            Batch::Split(tuple) => {
                let only = std::slice::from_ref(tuple);
                let pieces = task.pieces.get_or_insert_with(|| {
                    self.tell_split(&round.tuples[*tuple]);
                    pieces(round.files(only), self.context.settings.batch.files_per_commit)
                });
                while let Some(files) = pieces.front() {
                    let is_piece = pieces.len() > 1;
                    let step = self.commit(session, round, only, files, is_piece).await;
                    if !matches!(step, Step::Done) {
                        return step;
                    }
                    pieces.pop_front();
                }
                Step::Done
            }
        }
    }

    /// Notes an error, each only once: what fails one batch usually fails them all.
    fn fail(&mut self, error: String) -> Step {
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
        Step::Failed
    }

    /// Ends the work, with what the report says of it.
    fn end(&mut self, ended: Ended, outcome: Outcome, error: Option<String>) -> Step {
        self.stopped_by = Some((outcome, error));
        Step::End(ended)
    }

    /// Notes that the time was over before all had been looked at.
    pub fn cut_short(&mut self) {
        if self.stopped_by.is_none() {
            self.ended = Ended::OutOfTime;
            self.stopped_by = Some((Outcome::Partial, None));
        }
    }

    fn out_of_time(&mut self, error: Option<String>) -> Step {
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
