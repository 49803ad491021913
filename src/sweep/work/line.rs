//! In which order the commits of a round are made. Pure.

use std::collections::VecDeque;
use std::time::Instant;

use crate::sweep::batch::Batch;

/// Files that were found before a commit was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The id counter as it was read before; 0 where nobody has looked.
    pub below: i64,
    /// (file id, position among the tuples of the commit), ascending.
    pub files: Vec<(i64, i32)>,
}

impl Found {
    /// Cut into pieces of at most so many files, oldest first; one at least.
    pub fn pieces(self, files: i64) -> VecDeque<Found> {
        let size = usize::try_from(files).unwrap_or(1).max(1);
        if self.files.len() <= size {
            return VecDeque::from([self]);
        }
        let piece = |files: &[(i64, i32)]| Found { below: self.below, files: files.to_vec() };
        self.files.chunks(size).map(piece).collect()
    }
}

/// What is to be done in one go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// Whole tuples, in one commit.
    Whole(Vec<usize>),
    /// One tuple in several commits.
    Split {
        /// Which.
        tuple: usize,
        /// The pieces that are still to go; `None` before its files were looked for.
        left: Option<VecDeque<Found>>,
    },
    /// A tuple that is left alone for its size.
    Oversize(usize),
}

/// A job with its past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// What is to be done.
    pub job: Job,
    /// How often it was cancelled for its length.
    pub cancelled: u32,
    /// When it may be tried again.
    pub not_before: Option<Instant>,
}

/// The tasks of a round that are still to be done.
#[derive(Debug, Clone)]
pub struct Line {
    tasks: VecDeque<Task>,
}

impl Line {
    /// The batches in their order.
    pub fn new(batches: Vec<Batch>) -> Self {
        let job = |batch| match batch {
            Batch::Whole(tuples) => Job::Whole(tuples),
            Batch::Split(tuple) => Job::Split { tuple, left: None },
            Batch::Oversize(tuple) => Job::Oversize(tuple),
        };
        let task = |batch| Task { job: job(batch), cancelled: 0, not_before: None };
        Line { tasks: batches.into_iter().map(task).collect() }
    }

    /// Takes the next task: those that were never put off in their order, then whichever is
    /// due first.
    pub fn next(&mut self) -> Option<Task> {
        let (at, _) = self.tasks.iter().enumerate().min_by_key(|(_, task)| task.not_before)?;
        self.tasks.remove(at)
    }

    /// Puts a task off that was taken.
    pub fn put_at_the_end(&mut self, task: Task) {
        self.tasks.push_back(task);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_was_put_off_comes_after_the_rest_and_in_the_order_in_which_it_is_due() {
        let now = Instant::now();
        let mut line = Line::new((0..4).map(|tuple| Batch::Whole(vec![tuple])).collect());
        let mut order = Vec::new();
        // The first is cancelled with a long pause, the second with a short one.
        let mut pauses = [20, 5].into_iter();
        while let Some(task) = line.next() {
            let Job::Whole(tuples) = &task.job else { panic!("{task:?}") };
            order.push((tuples[0], task.cancelled));
            if let Some(pause) = pauses.next() {
                let not_before = Some(now + Duration::from_secs(pause));
                line.put_at_the_end(Task { cancelled: 1, not_before, ..task });
            }
        }
        assert_eq!(order, [(0, 0), (1, 0), (2, 0), (3, 0), (1, 1), (0, 1)]);
    }

    #[test]
    fn pieces_are_cut_oldest_first_and_lose_nothing() {
        let found =
            |ids: std::ops::Range<i64>| Found { below: 9, files: ids.map(|id| (id, 0)).collect() };
        assert_eq!(found(0..7).pieces(3), [found(0..3), found(3..6), found(6..7)]);
        assert_eq!(found(0..6).pieces(3), [found(0..3), found(3..6)]);
        assert_eq!(found(0..0).pieces(3), [found(0..0)]);
    }
}
