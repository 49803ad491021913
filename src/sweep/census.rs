//! What stays of a table, and why.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::instant::UtcInstant;
use crate::window::{KeptReason, StoredTuple};

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
pub struct Census {
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

/// The reasons that mean "nobody can tell": not simply young, and not simply out of scope.
pub fn is_undatable(reason: KeptReason) -> bool {
    !matches!(reason, KeptReason::NotExpired | KeptReason::Future | KeptReason::Uncovered)
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

    /// The files of which nobody can tell when they expire.
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
        display: impl FnOnce(&StoredTuple) -> String,
    ) {
        self.next_expiry = match (self.next_expiry, leaves_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let group = self.kept.entry(reason).or_default();
        group.files += 1;
        let same = |sample: &KeptSample| sample.spec_id == spec_id && sample.tuple == tuple;
        match group.samples.iter().position(same) {
            Some(at) => group.samples[at].files += 1,
            None if group.samples.len() < SAMPLES => {
                let display = display(&tuple);
                group.samples.push(KeptSample { spec_id, tuple, display, files: 1 });
            }
            None => {}
        }
    }
}
