//! How long each table or catalog may work in a pass, and in which order. Pure.
//!
//! In a first round each has a time slice with a fair share of the time that is left. Those that have not
//! finished wait for the next round, which shares the time that the others left. Within a round, what is due
//! comes first, then late files, then all the rest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// What is done of a table: in a round the first of these of all tables, then the second of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// What has fallen due.
    Due,
    /// Files that came late.
    Late,
    /// A full pass, a full scan, and whatever else.
    Rest,
}

/// Which steps a table has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Steps {
    /// Something is due, for so many nanoseconds.
    pub due: Option<i128>,
    pub late: bool,
    /// It has work for another reason.
    pub rest: bool,
}

impl Steps {
    /// Those of a table of which nobody asked.
    pub const REST: Steps = Steps { due: None, late: false, rest: true };

    /// The first of them.
    pub fn first(&self) -> Step {
        match self.due {
            Some(_) => Step::Due,
            None => self.after(Step::Due).unwrap_or(Step::Rest),
        }
    }

    /// The first of them that comes after one.
    pub fn after(&self, step: Step) -> Option<Step> {
        let all = [(self.late, Step::Late), (self.rest, Step::Rest)];
        all.into_iter().find_map(|(is_there, other)| (is_there && other > step).then_some(other))
    }
}

/// How far a time slice of a table came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Came {
    /// The last step of which all was tried, in this time slice or an earlier one of the pass.
    pub through: Option<Step>,
    /// Whether it came to the last step.
    pub is_at_rest: bool,
    /// Whether a full pass is owed, or a full scan to be gone on with.
    pub owes_rest: bool,
}

impl Came {
    /// The step that another time slice begins with, for a table that had one from this step on.
    pub fn next(&self, step: Step) -> Step {
        let next = match self.through {
            None => Step::Due,
            Some(Step::Due) => Step::Late,
            Some(Step::Late | Step::Rest) => Step::Rest,
        };
        next.max(step)
    }
}

/// Those who wait for a time slice.
#[derive(Debug, Clone)]
pub struct FairQueue<T> {
    this_round: BTreeMap<Step, VecDeque<T>>,
    next_round: BTreeMap<Step, VecDeque<T>>,
}

/// A time slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeSlice<T> {
    pub whose: T,
    /// The step that it begins with.
    pub step: Step,
    /// How long it may take.
    pub share: Duration,
}

impl<T> FairQueue<T> {
    /// A first round, each step in this order.
    pub fn new(all: impl IntoIterator<Item = (Step, T)>) -> Self {
        let mut queue = FairQueue { this_round: BTreeMap::new(), next_round: BTreeMap::new() };
        all.into_iter().for_each(|(step, whose)| queue.go_on(step, whose));
        queue
    }

    /// The earliest step that somebody waits with in this round.
    pub fn first_step(&self) -> Option<Step> {
        self.this_round.keys().next().copied()
    }

    /// Begins the next round, where nobody is left of this one. Whether somebody waits.
    pub fn has_more(&mut self) -> bool {
        if self.this_round.is_empty() {
            std::mem::swap(&mut self.this_round, &mut self.next_round);
        }
        !self.this_round.is_empty()
    }

    /// Who is next, with the part of `left` that the time slice may take where `at_once` work side by
    /// side.
    pub fn next(&mut self, left: Duration, at_once: usize) -> Option<TimeSlice<T>> {
        self.has_more();
        let waiting: usize = self.this_round.values().map(VecDeque::len).sum();
        let mut first = self.this_round.first_entry()?;
        let step = *first.key();
        let whose = first.get_mut().pop_front();
        if first.get().is_empty() {
            first.remove();
        }
        let share = match waiting <= at_once {
            true => left,
            false => left.mul_f64(at_once as f64 / waiting as f64),
        };
        Some(TimeSlice { whose: whose?, step, share })
    }

    /// Has somebody who is through with the step before go on with this one, in the same round.
    pub fn go_on(&mut self, step: Step, whose: T) {
        self.this_round.entry(step).or_default().push_back(whose);
    }

    /// Puts somebody who was not through with a step into the next round.
    pub fn again(&mut self, step: Step, whose: T) {
        self.next_round.entry(step).or_default().push_back(whose);
    }

    /// Takes out all who wait with a step in this round.
    pub fn take(&mut self, step: Step) -> impl Iterator<Item = T> {
        self.this_round.remove(&step).into_iter().flatten()
    }

    /// Everybody who still waits.
    pub fn left(self) -> impl Iterator<Item = T> {
        self.this_round.into_values().chain(self.next_round.into_values()).flatten()
    }
}

