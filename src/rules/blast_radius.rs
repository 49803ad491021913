//! The blast radius: how much of a table goes at once otherwise than by time alone. Pure.
//!
//! A file is dropped **by time alone** where it was there before it expired, and expired after the rule in force was met
//! first: since then only time has passed. Every other expired file is dropped **with a change** of the rule (it had expired
//! when the rule was met first) or is **late** (it had expired when it came). Both are counted before the first of
//! them is dropped. Where they are too many for the table they are kept until somebody lets them go; what is dropped by
//! time alone is dropped all the same.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::rules::expiry::Retention;
use crate::rules::instant::UtcInstant;

/// Late files that come within so long are counted together.
pub const LATE_TOGETHER: Duration = Duration::from_secs(24 * 60 * 60);

/// How much may go at once otherwise than by time alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RadiusLimits {
    /// So many files may always go.
    pub min_drop_files: i64,
    /// More than this share of the table's live files may not; in (0, 1].
    pub max_drop_fraction: f64,
}

impl RadiusLimits {
    /// Whether so many of so many live files may go.
    pub fn allow(&self, files: i64, live_files: i64) -> bool {
        files <= self.min_drop_files || files as f64 <= live_files as f64 * self.max_drop_fraction
    }

    /// With so many live files, so many may go: no further one need be counted.
    pub fn enough_live(&self, files: i64) -> i64 {
        (files as f64 / self.max_drop_fraction).ceil() as i64
    }
}

/// Why files are dropped otherwise than by time alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// They had expired when the rule was met first.
    Change,
    /// They had expired when they came.
    Late,
}

impl Cause {
    /// The cause as logs have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Late => "late",
        }
    }
}

/// How many files would go of how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Excess {
    /// So many files had expired.
    pub files: i64,
    /// Of so many live ones.
    pub live_files: i64,
    /// When they were counted.
    pub at: UtcInstant,
}

/// Late files of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateCount {
    /// Since when they are counted.
    pub since: Option<UtcInstant>,
    /// How many came since, at most.
    pub files: i64,
    /// Files with lower ids are counted.
    pub counted_below: i64,
    /// Why they are kept; `None` while they may go.
    pub held: Option<Excess>,
}

/// What is remembered of the rule that passes follow for a table. Names are those of the stored JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleChange {
    /// Which rule: a digest of the column, the keep and the specs.
    pub rule: String,
    /// The revision of the policy by which it was met.
    pub policy_revision: i64,
    /// When a pass met it first.
    pub at: UtcInstant,
    /// The cutoff of that pass.
    pub cutoff: UtcInstant,
    /// Files that were there then have lower ids.
    pub files_below: i64,
    /// Why what had expired then is kept; `None` where it may go.
    pub held: Option<Excess>,
    /// What came late since.
    #[serde(default)]
    pub late: LateCount,
}

impl RuleChange {
    /// A rule that is met first now, of a catalog with this id counter of files.
    pub fn new(
        rule: String,
        policy_revision: i64,
        retention: Retention,
        files_below: i64,
        held: Option<Excess>,
    ) -> Self {
        RuleChange {
            rule,
            policy_revision,
            at: retention.now,
            cutoff: retention.cutoff(),
            files_below,
            held,
            late: LateCount { counted_below: files_below, ..LateCount::default() },
        }
    }

    /// Whether a partition is of the change, by the end of its values' range. Which files it has says nothing: a compaction
    /// of held files makes new ones, which hold the same rows.
    pub fn came_with(&self, range_end: UtcInstant) -> bool {
        range_end <= self.cutoff
    }

    /// Whether a file may be late: one that was there when the rule was met belongs to the change.
    pub fn may_be_late(&self, id: i64) -> bool {
        id >= self.files_below
    }

    /// Whether anything is kept.
    pub fn holds_any(&self) -> bool {
        self.held.is_some() || self.late.held.is_some()
    }

    /// Counts files that came late. Those of the day before count no more, unless late files are kept.
    pub fn count_late(&mut self, files: i64, now: UtcInstant) {
        let is_of_today = |since: UtcInstant| since <= now && now < since.plus(LATE_TOGETHER);
        if self.late.held.is_none() && !self.late.since.is_some_and(is_of_today) {
            let counted_below = self.late.counted_below;
            self.late = LateCount { since: Some(now), counted_below, ..LateCount::default() };
        }
        self.late.files = self.late.files.saturating_add(files);
    }

    /// Lets all go that is kept.
    pub fn let_go(&mut self) {
        let counted_below = self.late.counted_below;
        self.held = None;
        self.late = LateCount { counted_below, ..LateCount::default() };
    }
}

#[cfg(test)]
mod tests;
