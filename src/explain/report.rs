//! An explanation as JSON has it.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::catalog::live_file::Counts;
use crate::policy::grace::Pending;
use crate::policy::{Mode, Policy, Source};
use crate::rules::instant::UtcInstant;
use crate::specs::{SpecReport, SpecState, Trust};
use crate::trace::DropTrace;

/// Why a partition is here, or gone.
#[derive(Debug, Serialize, ToSchema)]
pub struct Explanation {
    /// The database's time.
    pub as_of: UtcInstant,
    /// The catalog's name.
    pub catalog: String,
    /// The namespace's name.
    pub namespace: String,
    /// The table's name.
    pub table: String,
    /// The table's UUID.
    pub table_uuid: Uuid,
    /// The spec of its files.
    pub spec_id: i64,
    /// The partition values by key index.
    pub partition_values: Vec<Option<String>>,
    /// As a person reads them.
    pub display: String,
    /// What is known of the spec; null where it is seen with several definitions.
    pub spec: Option<SpecSummary>,
    /// Everything that the values of its time fields may mean, in words.
    pub readings: Vec<String>,
    /// When the range of its own time value ends; null where its time is unknown.
    pub range_end: Option<UtcInstant>,
    /// Its live files, vectors, rows and bytes.
    pub live: Counts,
    /// The policy that is followed; null where none is.
    pub rule: Option<Rule>,
    /// What becomes of it.
    pub outlook: Outlook,
    /// When it expires, or did, if nothing changes; null where it never does, or there is no policy.
    pub expires_at: Option<UtcInstant>,
    /// All that keeps passes from dropping it now, or would if it had expired.
    pub blocked_by: Vec<Block>,
    /// The newest snapshots that ended files of it, at most 10, as long as the server keeps the rows of the files.
    pub endings: Vec<Ending>,
    /// The newest drops of tailrace that ended files of it, at most 5, with what became of their objects.
    pub drops: Vec<DropTrace>,
}

/// A spec, as far as it explains a partition.
#[derive(Debug, Serialize, ToSchema)]
pub struct SpecSummary {
    /// Its fields by key index: `day(at)`.
    pub fields: Vec<String>,
    /// Whether the server still has it.
    pub state: SpecState,
    /// Who vouched for the values of its files; null where nobody did.
    pub trusted: Option<Trust>,
}

impl SpecSummary {
    pub(super) fn of(spec: SpecReport) -> Self {
        SpecSummary { fields: spec.fields, state: spec.state, trusted: spec.trusted }
    }
}

/// A policy, as far as it explains a partition.
#[derive(Debug, Serialize, ToSchema)]
pub struct Rule {
    /// The field as written.
    pub field: String,
    /// How long a partition stays after its last instant, as written.
    pub keep: String,
    /// So many of the newest distinct time values that have a live file stay whatever their age; left out where the
    /// age alone decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub keep_last: Option<i32>,
    /// What the policy does; `paused` also where a pause covers the table.
    pub mode: Mode,
    /// What comes into force later in the place of `keep`, `keep_last` and `mode`; left out where nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub pending: Option<Pending>,
    /// Where it comes from.
    pub source: Source,
    /// Its revision.
    pub revision: i64,
    /// Since when it is in force as it is; null where that is unknown.
    pub since: Option<UtcInstant>,
    /// `as_of - keep`: what ended by then has expired.
    pub cutoff: UtcInstant,
}

impl Rule {
    pub(super) fn of(policy: &Policy, since: Option<UtcInstant>, now: UtcInstant) -> Self {
        Rule {
            field: policy.field.to_string(),
            keep: policy.keep.text().to_owned(),
            keep_last: policy.keep_last,
            mode: policy.mode,
            pending: policy.pending.clone(),
            source: policy.source,
            revision: policy.revision,
            since,
            cutoff: now.minus(policy.keep.length()),
        }
    }
}

/// What becomes of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outlook {
    /// It has no live file.
    NoFiles,
    /// No policy is followed: no pass ever drops it.
    NoPolicy,
    /// Its time is unknown, or no time field of the policy's column dates it: no pass drops it as it is.
    Never,
    /// It has not expired.
    NotExpired,
    /// It has expired, and something keeps it.
    Blocked,
    /// It has expired, and the next pass drops it.
    NextPass,
}

/// Something that keeps a partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Block {
    /// `pause`, `hold`, `policy`, `mode`, `format`, `clock`, `removal_queue`, or the reason of a kept or waiting
    /// partition.
    #[schema(value_type = String)]
    pub by: &'static str,
    /// In words.
    pub what: String,
    /// When it is over if nothing changes; null where that is unknown.
    pub until: Option<UtcInstant>,
}

/// A snapshot that ended files of a partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Ending {
    pub snapshot_id: i64,
    /// Its time; null where expiry has deleted the snapshot, as author and message.
    pub at: Option<UtcInstant>,
    pub author: Option<String>,
    pub message: Option<String>,
    /// How many files of the partition it ended.
    pub files: i64,
    /// What it was by its changes of the table: `compaction`, `truncate`, `drop`, or `other`.
    #[schema(value_type = String)]
    pub kind: &'static str,
}
