//! The order in which the commits of an `ExpiredBatch` are made. Pure.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::time::Instant;

use crate::rules::batches::Batch;
use crate::sweep::waiting::parts::{PartOf, PartState};

/// Files of a commit: (file id, position among its tuples), ascending.
pub type Files = Vec<(i64, i32)>;

/// The files of a tuple in pieces of at most so many, oldest first; one at least.
pub fn pieces(files: Files, at_most: i64) -> VecDeque<Files> {
    let size = usize::try_from(at_most).unwrap_or(1).max(1);
    if files.len() <= size {
        return VecDeque::from([files]);
    }
    files.chunks(size).map(<[_]>::to_vec).collect()
}

/// When a task's turn comes; the earlier first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// It was never tried.
    Fresh,
    /// It is a half of what failed for its content.
    Half,
    /// A tuple that failed alone in an earlier time slice or pass, while no commit of its table went through.
    Again,
    /// A tuple that is known to fail.
    Alone,
    /// It was cancelled for its length, and waits until then.
    Due(Instant),
}

/// What is to be done in one go, with its past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Which tuples, and how.
    pub batch: Batch,
    /// Of a split tuple: the pieces that are still to go; `None` before the first one.
    pub pieces: Option<VecDeque<Files>>,
    pub turn: Turn,
    /// How often it was cancelled for its length.
    pub cancelled: u32,
    /// How often what it was part of was halved.
    pub halvings: u32,
}

impl Task {
    /// What is to be remembered of it where it was not done.
    fn into_part(self) -> Option<PartOf<usize>> {
        let state = match self.turn {
            Turn::Again => PartState::Alone,
            _ if self.turn == Turn::Half || self.halvings > 0 => PartState::Untried,
            _ => return None,
        };
        Some(PartOf { tuples: self.batch.tuples(), halvings: self.halvings, state })
    }
}

/// The tasks of an `ExpiredBatch` that are still to be done.
#[derive(Debug, Clone, Default)]
pub struct CommitQueue {
    tasks: VecDeque<Task>,
    /// Commits of several tuples that failed for their content, with their halvings.
    to_halve: Vec<(u32, Vec<usize>)>,
    /// Tasks that are not done in this pass.
    left: Vec<Task>,
}

impl CommitQueue {
    /// Puts a batch to the end of the queue, after so many halvings.
    pub fn add(&mut self, batch: Batch, turn: Turn, halvings: u32) {
        self.tasks.push_back(Task { batch, pieces: None, turn, cancelled: 0, halvings });
    }

    /// Takes the next task. All that nobody has tried goes before anything is halved. Of two halves
    /// the older is tried, then the newer, and then what failed of them is halved further before
    /// anything else is: so a commit that goes through, or a tuple that does not, is met early.
    pub fn next(&mut self) -> Option<Task> {
        let first = self.tasks.iter().enumerate().min_by_key(|(_, task)| task.turn);
        let first = first.map(|(at, task)| (at, task.turn));
        if first.is_none_or(|(_, turn)| turn > Turn::Half)
            && let Some(older) = self.halve()
        {
            return Some(older);
        }
        self.tasks.remove(first?.0)
    }

    /// Cuts the oldest of the smallest parts of what failed: its older half, while the newer one is
    /// next in the queue.
    fn halve(&mut self) -> Option<Task> {
        let parts = self.to_halve.iter().enumerate();
        let (at, _) =
            parts.min_by_key(|(_, (halvings, tuples))| (Reverse(*halvings), tuples.first()))?;
        let (halvings, mut older) = self.to_halve.remove(at);
        let newer = older.split_off(older.len() / 2);
        let half = |tuples| Task {
            batch: Batch::Whole(tuples),
            pieces: None,
            turn: Turn::Half,
            cancelled: 0,
            halvings: halvings + 1,
        };
        self.tasks.push_back(half(newer));
        Some(half(older))
    }

    /// Puts a task off that was taken.
    pub fn put_at_the_end(&mut self, task: Task) {
        self.tasks.push_back(task);
    }

    /// Puts a task back that was taken and not begun.
    pub fn put_back(&mut self, task: Task) {
        self.tasks.push_front(task);
    }

    /// Leaves a task for the next pass.
    pub fn leave(&mut self, task: Task) {
        self.left.push(task);
    }

    /// What was refused and not halved to the end, without what failed alone.
    pub fn into_parts(self) -> Vec<PartOf<usize>> {
        let state = PartState::Together;
        let together = self.to_halve.into_iter();
        let together = together.map(|(halvings, tuples)| PartOf { tuples, halvings, state });
        let tasks = self.tasks.into_iter().chain(self.left);
        together.chain(tasks.filter_map(Task::into_part)).collect()
    }

