//! What a pass did, as JSON has it.

use std::collections::HashSet;
use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;

use super::expired::ExpiredTuple;
use crate::catalog::live_file::Counts;
use crate::catalog::tables::TableIdentity;
use crate::guards::pause::Pause;
use crate::policy::Policy;
use crate::rules::expiry::KeptReason;
use crate::rules::instant::UtcInstant;
use crate::rules::kept::KeptCounts;

/// What a report says where the catalog was restored while the pass was at work.
pub const RESTORED: &str = "the catalog was restored to an earlier time since this pass began: what it \
    found is not acted by, and the next pass looks anew";

/// How a pass ended for one table. Of several that apply the gravest is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everything that had expired was dropped.
    Dropped,
    /// Nothing had expired.
    NothingToDo,
    /// The policy only observes.
    Observed,
    /// The policy is paused, or a pause covers the table.
    Paused,
    /// The pass was told to stop, or its time was over, before it was through; the next one goes
    /// on.
    Partial,
    /// More files than `sweep.removal_queue_ceiling` wait for the server to delete their objects;
    /// the next pass tries again.
    HeldBack,
    /// Some tuples had rows that somebody else had locked; they wait for the next pass.
    Busy,
    /// The server refuses to end the files of some tuples, for a trigger, a constraint or what a row
    /// holds; they are tried again by themselves, after growing pauses. The others were dropped.
    Poisoned,
    /// The policy was changed, paused or unset after planning.
    PolicyChanged,
    /// Some tuples are larger than `sweep.max_files_per_tuple`, and `sweep.oversize` is `skip`.
    Oversize,
    /// The commit lock could not be acquired, in several tries of `sweep.lock_timeout`.
    LockTimeout,
    /// The database's clock is behind the newest snapshot: nothing can be dated.
    ClockBehind,
    /// Host and database disagree about the time, or the database's clock jumped: nothing is done by
    /// it.
    ClockSkew,
    /// The policy can date none of the table's live files.
    Unhealthy,
    /// The table was dropped, replaced or renamed meanwhile.
    Gone,
    /// It failed.
    Failed,
}

impl Outcome {
    /// Whether somebody has to look at it (exit code 3).
    pub fn is_failure(self) -> bool {
        matches!(
            self,
            Self::Oversize
                | Self::Poisoned
                | Self::LockTimeout
                | Self::ClockBehind
                | Self::ClockSkew
                | Self::Unhealthy
                | Self::Failed
        )
    }

    /// Whether a step ended before it had tried everything, for a reason other than time.
    fn gives_up(self) -> bool {
        matches!(self, Self::HeldBack | Self::LockTimeout | Self::Failed)
    }

    /// The outcome as JSON and logs have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::NothingToDo => "nothing_to_do",
            Self::Observed => "observed",
            Self::Paused => "paused",
            Self::Partial => "partial",
            Self::HeldBack => "held_back",
            Self::Busy => "busy",
            Self::Poisoned => "poisoned",
            Self::PolicyChanged => "policy_changed",
            Self::Oversize => "oversize",
            Self::LockTimeout => "lock_timeout",
            Self::ClockBehind => "clock_behind",
            Self::ClockSkew => "clock_skew",
            Self::Unhealthy => "unhealthy",
            Self::Gone => "gone",
            Self::Failed => "failed",
        }
    }
}

/// A partition that was dropped, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PartitionReport {
    /// The spec of its files.
    pub spec_id: i64,
    /// The partition values by key index.
    pub partition_values: Vec<Option<String>>,
    /// As a person reads them.
    pub display: String,
    /// When the newest instant that it may hold had passed.
    pub range_end: UtcInstant,
    /// Files, vectors, rows and bytes.
    #[serde(flatten)]
    pub counts: Counts,
}

impl PartitionReport {
    /// The report of a tuple with the counts that it has now.
    pub fn of(tuple: &ExpiredTuple, counts: Counts) -> Self {
        PartitionReport {
            spec_id: tuple.tuple.spec_id,
            partition_values: tuple.tuple.tuple.values.clone(),
            display: tuple.display.clone(),
            range_end: tuple.range_end,
            counts,
        }
    }
}

