//! A plan as JSON has it.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::find::NextExpiry;
use super::plan::TablePlan;
use super::planning::{ClockRefused, Plans};
use super::radius::command;
use super::report::PartitionReport;
use super::stalled::Stalled;
use super::waiting::{WaitReason, Waiting};
use crate::catalog::tables::TableIdentity;
use crate::guards::hold::Hold;
use crate::guards::pause::Pause;
use crate::policy::grace::Pending;
use crate::policy::{Mode, Source};
use crate::rules::blast_radius::Excess;
use crate::rules::expiry::KeptReason;
use crate::rules::instant::UtcInstant;
use crate::rules::kept::{Health, KeptCounts, SAMPLES, is_undatable};

/// The plans of all tables in scope.
#[derive(Debug, Serialize, ToSchema)]
pub struct PlanReport {
    /// The time of every decision.
    pub as_of: UtcInstant,
    /// The catalogs in which a pass would do nothing now, for its clock is refused; left out where
    /// there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub clock_refused: Vec<ClockRefused>,
    /// By catalog, namespace and name.
    pub tables: Vec<TablePlanReport>,
}

/// The plan of one table. Counts that would have cost a read of a table too large for
/// `discovery.count_timeout` are null.
#[derive(Debug, Serialize, ToSchema)]
pub struct TablePlanReport {
    /// The catalog's name.
    pub catalog: String,
    /// The namespace's name.
    pub namespace: String,
    /// The table's name.
    pub table: String,
    /// The table's UUID.
    pub table_uuid: Uuid,
    /// The policy's field as written.
    pub field: Option<String>,
    /// The column that it means, as it is called now; null where that is gone.
    pub column: Option<String>,
    /// The field for people.
    #[serde(skip)]
    pub shown_field: Option<String>,
    /// How long a partition stays, as written.
    pub keep: Option<String>,
    /// So many of the newest distinct time values that have a live file stay whatever their age; left out where the
    /// age alone decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub keep_last: Option<i32>,
    /// What the policy does.
    pub mode: Option<Mode>,
    /// Where the policy comes from.
    pub source: Option<Source>,
    /// What comes into force later in the place of `keep`, `keep_last` and `mode`; left out where nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub pending: Option<Pending>,
    /// The pause that covers the table; left out where there is none. Its mode is `paused` then, whatever the
    /// policy says.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub pause: Option<Pause>,
    /// The holds of the table; left out where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub holds: Vec<Hold>,
    /// `as_of - keep`.
    pub cutoff: Option<UtcInstant>,
    /// What would be dropped, oldest first.
    pub expired: Vec<PartitionReport>,
    /// What has expired and does not go, or did not when a pass tried; poisoned partitions first, then
    /// by the ends of their ranges, up to 1,000.
    pub waiting: Vec<WaitingReport>,
    /// Live files that stay.
    pub kept_files: Option<i64>,
    /// The same by reason.
    #[schema(value_type = Option<BTreeMap<String, i64>>)]
    pub kept: Option<BTreeMap<KeptReason, i64>>,
    /// Samples of what is undatable, up to five a reason.
    pub undatable: Option<Vec<KeptReport>>,
    /// Samples of ranges that start after `as_of`, up to five.
    pub future: Option<Vec<KeptReport>>,
    /// Samples of partitions that have expired by their values and hold newer rows by their column
    /// statistics, up to five.
    pub newer_rows: Option<Vec<KeptReport>>,
    /// Samples of partitions that have expired and are held, up to five; left out where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub held: Option<Vec<KeptReport>>,
    /// What has expired and is held for its number; left out where nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub blast_radius: Option<BlastRadius>,
    /// Samples of partitions that have expired and are among the newest, up to five; left out where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub among_newest: Option<Vec<KeptReport>>,
    /// Samples of what no time field of the policy's column covers, up to five.
    pub uncovered: Option<Vec<KeptReport>>,
    /// Files of no spec, or of one without a time field on the policy's column.
    pub uncovered_files: Option<i64>,
    /// When what stays was counted, where that was not now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_at: Option<UtcInstant>,
    /// Where the feed has stalled, for the newest partition ended more than half of `keep` ago: which it is, and when it
    /// ended; left out where it has not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub stalled: Option<StalledReport>,
    /// When the next partition expires, if nothing changes.
    pub next_expiry: Option<UtcInstant>,
    /// Not before this does the next partition expire; where no file was found of what the calendar has next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_expiry_not_before: Option<UtcInstant>,
    /// Whether all that has expired is in `expired` or `waiting`; null where there is no plan.
    pub complete: Option<bool>,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<String>,
    /// Whether the policy dates anything.
    pub health: Option<Health>,
    /// Why there is no plan.
    pub error: Option<String>,
}