    /// Has tuples halved that failed together for their content, after so many halvings.
    pub fn halve_later(&mut self, tuples: Vec<usize>, halvings: u32) {
        self.to_halve.push((halvings, tuples));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_was_put_off_comes_after_the_rest_in_the_order_it_is_due() {
        let now = Instant::now();
        let mut queue = CommitQueue::default();
        (0..4).for_each(|tuple| queue.add(Batch::Whole(vec![tuple]), Turn::Fresh, 0));
        let mut order = Vec::new();
        // The first is cancelled with a long pause, the second with a short one.
        let mut pauses = [20, 5].into_iter();
        while let Some(task) = queue.next() {
            let Batch::Whole(tuples) = &task.batch else { panic!("{task:?}") };
            order.push((tuples[0], task.cancelled));
            if let Some(pause) = pauses.next() {
                let turn = Turn::Due(now + Duration::from_secs(pause));
                queue.put_at_the_end(Task { cancelled: 1, turn, ..task });
            }
        }
        assert_eq!(order, [(0, 0), (1, 0), (2, 0), (3, 0), (1, 1), (0, 1)]);
    }

    /// The commits that are tried of batches of so many tuples, as (first tuple, last tuple), where
    /// those with a tuple of `poison` fail.
    fn tried(sizes: &[usize], poison: &[usize]) -> Vec<(usize, usize)> {
        let mut tuples = 0..;
        let mut queue = CommitQueue::default();
        for size in sizes {
            queue.add(Batch::Whole(tuples.by_ref().take(*size).collect()), Turn::Fresh, 0);
        }
        queue.add(Batch::Whole(vec![99]), Turn::Alone, 0);
        let mut tried = Vec::new();
        while let Some(task) = queue.next() {
            let Batch::Whole(tuples) = task.batch else { panic!("{task:?}") };
            tried.push((tuples[0], tuples[tuples.len() - 1]));
            if tuples.len() > 1 && tuples.iter().any(|tuple| poison.contains(tuple)) {
                queue.halve_later(tuples, task.halvings);
            }
        }
        assert_eq!(tried.pop(), Some((99, 99)), "what is known to fail comes last");
        tried
    }

    #[test]
    fn what_fails_is_halved_after_all_that_nobody_has_tried() {
        assert_eq!(tried(&[2, 2], &[]), [(0, 1), (2, 3)]);
        assert_eq!(tried(&[2, 2, 2], &[0]), [(0, 1), (2, 3), (4, 5), (0, 0), (1, 1)]);
        let two_batches = [(0, 2), (3, 5), (0, 0), (1, 2), (3, 3), (4, 5), (4, 4), (5, 5)];
        assert_eq!(tried(&[3, 3], &[0, 4]), two_batches);
    }

    #[test]
    fn of_two_halves_the_older_is_tried_first_and_failures_last() {
        let both_ends = [
            (0, 7),
            (0, 3),
            (4, 7),
            (0, 1),
            (2, 3),
            (0, 0),
            (1, 1),
            (4, 5),
            (6, 7),
            (6, 6),
            (7, 7),
        ];
        assert_eq!(tried(&[8], &[0, 7]), both_ends);
        let everything = tried(&[8], &[0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(everything.len(), 15);
        assert_eq!(everything[..7], [(0, 7), (0, 3), (4, 7), (0, 1), (2, 3), (0, 0), (1, 1)]);
    }

    /// Six passes with time for one commit each, at two tuples of four that are refused; what was left is
    /// what the next one begins with.
    #[test]
    fn what_was_left_is_gone_on_with() {
        use PartState::{Alone, Together, Untried};
        let part =
            |tuples: &[usize], halvings, state| PartOf { tuples: tuples.to_vec(), halvings, state };
        let mut parts = vec![part(&[0, 1, 2, 3], 0, Together)];
        let mut tried = Vec::new();
        for _ in 0..6 {
            let mut queue = CommitQueue::default();
            for PartOf { tuples, halvings, state } in parts {
                match state {
                    Together => queue.halve_later(tuples, halvings),
                    Untried => queue.add(Batch::Whole(tuples), Turn::Half, halvings),
                    Alone => queue.add(Batch::Whole(tuples), Turn::Again, halvings),
                }
            }
            let task = queue.next().expect("something is left");
            let Batch::Whole(tuples) = task.batch else { panic!("{task:?}") };
            let mut failed = None;
            match tuples[..] {
                [0 | 2] => failed = Some(part(&tuples, task.halvings, Alone)),
                _ if tuples.contains(&0) || tuples.contains(&2) => {
                    queue.halve_later(tuples.clone(), task.halvings);
                }
                _ => {}
            }
            tried.push(tuples);
            parts = queue.into_parts().into_iter().chain(failed).collect();
        }
        let expected = [vec![0, 1], vec![2, 3], vec![0], vec![1], vec![2], vec![3]];
        assert_eq!(tried, expected);
        assert_eq!(parts, [part(&[0], 2, Alone), part(&[2], 2, Alone)]);
    }

    #[test]
    fn what_is_put_back_or_left_is_remembered_if_it_is_a_half() {
        let mut queue = CommitQueue::default();
        queue.add(Batch::Whole(vec![0, 1]), Turn::Half, 1);
        queue.add(Batch::Whole(vec![2]), Turn::Again, 3);
        queue.add(Batch::Whole(vec![3]), Turn::Fresh, 0);
        queue.add(Batch::Whole(vec![4]), Turn::Alone, 0);
        let fresh = queue.next().expect("the fresh one");
        queue.leave(fresh);
        let half = queue.next().expect("the half");
        queue.put_back(half);
        let part =
            |tuples: &[usize], halvings, state| PartOf { tuples: tuples.to_vec(), halvings, state };
        let parts = [part(&[0, 1], 1, PartState::Untried), part(&[2], 3, PartState::Alone)];
        assert_eq!(queue.into_parts(), parts);
    }

    #[test]
    fn pieces_are_cut_oldest_first_and_lose_nothing() {
        let files = |ids: std::ops::Range<i64>| ids.map(|id| (id, 0)).collect::<Files>();
        assert_eq!(pieces(files(0..7), 3), [files(0..3), files(3..6), files(6..7)]);
        assert_eq!(pieces(files(0..6), 3), [files(0..3), files(3..6)]);
        assert_eq!(pieces(files(0..0), 3), [files(0..0)]);
    }
}