/// A snapshot that the pass made.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SnapshotReport {
    /// Its id.
    pub snapshot_id: i64,
    /// What it ended, by partition.
    pub partitions: Vec<PartitionReport>,
    /// Data files ended.
    pub files_ended: i64,
    /// Deletion vectors ended.
    pub delete_files_ended: i64,
    /// Rows of the files, as written.
    pub records: i64,
    /// Bytes of the files.
    pub bytes: i64,
    /// The wait for the commit lock.
    pub lock_wait_ms: f64,
    /// The hold of the commit lock.
    pub lock_hold_ms: f64,
}

/// What a pass did to one table.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TableReport {
    /// The catalog's name.
    pub catalog: String,
    /// The namespace's name.
    pub namespace: String,
    /// The table's name.
    pub table: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The policy's field, as written; null where no policy could be read.
    pub field: Option<String>,
    /// The column that it means, as it is called now; null where that is gone too.
    pub column: Option<String>,
    /// How long a partition stays, as written.
    pub keep: Option<String>,
    /// `as_of - keep`.
    pub cutoff: Option<UtcInstant>,
    /// The snapshots made, oldest first.
    pub snapshots: Vec<SnapshotReport>,
    /// What a policy that observes would have dropped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub would_drop: Vec<PartitionReport>,
    /// Whether the pass looked at all of the table; null where it enforced nothing.
    pub full: Option<bool>,
    /// What stays for another reason than its age, as it was last counted; null where it never was.
    pub counted: Option<Counted>,
    /// The error, in words.
    pub error: Option<String>,
}

/// Files that a policy does not reach, counted by the last full pass that finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Counted {
    /// Files whose time is unknown.
    pub undatable_files: i64,
    /// Files of no spec, or of one without a time field on the policy's column.
    pub uncovered_files: i64,
    /// The time of that pass.
    pub at: UtcInstant,
}

impl Counted {
    /// Of what was counted at `at`.
    pub fn of(kept_counts: &KeptCounts, at: UtcInstant) -> Self {
        Counted {
            undatable_files: kept_counts.undatable_files(),
            uncovered_files: kept_counts.files(KeptReason::Uncovered),
            at,
        }
    }

    /// The same with further files whose time is unknown.
    pub fn with(self, undatable_files: i64) -> Self {
        Counted { undatable_files: self.undatable_files.saturating_add(undatable_files), ..self }
    }
}

/// So many tuples that wait are told one by one.
const TOLD: usize = 3;

/// The first of some tuples that wait, in words, and how many more there are.
pub fn some_of(waiting: &[String]) -> String {
    let mut words = waiting.iter().take(TOLD).cloned().collect::<Vec<_>>().join("; ");
    if waiting.len() > TOLD {
        words.push_str(&format!("; and {} more: see tailrace plan", waiting.len() - TOLD));
    }
    words
}

impl TableReport {
    /// A report without snapshots.
    pub fn new(table: &TableIdentity, outcome: Outcome, error: Option<String>) -> Self {
        TableReport {
            catalog: table.catalog.clone(),
            namespace: table.namespace.clone(),
            table: table.table.clone(),
            outcome,
            field: None,
            column: None,
            keep: None,
            cutoff: None,
            snapshots: Vec::new(),
            would_drop: Vec::new(),
            full: None,
            counted: None,
            error,
        }
    }

    /// Adds that something failed.
    pub fn fail(&mut self, error: String) {
        self.outcome = Outcome::Failed;
        self.error = Some(match self.error.take() {
            Some(earlier) => format!("{earlier}; {error}"),
            None => error,
        });
    }

    /// Adds that some tuples are refused, in words, as long as nothing graver is to be reported.
    pub fn poisoned(&mut self, tuples: &[String]) {
        let is_graver =
            !matches!(self.outcome, Outcome::Busy | Outcome::Dropped | Outcome::NothingToDo);
        if tuples.is_empty() || is_graver {
            return;
        }
        (self.outcome, self.error) = (Outcome::Poisoned, Some(some_of(tuples)));
    }