/// What is held for its number: it goes otherwise than by time alone, and is more of the table than may go so.
#[derive(Debug, Serialize, ToSchema)]
pub struct BlastRadius {
    /// What had expired when the rule was met first, of the files that were live; null where that may go.
    pub change: Option<Excess>,
    /// What had expired when it came, of the files that were live; null where that may go.
    pub late: Option<Excess>,
    /// How many partitions are held.
    pub partitions: i64,
    /// Samples of them, up to five.
    pub samples: Vec<KeptReport>,
    /// The digest of these partitions, by which they are approved.
    pub digest: String,
    /// The command that lets them go.
    pub command: String,
}

/// The newest partition of a feed that has stalled.
#[derive(Debug, Serialize, ToSchema)]
pub struct StalledReport {
    /// The partition, as a person reads it.
    pub newest: String,
    /// When the range of its time value ended.
    pub ended: UtcInstant,
}

/// A tuple that waits: it has expired, and passes look at it again.
#[derive(Debug, Serialize, ToSchema)]
pub struct WaitingReport {
    /// The spec of its files.
    pub spec_id: i64,
    /// The partition values by key index.
    pub partition_values: Vec<Option<String>>,
    /// As a person reads them.
    pub display: String,
    /// Why: `poisoned`, `oversize`, `busy`, `held`, `blast_radius`, `among_newest`, or the reason for which its evidence keeps it.
    #[schema(value_type = String)]
    pub reason: WaitReason,
    /// Since when for this reason: the first look that found it so.
    pub since: UtcInstant,
    /// Not before this is it tried again, or expected to go; null where each pass looks.
    pub next_look: Option<UtcInstant>,
    /// What the server said of a poisoned one, with its row where the server names it.
    pub error: Option<String>,
    /// How many files.
    pub files: i64,
    /// When the range of its values ended.
    pub range_end: UtcInstant,
}

impl WaitingReport {
    fn of(waiting: &Waiting) -> Self {
        WaitingReport {
            spec_id: waiting.spec_id,
            partition_values: waiting.tuple.values.clone(),
            display: waiting.display.clone(),
            reason: waiting.reason,
            since: waiting.since,
            next_look: waiting.next_look,
            error: waiting.error.clone(),
            files: waiting.files,
            range_end: waiting.range_end,
        }
    }
}

/// A tuple that stays.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeptReport {
    /// The spec of its files.
    pub spec_id: Option<i64>,
    /// The partition values of the rows that its files have.
    pub partition_values: Vec<Option<String>>,
    /// As a person reads them.
    pub display: String,
    /// Why it stays.
    pub reason: KeptReason,
    /// How many files.
    pub files: i64,
    /// Where the values may mean several things, all of them, in words.
    #[serde(rename = "readings", skip_serializing_if = "Vec::is_empty")]
    pub interpretations: Vec<String>,
    /// When the range of its values ended, where something else keeps it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range_end: Option<UtcInstant>,
    /// The latest instant of its rows by their column statistics, where it is later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_row: Option<UtcInstant>,
    /// When it is dropped if nothing changes, where something else than its values says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaves_at: Option<UtcInstant>,
}

impl PlanReport {
    /// The report of the plans.
    pub fn of(plans: &Plans) -> Self {
        PlanReport {
            as_of: plans.as_of,
            clock_refused: plans.refused.clone(),
            tables: plans
                .tables
                .iter()
                .map(|(table, plan)| match plan {
                    Ok(plan) => TablePlanReport::of(plan),
                    Err(error) => TablePlanReport::failed(table, error),
                })
                .collect(),
        }
    }

    /// How many tables somebody has to look at.
    pub fn failures(&self) -> usize {
        let failed = |table: &&TablePlanReport| {
            table.error.is_some() || table.health == Some(Health::Unhealthy)
        };
        self.tables.iter().filter(failed).count()
    }
}

