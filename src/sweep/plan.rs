//! What would go from one table, what stays and why.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use serde::Serialize;
use sqlx::PgConnection;

use super::settings::Settings;
use crate::catalog::discovery::{
    Counts, FoundTuple, TupleOfSpec, distinct_texts, has_lookup_index, newest_live, scan_live,
    tuples_with_text,
};
use crate::catalog::shape::spec_book;
use crate::catalog::tables::TableIdentity;
use crate::instant::UtcInstant;
use crate::policy::Policy;
use crate::window::{Judge, KeptReason, Retention, StoredTuple, Verdict};

/// Why a packed table is left alone.
pub const NOT_PARQUET: &str =
    "the table is not made of parquet files, and has no partitions to drop";

/// A server without the lookup index leaves no way but to read the table's live files, and those
/// take what they take.
const WITHOUT_INDEX: Duration = Duration::from_secs(600);

/// How many of the newest live files stand for a table that is too large to be counted.
pub const SAMPLE: i64 = 1_000;

/// How many expired texts one statement looks up.
const TEXTS_AT_ONCE: usize = 16;

/// How many samples of each kind of kept files are shown.
pub const SAMPLES: usize = 5;

/// A tuple that goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredTuple {
    /// Which.
    pub tuple: TupleOfSpec,
    /// The position of the value by which its files are found.
    pub lead: usize,
    /// As a person reads it.
    pub display: String,
    /// When the newest instant that it may hold had passed.
    pub range_end: UtcInstant,
    /// What its files amount to.
    pub counts: Counts,
    /// The ids of its live files, ascending, below the round's `found_below`; empty where nobody
    /// has looked for them.
    pub ids: Vec<i64>,
}

/// A tuple that stays, as a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSample {
    /// The spec of its files.
    pub spec_id: Option<i64>,
    /// The values that they have.
    pub tuple: StoredTuple,
    /// As a person reads it.
    pub display: String,
    /// How many files.
    pub files: i64,
}

/// The files that stay for one reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptGroup {
    /// How many.
    pub files: i64,
    /// Up to [`SAMPLES`] of their tuples.
    pub samples: Vec<KeptSample>,
}

/// What stays of a table; known only where its live files could be read in time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Census {
    /// By reason.
    pub kept: BTreeMap<KeptReason, KeptGroup>,
    /// When the next of what stays goes, if nothing changes.
    pub next_expiry: Option<UtcInstant>,
}

impl Census {
    /// All files that stay.
    pub fn kept_files(&self) -> i64 {
        self.kept.values().map(|group| group.files).sum()
    }

    /// The files that stay for a reason.
    pub fn files(&self, reason: KeptReason) -> i64 {
        self.kept.get(&reason).map_or(0, |group| group.files)
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
}

/// Whether a policy does anything for its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// It dates files, or there are none.
    Healthy,
    /// There are live files and it can date none of them.
    Unhealthy,
    /// Not counted.
    Unknown,
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
        if !self.expired.is_empty() {
            return Health::Healthy;
        }
        match &self.census {
            None if self.sample_dates_nothing => Health::Unhealthy,
            None => Health::Unknown,
            Some(census) => {
                let datable = census
                    .kept
                    .iter()
                    .any(|(reason, group)| reason.is_datable() && group.files > 0);
                if datable || census.kept_files() == 0 {
                    Health::Healthy
                } else {
                    Health::Unhealthy
                }
            }
        }
    }
}

/// Derives what is expired, by each file's own spec, at the time `now`.
///
/// Takes no lock. It reads the table's own live files, for at most `count_timeout`; where that
/// is not enough, the distinct texts of the catalog at the time field's key are listed by index
/// instead, and only the files of expired ones are read.
pub async fn plan_table(
    connection: &mut PgConnection,
    table: &TableIdentity,
    policy: &Policy,
    now: UtcInstant,
    settings: &Settings,
) -> anyhow::Result<TablePlan> {
    // The specs are read before the files: a file of a spec that came in between is not judged
    // by a book that lacks it, but kept as of an unknown spec.
    let book = spec_book(connection, table.catalog_id, table.table_id).await?;
    let retention =
        Retention { source_field_id: policy.source_field_id, keep: policy.keep.length(), now };
    let judge = Judge::new(&book, retention);
    let mut sorter = Sorter::new(&judge);
    let limit = match has_lookup_index(connection).await? {
        true => settings.count_timeout,
        false => WITHOUT_INDEX,
    };
    let complete =
        scan_live(connection, table.catalog_id, table.table_id, limit, |found| sorter.add(found))
            .await?;
    let (mut sorter, census_is_complete) = if complete {
        (sorter, true)
    } else {
        (by_index(connection, table, &judge, settings).await?, false)
    };
    anyhow::ensure!(sorter.is_parquet, NOT_PARQUET);
    sorter.expired.sort_by(|a, b| {
        (a.range_end, a.tuple.spec_id, &a.tuple.tuple).cmp(&(
            b.range_end,
            b.tuple.spec_id,
            &b.tuple.tuple,
        ))
    });
    let sample_dates_nothing = !census_is_complete
        && sorter.expired.is_empty()
        && dates_nothing(connection, table, &judge).await?;
    Ok(TablePlan {
        sample_dates_nothing,
        table: table.clone(),
        policy: policy.clone(),
        cutoff: retention.cutoff(),
        expired: sorter.expired,
        census: census_is_complete.then_some(sorter.census),
    })
}

