//! What partitions a table has, judged as the plan judges them.

use std::collections::BTreeMap;

use anyhow::Result;
use tailrace::catalog::live_file::Counts;
use tailrace::catalog::session::Session;
use tailrace::catalog::specs::spec_book;
use tailrace::catalog::table_files::{PIECE, Place, next_piece};
use tailrace::rules::expiry::{Judge, KeptReason, Retention, SpecBook, StoredTuple, Verdict};
use tailrace::rules::instant::UtcInstant;

use super::picture::{Bar, Fate};

/// The files of one tuple.
#[derive(Debug)]
struct FoundTuple {
    spec_id: Option<i64>,
    tuple: StoredTuple,
    counts: Counts,
}

/// The live partitions of a table, in the order in which they are drawn.
#[derive(Debug)]
pub struct Partitions {
    book: SpecBook,
    judge: Judge,
    found: Vec<FoundTuple>,
}

impl Partitions {
    /// Reads them.
    pub async fn read(
        connection: &mut Session,
        (catalog_id, table_id): (i64, i64),
        retention: Retention,
    ) -> Result<Self> {
        let book = spec_book(connection, catalog_id, table_id).await?;
        let judge = Judge::new(&book, retention);
        let mut by_tuple: BTreeMap<(Option<i64>, StoredTuple), Counts> = BTreeMap::new();
        let mut after = Some(Place::START);
        while let Some(place) = after {
            let (files, next) = next_piece(connection, catalog_id, table_id, place, PIECE).await?;
            for file in files {
                let counts = file.counts();
                *by_tuple.entry((file.spec_id, file.tuple)).or_default() += counts;
            }
            after = next;
        }
        let mut found: Vec<_> = by_tuple
            .into_iter()
            .map(|((spec_id, tuple), counts)| FoundTuple { spec_id, tuple, counts })
            .collect();
        found.sort_by_cached_key(|tuple| match judge.judge(tuple.spec_id, &tuple.tuple) {
            Verdict::Expired { range_end, .. } => (0, Some(range_end), tuple.tuple.clone()),
            Verdict::Kept { reason: KeptReason::NotExpired, leaves_at } => {
                (1, leaves_at, tuple.tuple.clone())
            }
            Verdict::Kept { leaves_at, .. } => (2, leaves_at, tuple.tuple.clone()),
        });
        Ok(Self { book, judge, found })
    }

    /// What a pass at `now` would drop: files and vectors.
    pub fn expired(&self, now: UtcInstant) -> (i64, i64) {
        let judge = Judge::new(&self.book, Retention { now, ..self.judge.retention() });
        let expired = |found: &&FoundTuple| {
            matches!(judge.judge(found.spec_id, &found.tuple), Verdict::Expired { .. })
        };
        self.found.iter().filter(expired).fold((0, 0), |sum, found| {
            (sum.0 + found.counts.files, sum.1 + found.counts.delete_files)
        })
    }

    /// How many files there are.
    pub fn files(&self) -> i64 {
        self.found.iter().map(|found| found.counts.files).sum()
    }

    /// How many files are kept for a reason.
    pub fn kept(&self, wanted: KeptReason) -> i64 {
        let kept = |found: &&FoundTuple| {
            matches!(self.judge.judge(found.spec_id, &found.tuple),
                Verdict::Kept { reason, .. } if reason == wanted)
        };
        self.found.iter().filter(kept).map(|found| found.counts.files).sum()
    }

    /// The first one that is kept, as a person reads it.
    pub fn oldest(&self) -> String {
        self.found
            .first()
            .map(|found| self.judge.display(found.spec_id, &found.tuple))
            .unwrap_or_default()
    }

    /// A bar for each.
    pub fn bars(&self) -> Vec<Bar> {
        let bar = |found: &FoundTuple| {
            let (fate, note) = match self.judge.judge(found.spec_id, &found.tuple) {
                Verdict::Expired { .. } => (Fate::Expired, String::new()),
                Verdict::Kept { reason: KeptReason::NotExpired, .. } => (Fate::Kept, String::new()),
                Verdict::Kept { reason, .. } => (Fate::Kept, format!("kept: {reason}")),
            };
            let label = self.judge.display(found.spec_id, &found.tuple);
            Bar { label, files: found.counts.files, fate, note }
        };
        self.found.iter().map(bar).collect()
    }

    /// The same bars as they are `after` a pass: those of partitions that are not there any more are dropped.
    pub fn bars_after(&self, after: &Self) -> Vec<Bar> {
        let bars = self.bars().into_iter().zip(&self.found);
        bars.map(|(bar, found)| {
            let is_same = |at: &&FoundTuple| at.spec_id == found.spec_id && at.tuple == found.tuple;
            match after.found.iter().find(is_same) {
                Some(at) => Bar { files: at.counts.files, ..bar },
                None => Bar { files: 0, fate: Fate::Dropped, note: "dropped".to_owned(), ..bar },
            }
        })
        .collect()
    }
}
