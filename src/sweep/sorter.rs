//! Files in, expired tuples and a census out. No IO.

use std::collections::{HashMap, HashSet};

use super::census::Census;
use super::plan::ExpiredTuple;
use crate::catalog::discovery::{Counts, TupleOfSpec};
use crate::catalog::live_file::LiveFile;
use crate::window::{Judge, Verdict};

/// Sorts live files into what goes and what stays.
#[derive(Debug)]
pub struct Sorter<'a> {
    judge: &'a Judge,
    expired: HashMap<TupleOfSpec, ExpiredTuple>,
    /// The expired files at hand.
    files: usize,
    /// Their ids, where ids are kept: a file may be met twice, by two of its values.
    seen: Option<HashSet<i64>>,
    /// What stays.
    pub census: Census,
    /// False once a file of another format was met.
    pub is_parquet: bool,
}

impl<'a> Sorter<'a> {
    /// A sorter that keeps the ids of expired files, for a commit.
    pub fn with_ids(judge: &'a Judge) -> Self {
        Sorter { seen: Some(HashSet::new()), ..Self::without_ids(judge) }
    }

    /// A sorter that only counts; each file must be given once.
    pub fn without_ids(judge: &'a Judge) -> Self {
        Sorter {
            judge,
            expired: HashMap::new(),
            files: 0,
            seen: None,
            census: Census::default(),
            is_parquet: true,
        }
    }

    /// How many expired files are at hand.
    pub fn files(&self) -> usize {
        self.files
    }

    /// How many expired tuples are at hand.
    pub fn tuples(&self) -> usize {
        self.expired.len()
    }

    /// Judges a file by its own spec and values.
    pub fn add(&mut self, file: LiveFile) {
        self.is_parquet &= file.is_parquet;
        let lead = file
            .spec_id
            .and_then(|spec_id| Some((spec_id, self.judge.spec(spec_id)?.lead_position()?)));
        match (self.judge.judge(file.spec_id, &file.tuple), lead) {
            (Verdict::Expired { range_end }, Some((spec_id, lead))) => {
                if self.seen.as_mut().is_some_and(|seen| !seen.insert(file.data_file_id)) {
                    return;
                }
                self.files += 1;
                let counts = file.counts();
                let tuple = TupleOfSpec { spec_id, tuple: file.tuple };
                let judge = self.judge;
                let expired = self.expired.entry(tuple).or_insert_with_key(|tuple| ExpiredTuple {
                    display: judge.display(Some(spec_id), &tuple.tuple),
                    tuple: tuple.clone(),
                    lead,
                    range_end,
                    counts: Counts::default(),
                    ids: Vec::new(),
                });
                expired.counts += counts;
                if self.seen.is_some() {
                    expired.ids.push(file.data_file_id);
                }
            }
            // Only a spec with a time field says expired, so there is always a lead then.
            (Verdict::Expired { .. }, None) => {}
            (Verdict::Kept { reason, leaves_at }, _) => {
                let judge = self.judge;
                let spec_id = file.spec_id;
                self.census.keep(reason, leaves_at, spec_id, file.tuple, |tuple| {
                    judge.display(spec_id, tuple)
                });
            }
        }
    }

    /// The expired tuples at hand, oldest first, each with its ids ascending; none is at hand then.
    pub fn take(&mut self) -> Vec<ExpiredTuple> {
        self.files = 0;
        self.seen.iter_mut().for_each(HashSet::clear);
        let mut expired: Vec<_> = std::mem::take(&mut self.expired).into_values().collect();
        expired.iter_mut().for_each(|tuple| tuple.ids.sort_unstable());
        expired.sort_by(|a, b| {
            let order = |tuple: &'_ ExpiredTuple| (tuple.range_end, tuple.tuple.spec_id);
            order(a).cmp(&order(b)).then_with(|| a.tuple.tuple.cmp(&b.tuple.tuple))
        });
        expired
    }
}
