//! What would go from one table, what stays and why: for whoever asks, and for a policy that
//! observes. It remembers nothing and moves no cursor; what passes have noted to wait, it tells so.

use std::time::{Duration, Instant};

pub use super::census::{Census, Health};
use super::cursor::store;
use super::evidence::Evidence;
use super::lookup::{Candidate, Lookup};
use super::settings::Settings;
use super::sorter::Sorter;
use super::waiting::{Waiting, WaitingList};
use crate::catalog::discovery::{Counts, TupleOfSpec, has_lookup_index, newest_live};
use crate::catalog::session::Session;
use crate::catalog::shape::spec_book;
use crate::catalog::tables::TableIdentity;
use crate::catalog::walk::{Place, walk};
use crate::instant::UtcInstant;
use crate::policy::{Mode, Policy};
use crate::window::evidence::Doubt;
use crate::window::{Judge, Retention, SpecBook, Verdict};

/// Why a packed table is left alone.
pub const NOT_PARQUET: &str =
    "the table is not made of parquet files, and has no partitions to drop";

/// A server without the lookup index leaves no way but to read the table's live files, and those
/// take what they take.
const WITHOUT_INDEX: Duration = Duration::from_secs(600);

/// How many of the newest live files stand for a table that was not counted.
pub const SAMPLE: i64 = 1_000;

/// A tuple that goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredTuple {
    /// Which.
    pub tuple: TupleOfSpec,
    /// The position of the value by which its files are found.
    pub lead: usize,
    /// As a person reads it.
    pub display: String,
    /// When the newest instant that it may hold by its values had passed.
    pub range_end: UtcInstant,
    /// Why its values may be no times of the policy's column: then it is dropped only by proof.
    pub doubt: Doubt,
    /// The latest instant of its rows by their statistics, where that is after the cutoff and only
    /// warns (`guard.cross_check = warn`).
    pub newest: Option<UtcInstant>,
    /// What its files amount to.
    pub counts: Counts,
    /// The ids of its live files, ascending, below the id counter that was read before they were
    /// looked for ([`super::round::Round::found_below`]).
    pub ids: Vec<i64>,
}

impl ExpiredTuple {
    /// The tuple with the two instants that contradict each other, as a log line has it.
    pub fn with_newest(&self) -> String {
        let newest = self.newest.map(|newest| format!(", newest row {newest}"));
        format!("{}: ended {}{}", self.display, self.range_end, newest.unwrap_or_default())
    }

    /// The key and the text by which its files are found.
    pub fn lead_text(&self) -> Option<(i32, &str)> {
        let tuple = &self.tuple.tuple;
        Some((*tuple.keys.get(self.lead)?, tuple.values.get(self.lead)?.as_deref()?))
    }
}

/// The plan for one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablePlan {
    /// The table.
    pub table: TableIdentity,
    /// Its policy.
    pub policy: Policy,
    /// `now - keep`.
    pub cutoff: UtcInstant,
    /// What goes, oldest first.
    pub expired: Vec<ExpiredTuple>,
    /// Where there is no census: whether none of the table's [`SAMPLE`] newest live files can be dated.
    pub sample_dates_nothing: bool,
    /// What stays; `None` where counting it would have taken longer than
    /// `discovery.count_timeout`.
    pub census: Option<Census>,
    /// What has expired by its values and stays for its evidence; the census has it too.
    pub withheld: Census,
    /// What has expired and does not go, or did not when a pass tried, as passes have noted it: poisoned
    /// tuples first, then by the ends of their ranges. Of these only busy ones are in `expired`.
    pub waiting: Vec<Waiting>,
}

impl TablePlan {
    /// The sums of what goes.
    pub fn expired_counts(&self) -> Counts {
        let mut sum = Counts::default();
        for tuple in &self.expired {
            sum += tuple.counts;
        }
        sum
    }

    /// A policy over live files of which it can date none is unhealthy. A table that is too large
    /// to be counted is judged by its newest files.
    pub fn health(&self) -> Health {
        match &self.census {
            _ if !self.expired.is_empty() || !self.waiting.is_empty() => Health::Healthy,
            Some(census) => census.health(),
            None if self.withheld.kept_files() > 0 => Health::Healthy,
            None if self.sample_dates_nothing => Health::Unhealthy,
            None => Health::Unknown,
        }
    }
}

/// Derives what is expired, by each file's own spec, at the time `now`.
///
/// Takes no lock, and holds no transaction open: what is written meanwhile may be seen in part. A
/// small table is read. Of a larger one the distinct texts of the catalog at the time field's key
/// are listed by index and the files of expired ones are read; what stays is counted in pieces for
/// at most `count_timeout`.
pub async fn plan_table(
    connection: &mut Session,
    table: &TableIdentity,
    policy: &Policy,
    now: UtcInstant,
    settings: &Settings,
) -> anyhow::Result<TablePlan> {
    // The specs are read before the files: a file of a spec that came in between is not judged
    // by a book that lacks it, but kept as of an unknown spec.
    let book = spec_book(connection, table.catalog_id, table.table_id).await?;
    plan_by_book(connection, table, policy, now, settings, &book).await
}