/// The way that reads nothing of what is kept but its distinct texts.
async fn by_index<'a>(
    connection: &mut PgConnection,
    table: &TableIdentity,
    judge: &'a Judge,
    settings: &Settings,
) -> anyhow::Result<Sorter<'a>> {
    let mut texts_at: BTreeMap<i32, Vec<String>> = BTreeMap::new();
    let mut sorter = Sorter::new(judge);
    for (spec_id, spec) in judge.specs() {
        let Some(key_index) = spec.lead_position().and_then(|lead| spec.keys().get(lead).copied())
        else {
            continue;
        };
        let texts = match texts_at.entry(key_index) {
            Entry::Occupied(listed) => listed.into_mut(),
            Entry::Vacant(vacant) => {
                vacant.insert(listed_texts(connection, table, key_index, settings).await?)
            }
        };
        let expired: Vec<String> = texts
            .iter()
            .filter(|text| spec.lead_expired(text, &judge.retention()))
            .cloned()
            .collect();
        // In pieces, so that no statement grows with the backlog.
        for texts in expired.chunks(TEXTS_AT_ONCE) {
            let found = tuples_with_text(
                connection,
                table.catalog_id,
                table.table_id,
                spec_id,
                key_index,
                texts,
            )
            .await?;
            found.into_iter().for_each(|tuple| sorter.add(tuple));
        }
    }
    Ok(sorter)
}

/// Whether none of the newest live files can be dated, and there are some.
async fn dates_nothing(
    connection: &mut PgConnection,
    table: &TableIdentity,
    judge: &Judge,
) -> sqlx::Result<bool> {
    let newest = newest_live(connection, table.catalog_id, table.table_id, SAMPLE).await?;
    let datable = |found: &FoundTuple| match judge.judge(found.spec_id, &found.tuple) {
        Verdict::Expired { .. } => true,
        Verdict::Kept { reason, .. } => reason.is_datable(),
    };
    Ok(!newest.is_empty() && !newest.iter().any(datable))
}

/// The distinct texts of the catalog at a key, if there are not too many.
async fn listed_texts(
    connection: &mut PgConnection,
    table: &TableIdentity,
    key_index: i32,
    settings: &Settings,
) -> anyhow::Result<Vec<String>> {
    let limit = settings.max_values + 1;
    let texts = distinct_texts(connection, table.catalog_id, key_index, limit).await?;
    anyhow::ensure!(
        texts.len() as i64 <= settings.max_values,
        "the table is too large to be read within discovery.count_timeout, and its catalog has more \
         than discovery.max_values ({}) distinct partition values at key {key_index}: raise either",
        settings.max_values
    );
    Ok(texts)
}

/// Sorts tuples into what goes and what stays.
struct Sorter<'a> {
    judge: &'a Judge,
    expired: Vec<ExpiredTuple>,
    census: Census,
    is_parquet: bool,
}

impl<'a> Sorter<'a> {
    fn new(judge: &'a Judge) -> Self {
        Sorter { judge, expired: Vec::new(), census: Census::default(), is_parquet: true }
    }

    fn add(&mut self, found: FoundTuple) {
        self.is_parquet &= found.is_parquet;
        let lead = found
            .spec_id
            .and_then(|spec_id| Some((spec_id, self.judge.spec(spec_id)?.lead_position()?)));
        match (self.judge.judge(found.spec_id, &found.tuple), lead) {
            (Verdict::Expired { range_end }, Some((spec_id, lead))) => {
                self.expired.push(ExpiredTuple {
                    display: self.judge.display(found.spec_id, &found.tuple),
                    tuple: TupleOfSpec { spec_id, tuple: found.tuple },
                    lead,
                    range_end,
                    counts: found.counts,
                    ids: Vec::new(),
                });
            }
            // Only a spec with a time field says expired, so there is always a lead then.
            (Verdict::Expired { .. }, None) => {}
            (Verdict::Kept { reason, leaves_at }, _) => self.keep(found, reason, leaves_at),
        }
    }

    fn keep(&mut self, found: FoundTuple, reason: KeptReason, leaves_at: Option<UtcInstant>) {
        self.census.next_expiry = match (self.census.next_expiry, leaves_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let group = self.census.kept.entry(reason).or_default();
        group.files += found.counts.files;
        if group.samples.len() < SAMPLES {
            group.samples.push(KeptSample {
                spec_id: found.spec_id,
                display: self.judge.display(found.spec_id, &found.tuple),
                tuple: found.tuple,
                files: found.counts.files,
            });
        }
    }
}