impl TablePlanReport {
    /// The report of a plan.
    pub fn of(plan: &TablePlan) -> Self {
        let kept_counts = plan.kept_counts.as_ref();
        // What the evidence keeps is known even where what stays was not counted.
        let shown =
            kept_counts.or(Some(&plan.withheld).filter(|withheld| withheld.kept_files() > 0));
        let expired =
            plan.expired.iter().map(|tuple| PartitionReport::of(tuple, tuple.counts)).collect();
        TablePlanReport {
            field: Some(plan.policy.field.text().to_owned()),
            column: plan.policy.field.column().map(str::to_owned),
            shown_field: Some(plan.policy.field.to_string()),
            keep: Some(plan.policy.keep.text().to_owned()),
            keep_last: plan.policy.keep_last,
            mode: Some(plan.policy.mode),
            source: Some(plan.policy.source),
            pending: plan.policy.pending.clone(),
            pause: plan.policy.guards.pause.clone(),
            holds: plan.policy.guards.holds.clone(),
            cutoff: Some(plan.cutoff),
            expired,
            waiting: plan.waiting.iter().map(WaitingReport::of).collect(),
            kept_files: kept_counts.map(KeptCounts::kept_files),
            kept: kept_counts.map(|kept_counts| {
                kept_counts.kept.iter().map(|(reason, group)| (*reason, group.files)).collect()
            }),
            undatable: shown.map(|kept_counts| samples(kept_counts, is_undatable)),
            newer_rows: shown.map(|kept_counts| {
                samples(kept_counts, |reason| reason == KeptReason::NewerRowsThanPartition)
            }),
            held: shown
                .map(|kept_counts| samples(kept_counts, |reason| reason == KeptReason::Held))
                .filter(|held| !held.is_empty()),
            blast_radius: plan.kept_back.as_ref().map(|held| BlastRadius {
                change: held.change.held,
                late: held.change.late.held,
                partitions: held.partitions.len() as i64,
                samples: samples(&plan.withheld, |reason| reason == KeptReason::BlastRadius),
                digest: held.digest.clone(),
                command: command(&plan.table, &held.digest),
            }),
            among_newest: shown
                .map(|kept_counts| samples(kept_counts, |reason| reason == KeptReason::AmongNewest))
                .filter(|newest| !newest.is_empty()),
            future: kept_counts
                .map(|kept_counts| samples(kept_counts, |reason| reason == KeptReason::Future)),
            uncovered: kept_counts
                .map(|kept_counts| samples(kept_counts, |reason| reason == KeptReason::Uncovered)),
            uncovered_files: kept_counts
                .map(|kept_counts| kept_counts.files(KeptReason::Uncovered)),
            counted_at: plan.counted_at,
            stalled: plan
                .stalled
                .clone()
                .map(|Stalled { newest, ended }| StalledReport { newest, ended }),
            next_expiry: match plan.next {
                Some(NextExpiry::At(at)) => Some(at),
                Some(NextExpiry::NotBefore(_)) => None,
                None => shown.and_then(|kept_counts| kept_counts.next_expiry),
            },
            next_expiry_not_before: match plan.next {
                Some(NextExpiry::NotBefore(at)) => Some(at),
                _ => None,
            },
            complete: Some(plan.behind.is_none()),
            behind: plan.behind.clone(),
            health: Some(plan.health()),
            ..Self::failed(&plan.table, "")
        }
        .without_error()
    }

    fn failed(table: &TableIdentity, error: &str) -> Self {
        TablePlanReport {
            catalog: table.catalog.clone(),
            namespace: table.namespace.clone(),
            table: table.table.clone(),
            table_uuid: table.table_uuid,
            field: None,
            column: None,
            shown_field: None,
            keep: None,
            keep_last: None,
            mode: None,
            source: None,
            pending: None,
            pause: None,
            holds: Vec::new(),
            blast_radius: None,
            cutoff: None,
            expired: Vec::new(),
            waiting: Vec::new(),
            kept_files: None,
            kept: None,
            undatable: None,
            future: None,
            newer_rows: None,
            held: None,
            among_newest: None,
            uncovered: None,
            uncovered_files: None,
            counted_at: None,
            stalled: None,
            next_expiry: None,
            next_expiry_not_before: None,
            complete: None,
            behind: None,
            health: None,
            error: Some(error.to_owned()),
        }
    }

    fn without_error(self) -> Self {
        TablePlanReport { error: None, ..self }
    }
}

fn samples(kept_counts: &KeptCounts, wanted: impl Fn(KeptReason) -> bool) -> Vec<KeptReport> {
    let groups = kept_counts.kept.iter().filter(|(reason, _)| wanted(**reason));
    groups
        .flat_map(|(reason, group)| {
            group.samples.iter().take(SAMPLES).map(|sample| KeptReport {
                spec_id: sample.spec_id,
                partition_values: sample.tuple.values.clone(),
                display: sample.display.clone(),
                reason: *reason,
                files: sample.files,
                interpretations: sample.interpretations.clone(),
                range_end: sample.range_end,
                newest_row: sample.newest_row,
                leaves_at: sample.leaves_at,
            })
        })
        .collect()
}