/// Puts the most overdue before all others; those that are equal stay in their order.
pub fn most_overdue_first<T>(tables: &mut [T], steps: impl Fn(&T) -> Steps) {
    tables.sort_by_key(|table| Reverse(steps(table).due));
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn the_most_overdue_come_first_and_ties_stay() {
        let due = |by| Steps { due: Some(by), ..Steps::default() };
        let mut tables = [("a", due(5)), ("b", Steps::REST), ("c", due(7)), ("d", due(7))];
        most_overdue_first(&mut tables, |table| table.1);
        assert_eq!(tables.map(|table| table.0), ["c", "d", "a", "b"]);
    }

    #[test]
    fn a_time_slice_goes_on_after_what_was_tried() {
        let next = |through, step| Came { through, ..Came::default() }.next(step);
        assert_eq!(next(None, Step::Due), Step::Due);
        assert_eq!(next(None, Step::Rest), Step::Rest);
        assert_eq!(next(Some(Step::Due), Step::Due), Step::Late);
        assert_eq!(next(Some(Step::Late), Step::Due), Step::Rest);
    }

    #[test]
    fn the_steps_of_a_table_follow_one_another() {
        let all = Steps { due: Some(0), late: true, rest: true };
        assert_eq!(all.first(), Step::Due);
        assert_eq!(all.after(Step::Due), Some(Step::Late));
        assert_eq!(all.after(Step::Late), Some(Step::Rest));
        assert_eq!(all.after(Step::Rest), None);
        let late = Steps { late: true, ..Steps::default() };
        assert_eq!((late.first(), late.after(Step::Late)), (Step::Late, None));
        assert_eq!(Steps { due: Some(0), ..Steps::REST }.after(Step::Due), Some(Step::Rest));
        assert_eq!(Steps::REST.first(), Step::Rest);
    }

    /// What is due of all comes before what is late of any, and that before the rest, also where somebody comes
    /// to a step later than others; what is due of the next round comes after all of this one.
    #[test]
    fn a_step_of_all_comes_before_the_next_one_of_any() {
        let mut queue = FairQueue::new([
            (Step::Rest, "a"),
            (Step::Due, "b"),
            (Step::Late, "c"),
            (Step::Due, "d"),
        ]);
        let mut order = Vec::new();
        while let Some(TimeSlice { whose, step, .. }) = queue.next(MINUTE, 1) {
            order.push((step, whose));
            match (step, whose) {
                (Step::Due, "b") if order.len() == 1 => queue.again(Step::Due, "b"),
                (Step::Due, "b") => queue.go_on(Step::Late, "b"),
                (Step::Due, "d") => queue.go_on(Step::Late, "d"),
                _ => {}
            }
        }
        let first_round = [
            (Step::Due, "b"),
            (Step::Due, "d"),
            (Step::Late, "c"),
            (Step::Late, "d"),
            (Step::Rest, "a"),
        ];
        assert_eq!(order[..5], first_round);
        assert_eq!(order[5..], [(Step::Due, "b"), (Step::Late, "b")]);
    }

    /// Works through time slices: each wants so many seconds. What each got, slice by slice.
    fn seconds(wanted: &[u64], mut left: u64) -> Vec<(usize, u64)> {
        let all = wanted.iter().copied().enumerate().map(|wants| (Step::Rest, wants));
        let mut queue = FairQueue::new(all);
        let mut got = Vec::new();
        while left > 0
            && let Some(slice) = queue.next(Duration::from_secs(left), 1)
        {
            let (who, want) = slice.whose;
            let took = want.min(slice.share.as_secs());
            got.push((who, took));
            left -= took;
            if want > took {
                queue.again(Step::Rest, (who, want - took));
            }
        }
        got
    }

    #[test]
    fn a_backlog_does_not_keep_the_others_from_their_share() {
        // The one that wants the most goes first, and goes on when the others are through.
        assert_eq!(seconds(&[999, 10, 10], 90), [(0, 30), (1, 10), (2, 10), (0, 40)]);
        // Two of them share what the small ones left over.
        assert_eq!(
            seconds(&[999, 10, 999, 10], 120),
            [(0, 30), (1, 10), (2, 40), (3, 10), (0, 15), (2, 15)]
        );
        // Nobody is left out, however many want everything.
        assert_eq!(seconds(&[999, 999, 999], 90), [(0, 30), (1, 30), (2, 30)]);
        assert_eq!(seconds(&[20, 999], 100), [(0, 20), (1, 80)]);
        assert_eq!(seconds(&[], 10), []);
    }

    #[test]
    fn side_by_side_the_shares_are_larger() {
        let mut queue = FairQueue::new((0..6).map(|number| (Step::Rest, number)));
        let mut shares = Vec::new();
        while let Some(slice) = queue.next(12 * MINUTE, 4) {
            shares.push(slice.share.as_secs() / 60);
        }
        assert_eq!(shares, [8, 9, 12, 12, 12, 12]);
    }

    #[test]
    fn who_is_left_is_known() {
        let mut queue = FairQueue::new([(Step::Rest, "b"), (Step::Due, "a"), (Step::Rest, "c")]);
        let first = queue.next(MINUTE, 1).map(|slice| slice.whose);
        assert_eq!(first, Some("a"));
        queue.again(Step::Due, "a");
        assert!(queue.has_more());
        assert_eq!(queue.first_step(), Some(Step::Rest));
        assert_eq!(queue.clone().take(Step::Rest).collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(queue.left().collect::<Vec<_>>(), ["b", "c", "a"]);
    }
}
