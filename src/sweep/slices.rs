//! Who may work for how long, where many share the time of a pass. Pure.
//!
//! Everybody has a turn in a first round, with a fair share of the time that is left; whoever is
//! not through by then waits for the next round, in which what the others left over is shared.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::time::Duration;

/// Those who wait for their turn.
#[derive(Debug, Clone)]
pub struct Slices<T> {
    this_round: VecDeque<T>,
    next_round: VecDeque<T>,
}

impl<T> Slices<T> {
    /// A first round, in this order.
    pub fn new(all: impl IntoIterator<Item = T>) -> Self {
        Slices { this_round: all.into_iter().collect(), next_round: VecDeque::new() }
    }

    /// Who is next, with the part of `left` that the turn may take where `at_once` work side by
    /// side.
    pub fn next(&mut self, left: Duration, at_once: usize) -> Option<(T, Duration)> {
        if self.this_round.is_empty() {
            std::mem::swap(&mut self.this_round, &mut self.next_round);
        }
        let waiting = self.this_round.len();
        let turn = self.this_round.pop_front()?;
        let share = match waiting <= at_once {
            true => left,
            false => left.mul_f64(at_once as f64 / waiting as f64),
        };
        Some((turn, share))
    }

    /// Puts somebody who was not through into the next round.
    pub fn again(&mut self, turn: T) {
        self.next_round.push_back(turn);
    }

    /// Everybody who still waits.
    pub fn left(self) -> impl Iterator<Item = T> {
        self.this_round.into_iter().chain(self.next_round)
    }
}

/// What a table waits for, in the reverse of the order in which it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// A reading of it, or whatever else.
    Rest,
    /// Files that came late.
    Late,
    /// What has been due for so many nanoseconds.
    Due(i128),
}

/// Puts what is due first, the most overdue before all; those that are equal stay in their order.
pub fn most_overdue_first<T>(tables: &mut [T], stage: impl Fn(&T) -> Stage) {
    tables.sort_by_key(|table| Reverse(stage(table)));
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn the_most_overdue_come_first_and_ties_stay() {
        let mut tables = [
            ("a", Stage::Due(5)),
            ("b", Stage::Rest),
            ("c", Stage::Late),
            ("d", Stage::Due(7)),
            ("e", Stage::Rest),
            ("f", Stage::Due(7)),
        ];
        most_overdue_first(&mut tables, |table| table.1);
        assert_eq!(tables.map(|table| table.0), ["d", "f", "a", "c", "b", "e"]);
    }

    /// Works through turns: each wants so many seconds. What each got, turn by turn.
    fn seconds(wanted: &[u64], mut left: u64) -> Vec<(usize, u64)> {
        let mut slices = Slices::new(wanted.iter().copied().enumerate());
        let mut got = Vec::new();
        while left > 0
            && let Some(((who, want), share)) = slices.next(Duration::from_secs(left), 1)
        {
            let took = want.min(share.as_secs());
            got.push((who, took));
            left -= took;
            if want > took {
                slices.again((who, want - took));
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
        let mut slices = Slices::new(0..6);
        let mut shares = Vec::new();
        while let Some((_, share)) = slices.next(12 * MINUTE, 4) {
            shares.push(share.as_secs() / 60);
        }
        assert_eq!(shares, [8, 9, 12, 12, 12, 12]);
    }

    #[test]
    fn who_is_left_is_known() {
        let mut slices = Slices::new(["a", "b", "c"]);
        let first = slices.next(MINUTE, 1).map(|(turn, _)| turn);
        assert_eq!(first, Some("a"));
        slices.again("a");
        assert_eq!(slices.left().collect::<Vec<_>>(), ["b", "c", "a"]);
    }
}
