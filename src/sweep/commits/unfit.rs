//! Commits that the server refuses for what they hold: a trigger raises, a row breaks a constraint or a
//! number is out of range.
//!
//! Such a commit fails again as it is. It is halved until the tuple is alone that cannot go, after all
//! that nobody has tried, so that no other tuple waits for it. Whose fault it is can be told only where
//! other commits of the table go through: then it is that of each tuple that failed alone; else it is
//! the table's, and says nothing of any tuple.

use std::collections::BTreeMap;

use super::Work;
use super::attempt::named;
use super::line::{Line, Task};
use crate::sweep::round::{Round, Stays};
use crate::sweep::waiting::MOST_POISONED;

/// So many commits that fail for their content, one after another with none that goes through, and
/// no further one is tried: each has taken the commit lock for nothing.
const GIVE_UP_AFTER: usize = 16;

/// Where others go through, a tuple that is found at last is not counted among these: its kind is
/// bounded by time. But for so many tuples, or a table of nothing else would be worked on for ever.
const FOUND_AT_MOST: usize = 100;

/// So many different words of the server are told of a table.
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
    /// Has the work of the next round give up where more tuples than these turn out to be at fault.
    pub fn may_find(&mut self, room: usize) {
        self.unfit.room = room;
    }

    /// Takes note of a commit that failed for its content: `key` is what the server said, `words` the
    /// same with what it said of the row.
    pub(super) fn unfit(
        &mut self,
        round: &Round,
        task: Task,
        key: String,
        words: String,
        line: &mut Line,
    ) {
        let tuples = task.batch.clone().tuples();
        if let [alone] = tuples.as_slice() {
            // What is known to fail tells nothing of the table.
            let is_known = *alone >= round.alone_from;
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
        let which: Vec<_> = tuples.iter().filter_map(|at| round.tuples.get(*at)).collect();
        let told = (tuples.len(), format!("{}: {words}", named(&which)));
        let said = self.unfit.said.entry(key).or_insert_with(|| told.clone());
        if told.0 < said.0 {
            *said = told;
        }
        match tuples.len() > 1 {
            true => line.halve_later(tuples, task.halvings),
            false if self.unfit.is_full => line.leave(task),
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
