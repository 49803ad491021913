//! A plan: what would be dropped from one table, and what is kept and why. It writes nothing. It names the
//! partitions of which passes have noted that they wait.

use super::evidence::{Evidence, Keepers};
use super::expired::ExpiredTuple;
use super::find::{NextExpiry, find};
use super::radius::{KeptBack, in_plan, keep_back};
use super::settings::Settings;
use super::sorter::Sorter;
use super::stalled::{Stalled, stalled};
use super::waiting::{self, Remembered, Waiting, WaitingList};
use crate::catalog::finder::Finder;
use crate::catalog::live_file::Counts;
use crate::catalog::session::Session;
use crate::catalog::table_files::newest_live;
use crate::catalog::tables::TableIdentity;
use crate::policy::{Mode, Policy};
use crate::rules::expiry::{Judge, SpecBook, Verdict};
use crate::rules::instant::UtcInstant;
pub use crate::rules::kept::{Health, KeptCounts};

/// Why a packed table is left alone.
pub const NOT_PARQUET: &str =
    "the table is not made of parquet files, and has no partitions to drop";

/// How many of the newest live files stand for a table that was not counted.
pub const SAMPLE: i64 = 1_000;

/// The plan for one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablePlan {
    /// The table.
    pub table: TableIdentity,
    /// Its policy.
    pub policy: Policy,
    /// `now - keep`.
    pub cutoff: UtcInstant,
    /// What is dropped, oldest first.
    pub expired: Vec<ExpiredTuple>,
    /// Where nothing was counted: whether none of the table's [`SAMPLE`] newest live files can be dated.
    pub sample_dates_nothing: bool,
    /// What stays; `None` where counting it would have taken longer than
    /// `discovery.count_timeout`.
    pub kept_counts: Option<KeptCounts>,
    /// The time of the full pass that counted it, where it was not counted now.
    pub counted_at: Option<UtcInstant>,
    /// Whether the table's feed has stalled.
    pub stalled: Option<Stalled>,
    /// When the next partition expires, where a calendar tells.
    pub next: Option<NextExpiry>,
    /// Why some of what has expired may be missing; `None` where nothing is.
    pub behind: Option<String>,
    /// What has expired by its values and stays for its evidence or by a hold; `kept_counts` has it too.
    pub withheld: KeptCounts,
    /// What has expired and does not go, or did not when a pass tried, as passes have noted it: poisoned
    /// tuples first, then by the ends of their ranges. Of these only busy ones are in `expired`.
    pub waiting: Vec<Waiting>,
    /// Of what would be dropped otherwise than by time alone: what is held, for it is too much.
    pub kept_back: Option<KeptBack>,
}

impl TablePlan {
    /// The sums of what is dropped.
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
        match &self.kept_counts {
            _ if !self.expired.is_empty() || !self.waiting.is_empty() => Health::Healthy,
            Some(kept_counts) => kept_counts.health(),
            None if self.withheld.kept_files() > 0 => Health::Healthy,
            None if self.sample_dates_nothing => Health::Unhealthy,
            None => Health::Unknown,
        }
    }
}

/// Derives what is expired, by each file's own spec, at the time `now`.
///
/// Takes no lock, and holds no transaction open: what is written meanwhile may be seen in part. How files are
/// found: see `find.rs`.
pub async fn plan_table(
    connection: &mut Session,
    table: &TableIdentity,
    policy: &Policy,
    now: UtcInstant,
    settings: &Settings,
) -> anyhow::Result<TablePlan> {
    let (book, _) = policy.judge(connection, table, now).await?;
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
    let retention = policy.retention(now);
    let judge = Judge::new(book, retention);
    let finder = Finder { table, judge: &judge, scan_limits: &settings.scan_limits };
    let mut sorter = Sorter::for_commits(&judge);
    let found = find(connection, finder, book, settings, &mut sorter).await?;
    anyhow::ensure!(sorter.is_parquet, NOT_PARQUET);
    let is_counted = found.kept_counts.is_some();
    let mut evidence = Evidence::new(
        table,
        &judge,
        book,
        settings.cross_check,
        Keepers::of(policy, &settings.scan_limits, settings.max_values),
    );
    let found_tuples = sorter.take();
    let change = match policy.mode {
        Mode::Enforce => {
            Some(in_plan(connection, finder, book, policy, settings, &found_tuples).await?)
        }
        Mode::Observe | Mode::Paused => None,
    };
    let kept_back = match &change {
        Some(change) => KeptBack::read(connection, table, change, retention, &found_tuples).await?,
        None => None,
    };
    let mut examined = evidence.examine(connection, found_tuples, sorter.is_whole).await?;
    if let Some(change) = &change {
        let kept = keep_back(connection, table, change, retention, examined.expired).await?;
        examined.expired = kept.0;
        examined.withheld.extend(kept.1);
    }
    // Where no pass ends anything, none keeps the memory up.
    let remembered = match policy.mode {
        Mode::Enforce => waiting::store::load(connection, table).await?,
        Mode::Observe | Mode::Paused => Remembered::default(),
    };
    let list = WaitingList::of(remembered, now, settings.pauses());
    let (expired, waiting) =
        list.confirmed(examined.expired, &examined.withheld, &settings.batch, now);
    let mut withheld = KeptCounts::default();
    evidence.count(&examined.withheld, &mut withheld);
    let mut kept_counts = found.kept_counts;
    if let Some(kept_counts) = &mut kept_counts {
        evidence.count(&examined.withheld, kept_counts);
    }
    let sample_dates_nothing = !is_counted
        && expired.is_empty()
        && waiting.is_empty()
        && dates_nothing(connection, table, &judge).await?;
    let stalled = stalled(connection, finder, settings.max_values).await?;
    Ok(TablePlan {
        stalled,
        sample_dates_nothing,
        table: table.clone(),
        policy: policy.clone(),
        cutoff: retention.cutoff(),
        expired,
        withheld,
        waiting,
        kept_counts,
        counted_at: found.counted_at,
        next: found.next,
        behind: found.behind,
        kept_back,
    })
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
