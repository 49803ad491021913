//! Commits that the database refuses because of what they hold: a trigger raises an error, a row breaks a
//! constraint, or a number is out of range.
//!
//! Such a commit fails again if it is repeated. It is halved until the tuple that cannot be ended is alone.
//! This is done after every commit that has not been tried yet, so no other tuple waits for it. The cause is
//! the tuple only if other commits of the table succeed; otherwise it is the table, and nothing is said about
//! any tuple.

use std::collections::BTreeMap;

use super::Work;
use super::attempt::named;
use super::commit_queue::{CommitQueue, Task};
use crate::sweep::expired_batch::{ExpiredBatch, Stays};
use crate::sweep::waiting::MOST_POISONED;

/// So many commits that fail for their content, one after another with none that goes through, and
/// no further one is tried: each has taken the commit lock for nothing.
const GIVE_UP_AFTER: usize = 16;

/// Where other commits succeed, a tuple that failed alone does not count towards [`GIVE_UP_AFTER`], up to this
/// many tuples. Without this limit a pass would never end its work on a table of such tuples.
const FOUND_AT_MOST: usize = 100;

/// So many different messages of the server are reported of a table.
const TOLD: usize = 3;

/// What failed so.
#[derive(Debug, Default)]
pub struct Unfit {
    /// How many commits, since one went through.
    in_a_row: usize,
    /// Tuples that failed alone.
    found: usize,
    /// How many more may be found.
    room: usize,
    /// Whether another one was met when there was no room.
    is_full: bool,
    /// By what the server said, without the row: of how few tuples together, and all in words.
    said: BTreeMap<String, (usize, String)>,
}

impl Unfit {
    /// A commit of the table went through.
    pub fn went_through(&mut self) {
        self.in_a_row = 0;
    }

    /// What is to be said where it is the table's fault.
    pub fn of_table(self) -> impl Iterator<Item = String> {
        self.said.into_values().map(|(_, words)| words).take(TOLD)
    }
}

impl Work<'_> {
    /// Has the work of the next batch give up where more tuples than these turn out to be at fault.
    pub fn may_find(&mut self, room: usize) {
        self.unfit.room = room;
    }

    /// Takes note of a commit that failed for its content: `key` is what the server said, `words` the
    /// same with what it said of the row.
    pub(super) fn unfit(
        &mut self,
        expired_batch: &ExpiredBatch,
        task: Task,
        key: String,
        words: String,
        queue: &mut CommitQueue,
    ) {
        let tuples = task.batch.clone().tuples();
        if let [alone] = tuples.as_slice() {
            // What is known to fail tells nothing of the table.
            let is_known = *alone >= expired_batch.alone_from;
            if is_known || self.unfit.room > 0 {
                let (said, words) = (key.clone(), words.clone());
                self.why.insert(*alone, Stays::FailedAlone { said, words });
            }
            if is_known {
                return;
            }
            match self.unfit.room.checked_sub(1) {
                Some(room) => self.unfit.room = room,
                None => self.unfit.is_full = true,
            }
            self.unfit.found += 1;
        }
        match tuples.len() == 1 && self.went_through() && self.unfit.found <= FOUND_AT_MOST {
            true => self.unfit.in_a_row = 0,
            false => self.unfit.in_a_row += 1,
        }
        let which: Vec<_> = tuples.iter().filter_map(|at| expired_batch.tuples.get(*at)).collect();
        let told = (tuples.len(), format!("{}: {words}", named(&which)));
        let said = self.unfit.said.entry(key).or_insert_with(|| told.clone());
        if told.0 < said.0 {
            *said = told;
        }
        match tuples.len() > 1 {
            true => queue.halve_later(tuples, task.halvings),
            false if self.unfit.is_full => queue.leave(task),
            false => {}
        }
    }

    /// Whether too many failed so in a row. Where others went through before, that is said: what was
    /// not tried to its end is tried by the next pass.
    pub(super) fn gives_up_unfit(&mut self) -> bool {
        let is_full = self.unfit.is_full && self.went_through();
        if self.unfit.in_a_row < GIVE_UP_AFTER && !is_full {
            return false;
        }
        if self.went_through() {
            let said = std::mem::take(&mut self.unfit.said);
            self.errors.push(match is_full {
                true => format!("more than {MOST_POISONED} partitions of the table are refused"),
                false => format!("{GIVE_UP_AFTER} commits failed in a row for what they hold"),
            });
            self.errors.extend(Unfit { said, ..Unfit::default() }.of_table());
        }
        true
    }
}
