//! What passes remember of a table beside its calendar and what waits: how far the full scan of its files has
//! come, and by which rules its values were judged. Pure.
//!
//! It only saves time. It says where a pass need not look, and never that a file may be dropped: each file is
//! judged by its own spec and values when it is looked at. A wrong memory, whoever wrote it, can make passes
//! overlook what has expired until the next full pass, which looks everywhere. It ends no file that its own
//! values and statistics keep. One thing depends on it: late files are checked together with those of their
//! partition that a look finds, and a partition is looked up whole.

mod book;
pub mod store;

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::catalog::table_files::Place;
use crate::catalog::tables::FileWatermark;
use crate::rules::blast_radius::RuleChange;
use crate::rules::instant::UtcInstant;
use crate::rules::kept::KeptCounts;
pub use book::{BookDigest, RULES_NUMBER};

/// A scan of all of the table's files that has not come to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FullScanProgress {
    /// Where it goes on.
    pub after: Place,
    /// The time of the pass that began it.
    pub began_at: UtcInstant,
    /// Whether the values cannot be listed, or not be looked up, so that this is how expired files are found.
    pub is_listing: bool,
    /// Before it goes on, the listed values whose ranges ended from then on are looked up; `None` once all were.
    #[serde(default)]
    pub list_from: Option<UtcInstant>,
    /// Whether it counts as a full pass at its end; else it only finds what is due.
    pub is_full: bool,
    /// What it has counted so far.
    #[serde(rename = "census")]
    pub kept_counts: KeptCounts,
}

/// What is remembered of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// The watermark: the values of all files that began up to its snapshot, and of those of later ones with
    /// ids below its counter, are in the calendar, but for what a first scan has not come to.
    pub watermark: FileWatermark,
    /// By what the rows were judged.
    pub book: BookDigest,
    /// The specs whose rows stand for days.
    pub days: BTreeSet<i64>,
    /// Specs of files that were met and could not be dated, for what they mean was not known.
    pub unknown_specs: BTreeSet<i64>,
    /// The time by which the last full pass that finished decided.
    pub full_pass_at: Option<UtcInstant>,
    /// Whether another one is owed at once.
    pub owes_full_pass: bool,
    /// A full scan that has not come to its end.
    pub full_scan: Option<FullScanProgress>,
    /// What the last finished one counted, and when.
    pub kept_counts: Option<(KeptCounts, UtcInstant)>,
    /// The rule by which passes drop; `None` before one has.
    pub rule_change: Option<RuleChange>,
}

impl Memory {
    /// Of a table that no pass has looked at, or whose memory is good for nothing: a full pass follows, and
    /// files that are committed from now on are late.
    pub fn new(watermark: FileWatermark, book: BookDigest) -> Self {
        Memory {
            watermark,
            book,
            days: BTreeSet::new(),
            unknown_specs: BTreeSet::new(),
            full_pass_at: None,
            owes_full_pass: false,
            full_scan: None,
            kept_counts: None,
            rule_change: None,
        }
    }

    /// What of a memory may be relied on: nothing that lies in the future. Where the watermark does, what it
    /// covers is unknown, and a full pass is owed.
    pub fn checked(mut self, current_watermark: FileWatermark, now: UtcInstant) -> Self {
        let is_ahead = self.watermark.files_below > current_watermark.files_below
            || self.watermark.through_snapshot > current_watermark.through_snapshot;
        if is_ahead {
            self.watermark = current_watermark;
            self.full_scan = None;
            self.owes_full_pass = true;
        }
        self.full_pass_at = self.full_pass_at.filter(|at| *at <= now);
        if self.full_scan.as_ref().is_some_and(|full_scan| full_scan.began_at > now) {
            self.full_scan = None;
            self.owes_full_pass = true;
        }
        self.kept_counts = self.kept_counts.filter(|(_, at)| *at <= now);
        let is_past = |change: &RuleChange| {
            change.at <= now && change.files_below <= current_watermark.files_below
        };
        self.rule_change = self.rule_change.filter(is_past);
        self
    }

    /// Whether a full pass begins now: none has come to its end, one is owed, or due at `now`, and none is under
    /// way.
    pub fn begins_full_pass(
        &self,
        due: impl Fn(UtcInstant) -> UtcInstant,
        now: UtcInstant,
    ) -> bool {
        let is_due = self.owes_full_pass || self.full_pass_at.is_none_or(|at| due(at) <= now);
        is_due && !self.full_scan.as_ref().is_some_and(|full_scan| full_scan.is_full)
    }

    /// Whether so many late files are more than half of those that the last full pass counted: then a full
    /// pass is the shorter way.
    pub fn is_outgrown_by(&self, late_files: i64) -> bool {
        self.kept_counts
            .as_ref()
            .is_some_and(|(kept_counts, _)| late_files > kept_counts.kept_files() / 2)
    }
}

/// When the next full pass over a table is due: `every` after the last one. Where they are spread, each table has
/// its own moment within `every`, by a hash of it, and a full pass is due at the first such moment after the last
/// one: those of tables that came to be governed together do not fall on one pass again and again.
pub fn full_pass_due_at(
    at: UtcInstant,
    table: Uuid,
    every: Duration,
    are_spread: bool,
) -> UtcInstant {
    let length = every.as_nanos() as i128;
    if !are_spread || length == 0 {
        return at.plus(every);
    }
    // Only the last bits of some kinds of UUID are random, of others the first: all are used.
    let hash = table
        .as_bytes()
        .iter()
        .fold(0_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    let moment = length / (1 << 32) * i128::from(hash);
    at.plus_nanos(length - (at.nanos() - moment).rem_euclid(length))
}

#[cfg(test)]
mod tests;
