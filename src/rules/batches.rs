//! How expired tuples are grouped into commits. Pure.
//!
//! A partition is dropped whole: a commit takes whole tuples, oldest first, and only a tuple that is too
//! large for a bounded lock hold is split.

/// What bounds a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// `sweep.max_files_per_commit`.
    pub files_per_commit: i64,
    /// `sweep.max_files_per_tuple`; not less than `files_per_commit`.
    pub files_per_tuple: i64,
    /// `sweep.oversize` is `split`; else such a tuple is skipped.
    pub split_oversize: bool,
}

/// One step of a table's work, by indexes into its tuples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Batch {
    /// Whole tuples, in one commit.
    Whole(Vec<usize>),
    /// One tuple beyond `files_per_tuple`, in commits of at most `files_per_commit` files,
    /// oldest files first.
    Split(usize),
    /// One tuple beyond `files_per_tuple` that is left alone.
    Oversize(usize),
}

impl Batch {
    /// Its tuples.
    pub fn tuples(self) -> Vec<usize> {
        match self {
            Batch::Whole(tuples) => tuples,
            Batch::Split(tuple) | Batch::Oversize(tuple) => vec![tuple],
        }
    }

    /// The same of tuples that were given by their places in `tuples`.
    pub fn of(self, tuples: &[usize]) -> Self {
        match self {
            Batch::Whole(places) => {
                Batch::Whole(places.into_iter().map(|place| tuples[place]).collect())
            }
            Batch::Split(place) => Batch::Split(tuples[place]),
            Batch::Oversize(place) => Batch::Oversize(tuples[place]),
        }
    }
}

/// Groups tuples, given by their numbers of files in the order in which they shall go.
pub fn group(files: &[i64], limits: &BatchLimits) -> Vec<Batch> {
    let mut batches = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut open_files = 0;
    for (tuple, &count) in files.iter().enumerate() {
        let fits = open_files + count <= limits.files_per_commit;
        if !fits && !open.is_empty() {
            batches.push(Batch::Whole(std::mem::take(&mut open)));
            open_files = 0;
        }
        if count <= limits.files_per_commit {
            open.push(tuple);
            open_files += count;
        } else if count <= limits.files_per_tuple {
            batches.push(Batch::Whole(vec![tuple]));
        } else if limits.split_oversize {
            batches.push(Batch::Split(tuple));
        } else {
            batches.push(Batch::Oversize(tuple));
        }
    }
    if !open.is_empty() {
        batches.push(Batch::Whole(open));
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;
    use Batch::{Oversize, Split, Whole};
    use proptest::prelude::*;

    #[test]
    fn whole_tuples_in_order() {
        let limits = |split_oversize| BatchLimits {
            files_per_commit: 10,
            files_per_tuple: 20,
            split_oversize,
        };
        for (files, expected) in [
            (vec![], vec![]),
            (vec![10], vec![Whole(vec![0])]),
            (vec![4, 6, 1], vec![Whole(vec![0, 1]), Whole(vec![2])]),
            (vec![5, 6, 4], vec![Whole(vec![0]), Whole(vec![1, 2])]),
            (vec![1, 11, 1], vec![Whole(vec![0]), Whole(vec![1]), Whole(vec![2])]),
            (vec![1, 20, 21, 1], vec![Whole(vec![0]), Whole(vec![1]), Split(2), Whole(vec![3])]),
        ] {
            assert_eq!(group(&files, &limits(true)), expected, "{files:?}");
        }
        assert_eq!(group(&[1, 21], &limits(false)), vec![Whole(vec![0]), Oversize(1)]);
    }

    #[test]
    fn a_batch_has_its_tuples_in_order() {
        assert_eq!(Whole(vec![2, 0]).tuples(), [2, 0]);
        assert_eq!((Split(3).tuples(), Oversize(4).tuples()), (vec![3], vec![4]));
        let tuples = [7, 8, 9];
        assert_eq!(Whole(vec![2, 0]).of(&tuples), Whole(vec![9, 7]));
        assert_eq!((Split(1).of(&tuples), Oversize(2).of(&tuples)), (Split(8), Oversize(9)));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_doubled_or_reordered(files in prop::collection::vec(0_i64..30, 0..60)) {
            let limits = BatchLimits { files_per_commit: 10, files_per_tuple: 20, split_oversize: true };
            let mut seen = Vec::new();
            for batch in group(&files, &limits) {
                match batch {
                    Whole(tuples) => {
                        let sum: i64 = tuples.iter().map(|tuple| files[*tuple]).sum();
                        prop_assert!(sum <= 10 || (tuples.len() == 1 && sum <= 20));
                        seen.extend(tuples);
                    }
                    Split(tuple) | Oversize(tuple) => {
                        prop_assert!(files[tuple] > 20);
                        seen.push(tuple);
                    }
                }
            }
            prop_assert_eq!(seen, (0..files.len()).collect::<Vec<_>>());
        }
    }
}
