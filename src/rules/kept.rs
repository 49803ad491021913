//! What is kept of a table, and why.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::instant::earlier;
use crate::rules::expiry::{KeptReason, StoredTuple};
use crate::rules::instant::UtcInstant;

/// How many samples of each kind of kept files are shown.
pub const SAMPLES: usize = 5;

/// A tuple that stays, as a sample.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptSample {
    /// The spec of its files.
    pub spec_id: Option<i64>,
    /// The values that they have.
    pub tuple: StoredTuple,
    /// As a person reads it.
    pub display: String,
    /// How many files.
    pub files: i64,
    /// Where the values may mean several things, all of them.
    #[serde(rename = "readings", default, skip_serializing_if = "Vec::is_empty")]
    pub interpretations: Vec<String>,
    /// When the range of its values ended, where something else keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_end: Option<UtcInstant>,
    /// The latest instant of its rows by their statistics, where it is later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_row: Option<UtcInstant>,
    /// When it will have expired if nothing changes, where something else than its values says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaves_at: Option<UtcInstant>,
}

impl KeptSample {
    /// The tuple as a log line has it, with all that explains why it stays.
    pub fn describe(&self) -> String {
        let mut words = self.display.clone();
        if !self.interpretations.is_empty() {
            words.push_str(&format!(" (may be: {})", self.interpretations.join("; ")));
        }
        for (what, at) in [
            ("ended", self.range_end),
            ("newest row", self.newest_row),
            ("is dropped at", self.leaves_at),
        ] {
            if let Some(at) = at {
                words.push_str(&format!(", {what} {at}"));
            }
        }
        words
    }
}

/// The files that stay for one reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptGroup {
    /// How many.
    pub files: i64,
    /// Up to [`SAMPLES`] of their tuples.
    pub samples: Vec<KeptSample>,
}

/// What stays of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptCounts {
    /// By reason.
    pub kept: BTreeMap<KeptReason, KeptGroup>,
    /// When the next of what stays goes, if nothing changes.
    pub next_expiry: Option<UtcInstant>,
}

/// Whether a policy does anything for its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// It dates files, or there are none.
    Healthy,
    /// There are live files and it can date none of them.
    Unhealthy,
    /// Not counted.
    Unknown,
}

/// The reasons that mean "unknown": not simply young, and not simply out of scope.
pub fn is_undatable(reason: KeptReason) -> bool {
    !matches!(
        reason,
        KeptReason::NotExpired
            | KeptReason::Future
            | KeptReason::NewerRowsThanPartition
            | KeptReason::Held
            | KeptReason::BlastRadius
            | KeptReason::AmongNewest
            | KeptReason::Uncovered
    )
}

impl KeptCounts {
    /// All files that stay.
    pub fn kept_files(&self) -> i64 {
        self.kept.values().map(|group| group.files).sum()
    }

    /// The files that stay for a reason.
    pub fn files(&self, reason: KeptReason) -> i64 {
        self.kept.get(&reason).map_or(0, |group| group.files)
    }

    /// The files of which it is unknown when they expire.
    pub fn undatable_files(&self) -> i64 {
        let undatable = |(reason, _): &(&KeptReason, &KeptGroup)| is_undatable(**reason);
        self.kept.iter().filter(undatable).map(|(_, group)| group.files).sum()
    }

    /// A policy over files of which it dates none is unhealthy. Nothing that expired is counted
    /// here: whoever found any knows better.
    pub fn health(&self) -> Health {
        let datable =
            self.kept.iter().any(|(reason, group)| reason.is_datable() && group.files > 0);
        match datable || self.kept_files() == 0 {
            true => Health::Healthy,
            false => Health::Unhealthy,
        }
    }

    /// Counts one file that stays.
    pub fn keep(
        &mut self,
        reason: KeptReason,
        leaves_at: Option<UtcInstant>,
        spec_id: Option<i64>,
        tuple: StoredTuple,
        display: impl FnOnce(&StoredTuple) -> (String, Vec<String>),
    ) {
        self.note_expiry(leaves_at);
        let group = self.kept.entry(reason).or_default();
        group.files += 1;
        let same = |sample: &KeptSample| sample.spec_id == spec_id && sample.tuple == tuple;
        match group.samples.iter().position(same) {
            Some(at) => group.samples[at].files += 1,
            None if group.samples.len() < SAMPLES => {
                let (display, interpretations) = display(&tuple);
                group.samples.push(KeptSample {
                    spec_id,
                    tuple,
                    display,
                    files: 1,
                    interpretations,
                    range_end: None,
                    newest_row: None,
                    leaves_at: None,
                });
            }
            None => {}
        }
    }

    /// Counts the files of a tuple that stays, with all that is shown of it.
    pub fn keep_sample(&mut self, reason: KeptReason, sample: KeptSample) {
        self.note_expiry(sample.leaves_at);
        let group = self.kept.entry(reason).or_default();
        group.files = group.files.saturating_add(sample.files);
        if group.samples.len() < SAMPLES {
            group.samples.push(sample);
        }
    }

    fn note_expiry(&mut self, leaves_at: Option<UtcInstant>) {
        self.next_expiry = earlier(self.next_expiry, leaves_at);
    }
}

#[cfg(test)]
mod tests;