    /// The report with the policy that the table was worked on by.
    pub fn by(self, policy: &Policy, now: UtcInstant) -> Self {
        TableReport {
            field: Some(policy.field.text().to_owned()),
            column: policy.field.column().map(str::to_owned),
            keep: Some(policy.keep.text().to_owned()),
            cutoff: Some(now.minus(policy.keep.length())),
            ..self
        }
    }

    /// The report of a table after another time slice, which found `later`: nothing where no policy is in
    /// force any more.
    pub fn in_slices(so_far: Option<TableReport>, later: Option<TableReport>) -> Option<Self> {
        let (so_far, later) = match (so_far, later) {
            (Some(so_far), Some(later)) => (so_far, later),
            (so_far, later) => return later.or(so_far),
        };
        let mut snapshots = so_far.snapshots;
        // What an earlier step could not do, it was not asked to do again.
        let (outcome, error) = match (so_far.outcome, later.outcome) {
            (earlier, later_one) if earlier.gives_up() && !later_one.gives_up() => {
                (earlier, so_far.error)
            }
            (_, Outcome::NothingToDo) if !snapshots.is_empty() => (Outcome::Dropped, later.error),
            (_, outcome) => (outcome, later.error),
        };
        snapshots.extend(later.snapshots);
        let full = so_far.full.max(later.full);
        let key = |one: &PartitionReport| (one.spec_id, one.partition_values.clone());
        let again: HashSet<_> = later.would_drop.iter().map(key).collect();
        let mut would_drop = so_far.would_drop;
        would_drop.retain(|one| !again.contains(&key(one)));
        would_drop.extend(later.would_drop.iter().cloned());
        Some(TableReport { outcome, error, snapshots, would_drop, full, ..later })
    }

    /// The sums over the snapshots.
    pub fn counts(&self) -> Counts {
        self.snapshots.iter().fold(Counts::default(), |mut sum, snapshot| {
            sum += Counts {
                files: snapshot.files_ended,
                delete_files: snapshot.delete_files_ended,
                records: snapshot.records,
                bytes: snapshot.bytes,
            };
            sum
        })
    }
}

/// What kept partitions when a pass began, beside pauses and holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waits {
    /// Policies of which a change waits for `guard.policy_grace`.
    pub pending_policies: i64,
    /// Files of partitions that are held because they are too many.
    pub blast_radius_files: i64,
}

/// What a pass did.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PassReport {
    /// The database's time at its start: the `now` of every decision in it.
    pub as_of: UtcInstant,
    /// By catalog, namespace and name.
    pub tables: Vec<TableReport>,
    /// The pauses in force: tables that one covers have the outcome `paused`. Left out where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub pauses: Vec<Pause>,
    /// How many holds there are.
    #[serde(skip)]
    pub holds: usize,
    /// What else kept partitions when it began.
    #[serde(skip)]
    pub waits: Waits,
    /// Catalogs that another daemon works on.
    pub skipped_catalogs: Vec<String>,
    /// Catalogs that failed, or were not finished.
    pub failed_catalogs: Vec<CatalogFailure>,
    /// Whether full scans and full passes gave way to what fell due meanwhile.
    #[serde(skip)]
    pub gave_way: bool,
}

/// Why a catalog failed.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct CatalogFailure {
    /// Its name.
    pub catalog: String,
    /// The error, in words.
    pub error: String,
    /// Whether the database was away.
    #[serde(skip)]
    pub away: bool,
}

impl PassReport {
    /// The sums over all tables.
    pub fn counts(&self) -> Counts {
        self.tables.iter().fold(Counts::default(), |mut sum, table| {
            sum += table.counts();
            sum
        })
    }

    /// How many tables somebody has to look at.
    pub fn failures(&self) -> usize {
        self.tables.iter().filter(|table| table.outcome.is_failure()).count()
    }
}

/// A length in milliseconds, to the microsecond.
pub fn milliseconds(length: Duration) -> f64 {
    (length.as_secs_f64() * 1e6).round() / 1e3
}
