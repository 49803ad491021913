//! Sorts files into expired tuples and counts of what is kept. No IO.

use std::collections::{HashMap, HashSet};

use super::expired::ExpiredTuple;
use crate::catalog::live_file::Counts;
use crate::catalog::live_file::LiveFile;
use crate::catalog::tuples::TupleOfSpec;
use crate::rules::expiry::{Judge, KeptReason, Verdict};
use crate::rules::instant::UtcInstant;
use crate::rules::instant::earlier;
use crate::rules::kept::KeptCounts;

/// Sorts live files into expired and kept.
#[derive(Debug)]
pub struct Sorter<'a> {
    judge: &'a Judge,
    expired: HashMap<TupleOfSpec, ExpiredTuple>,
    /// The expired files at hand.
    files: usize,
    /// Their ids, where a file may be met twice, by two of its values.
    seen: Option<HashSet<i64>>,
    /// Whether the tuples at hand have all of their files, as far as they were there when they were
    /// looked up; else whoever checks them looks for the others.
    pub is_whole: bool,
    /// What stays.
    pub kept_counts: KeptCounts,
    /// Of each spec and lookup value with files that stay by their values: when the first of them expires;
    /// `None` where none ever does. Only where somebody wants to know.
    pub young: Option<HashMap<(i64, String), Option<UtcInstant>>>,
    /// False once a file of another format was met.
    pub is_parquet: bool,
}

impl<'a> Sorter<'a> {
    /// A sorter for commits: a file may be given to it twice.
    pub fn for_commits(judge: &'a Judge) -> Self {
        Sorter { seen: Some(HashSet::new()), ..Self::once(judge) }
    }

    /// A sorter for commits that notes which values have files that stay, too.
    pub fn for_a_look(judge: &'a Judge) -> Self {
        Sorter { young: Some(HashMap::new()), ..Self::for_commits(judge) }
    }

    /// A sorter to which each file is given once.
    pub fn once(judge: &'a Judge) -> Self {
        Sorter {
            judge,
            expired: HashMap::new(),
            files: 0,
            seen: None,
            is_whole: true,
            kept_counts: KeptCounts::default(),
            young: None,
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
        let lookup_key = file
            .spec_id
            .and_then(|spec_id| Some((spec_id, self.judge.spec(spec_id)?.lookup_key()?)));
        match (self.judge.judge(file.spec_id, &file.tuple), lookup_key) {
            (Verdict::Expired { range_end, doubt }, Some((spec_id, lookup_key))) => {
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
                    lookup_key,
                    range_end,
                    doubt,
                    counts: Counts::default(),
                    ids: Vec::new(),
                    newest: None,
                    is_approved: false,
                });
                expired.counts += counts;
                expired.ids.push(file.data_file_id);
            }
            // Only a spec with a time field says expired, so there is always a lookup key then.
            (Verdict::Expired { .. }, None) => {}
            (Verdict::Kept { reason, leaves_at }, lookup_key) => {
                let judge = self.judge;
                let spec_id = file.spec_id;
                if let (Some(young), Some((spec_id, lookup_key))) = (&mut self.young, lookup_key)
                    && let Some(Some(text)) = file.tuple.values.get(lookup_key)
                {
                    let first = young.entry((spec_id, text.clone())).or_default();
                    *first = earlier(*first, leaves_at);
                }
                self.kept_counts.keep(reason, leaves_at, spec_id, file.tuple, |tuple| {
                    let interpretations = match reason {
                        KeptReason::AmbiguousSpec => judge.interpretations(spec_id, tuple),
                        _ => Vec::new(),
                    };
                    (judge.display(spec_id, tuple), interpretations)
                });
            }
        }
    }

    /// The expired tuples at hand, in no order.
    pub fn expired(&self) -> impl Iterator<Item = &ExpiredTuple> {
        self.expired.values()
    }

    /// The expired tuples at hand, oldest first, each with its ids ascending; none is at hand then.
    pub fn take(&mut self) -> Vec<ExpiredTuple> {
        self.files = 0;
        self.seen.iter_mut().for_each(HashSet::clear);
        let mut expired: Vec<_> = std::mem::take(&mut self.expired).into_values().collect();
        expired.iter_mut().for_each(|tuple| tuple.ids.sort_unstable());
        in_order(&mut expired);
        expired
    }
}

/// Puts tuples in the order in which they go: the oldest first.
pub fn in_order(expired: &mut [ExpiredTuple]) {
    expired.sort_by(|a, b| {
        let order = |tuple: &'_ ExpiredTuple| (tuple.range_end, tuple.tuple.spec_id);
        order(a).cmp(&order(b)).then_with(|| a.tuple.tuple.cmp(&b.tuple.tuple))
    });
}