/// The same by a book of the table's specs that was read before, or made up.
pub async fn plan_by_book(
    connection: &mut Session,
    table: &TableIdentity,
    policy: &Policy,
    now: UtcInstant,
    settings: &Settings,
    book: &SpecBook,
) -> anyhow::Result<TablePlan> {
    let retention =
        Retention { source_field_id: policy.source_field_id, keep: policy.keep.length(), now };
    let judge = Judge::new(book, retention);
    let lookup = Lookup { table, judge: &judge, reach: &settings.reach };
    let mut sorter = Sorter::once(&judge);
    let is_counted = sort_all(connection, &lookup, settings, &mut sorter).await?;
    anyhow::ensure!(sorter.is_parquet, NOT_PARQUET);
    let mut evidence = Evidence::new(table, &judge, book, settings.cross_check);
    let examined = evidence.examine(connection, sorter.take(), sorter.is_whole).await?;
    // Where no pass ends anything, none keeps the memory up.
    let remembered = match policy.mode {
        Mode::Enforce => store::waiting(connection, table).await?,
        Mode::Observe | Mode::Paused => None,
    };
    let remembered = remembered.unwrap_or_default();
    let (expired, waiting) = WaitingList::of(remembered, now).confirmed(
        examined.expired,
        &examined.withheld,
        &settings.batch,
        now,
    );
    let mut withheld = Census::default();
    evidence.count(&examined.withheld, &mut withheld);
    evidence.count(&examined.withheld, &mut sorter.census);
    let sample_dates_nothing = !is_counted
        && expired.is_empty()
        && waiting.is_empty()
        && dates_nothing(connection, table, &judge).await?;
    Ok(TablePlan {
        sample_dates_nothing,
        table: table.clone(),
        policy: policy.clone(),
        cutoff: retention.cutoff(),
        expired,
        withheld,
        waiting,
        census: is_counted.then_some(sorter.census),
    })
}

/// Gives every expired file to the sorter; whether it got all the others as well.
async fn sort_all(
    connection: &mut Session,
    lookup: &Lookup<'_>,
    settings: &Settings,
    sorter: &mut Sorter<'_>,
) -> anyhow::Result<bool> {
    if let Some(files) = lookup.small_table(connection).await? {
        files.into_iter().for_each(|file| sorter.add(file));
        return Ok(true);
    }
    let has_index = has_lookup_index(connection).await?;
    let listed = match has_index {
        true => list_expired(connection, lookup, settings.max_values).await?,
        false => None,
    };
    let Some(candidates) = listed else {
        let limit = if has_index { settings.count_timeout } else { WITHOUT_INDEX };
        let complete = read_all(connection, lookup, limit, sorter).await?;
        anyhow::ensure!(
            complete,
            "the table is too large to be read within discovery.count_timeout, and its catalog has \
             more than discovery.max_values ({}) distinct partition values at the time field's key: \
             raise either",
            settings.max_values
        );
        return Ok(true);
    };
    for texts in candidates.chunk_by(|a, b| a.key_index == b.key_index) {
        for texts in texts.chunks(lookup.reach.texts_at_once) {
            let key_index = texts[0].key_index;
            lookup
                .with_texts(
                    connection,
                    texts,
                    i64::MIN,
                    |file| lookup.is_lead(file, key_index),
                    sorter,
                )
                .await?;
        }
    }
    let mut counter = Sorter::once(lookup.judge);
    let complete = read_all(connection, lookup, settings.count_timeout, &mut counter).await?;
    sorter.census = counter.census;
    sorter.is_parquet &= counter.is_parquet;
    Ok(complete)
}

/// Every text at the keys of time fields that may belong to an expired tuple, oldest first; `None`
/// if the catalog has more than `most` distinct texts there.
pub async fn list_expired(
    connection: &mut Session,
    lookup: &Lookup<'_>,
    most: i64,
) -> sqlx::Result<Option<Vec<Candidate>>> {
    let mut candidates = Vec::new();
    for key_index in lookup.judge.lead_keys() {
        let listed = lookup.expired_texts(connection, key_index, None, most).await?;
        let Some(listed) = listed else { return Ok(None) };
        candidates.extend(listed);
    }
    candidates.sort_unstable();
    Ok(Some(candidates))
}

/// Reads the table's own files piece by piece; false if that took longer than `limit`.
async fn read_all(
    connection: &mut Session,
    lookup: &Lookup<'_>,
    limit: Duration,
    sorter: &mut Sorter<'_>,
) -> sqlx::Result<bool> {
    let TableIdentity { catalog_id, table_id, .. } = *lookup.table;
    let began = Instant::now();
    let mut after = Some(Place::START);
    while let Some(place) = after {
        if began.elapsed() > limit {
            return Ok(false);
        }
        let (files, next) =
            walk(connection, catalog_id, table_id, place, lookup.reach.piece).await?;
        files.into_iter().for_each(|file| sorter.add(file));
        after = next;
    }
    Ok(true)
}

/// Whether none of the newest live files can be dated, and there are some.
pub async fn dates_nothing(
    connection: &mut Session,
    table: &TableIdentity,
    judge: &Judge,
) -> sqlx::Result<bool> {
    let newest = newest_live(connection, table.catalog_id, table.table_id, SAMPLE).await?;
    let is_datable = |verdict| match verdict {
        Verdict::Expired { .. } => true,
        Verdict::Kept { reason, .. } => reason.is_datable(),
    };
    let datable = newest.iter().any(|file| is_datable(judge.judge(file.spec_id, &file.tuple)));
    Ok(!newest.is_empty() && !datable)
}
