//! A change of a policy by which partitions may go earlier than before comes into force only after
//! `guard.policy_grace`, unless whoever set it was shown what is dropped, and confirmed that. Until then a partition is
//! dropped only if both what was in force and what was asked for would drop it: so what keeps longer acts at once.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Mode, Policy};
use crate::config::Config;
use crate::rules::instant::UtcInstant;
use crate::rules::keep::Keep;

/// The part of the configuration that policies are held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyLimits {
    /// The shortest `keep` that is acted upon.
    pub min_keep: Duration,
    /// How long a change waits by which partitions may go earlier; zero for not at all.
    pub grace: Duration,
}

impl PolicyLimits {
    /// Those of the configuration.
    pub fn from_config(config: &Config) -> Self {
        PolicyLimits {
            min_keep: config.guard.min_keep.get(),
            grace: config.guard.policy_grace.get(),
        }
    }
}

/// Terms of a policy that are not in force yet. Names are those of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = PendingChange)]
pub struct Pending {
    /// From when on they are in force; null for a property that no pass has read yet: it waits for
    /// `guard.policy_grace` from then on.
    pub until: Option<UtcInstant>,
    #[serde(flatten)]
    pub terms: PendingTerms,
}

impl Pending {
    /// What waits, in words.
    pub fn describe(&self) -> String {
        let PendingTerms { keep, keep_last, mode, .. } = &self.terms;
        let last = keep_last.map(|number| format!(", the newest {number}")).unwrap_or_default();
        match self.until {
            Some(until) => format!("keep {keep}{last}, {mode} from {until} on"),
            None => {
                format!("keep {keep}{last}, {mode}, guard.policy_grace after a pass has read it")
            }
        }
    }
}

/// The terms of a policy by which partitions are dropped. Names are those of the stored JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PendingTerms {
    /// How long a partition stays after its last instant, as written.
    pub keep: String,
    /// The same in seconds.
    pub keep_seconds: i64,
    /// So many of the newest distinct time values that have a live file stay whatever their age.
    pub keep_last: Option<i32>,
    /// `enforce`, `observe` or `paused`.
    pub mode: Mode,
}

impl Policy {
    /// The policy as whoever set it wants it, whether or not that is in force yet.
    #[must_use]
    pub fn asked(self) -> Self {
        let Some(Pending { terms, .. }) = self.pending else { return self };
        let PendingTerms { keep, keep_seconds, keep_last, mode } = terms;
        Policy {
            keep: Keep::from_stored(keep, keep_seconds),
            keep_last,
            mode,
            pending: None,
            ..self
        }
    }

    /// The policy as it is in force at a time, once a pass has brought in what is pending.
    #[must_use]
    pub fn at(self, now: UtcInstant) -> Self {
        let until = self.pending.as_ref().and_then(|pending| pending.until);
        if until.is_some_and(|until| until <= now) { self.asked() } else { self }
    }

    /// The policy as it is in force once it takes the place of another one, which was in force `before`.
    #[must_use]
    pub fn after(self, before: Option<&Self>, limits: PolicyLimits) -> Self {
        // One that keeps too short drops nothing.
        let before = before.filter(|before| before.keep.length() >= limits.min_keep);
        if limits.grace.is_zero() || self.is_confirmed || !self.goes_earlier(before) {
            return self;
        }
        // What keeps as long as what waits already waits no longer than that.
        let waits = before.and_then(|before| before.pending.as_ref()?.until);
        let until = waits.filter(|_| !self.goes_earlier(before.cloned().map(Self::asked).as_ref()));
        let terms = PendingTerms {
            keep: self.keep.text().to_owned(),
            keep_seconds: self.keep.seconds(),
            keep_last: self.keep_last,
            mode: self.mode,
        };
        let pending = Some(Pending { until, terms });
        match before.filter(|before| before.is_of_column(&self)) {
            Some(before) => {
                let is_longer = before.keep.length() > self.keep.length();
                let keep = if is_longer { before.keep.clone() } else { self.keep };
                Policy { keep, keep_last: self.keep_last.max(before.keep_last), pending, ..self }
            }
            // Nothing was dropped by what was in force.
            None => {
                let is_paused = before.is_some_and(|before| before.mode == Mode::Paused);
                let mode = if is_paused { Mode::Paused } else { Mode::Observe };
                Policy { mode, pending, ..self }
            }
        }
    }

    /// Whether it may drop a partition that `before` keeps.
    fn goes_earlier(&self, before: Option<&Self>) -> bool {
        let keeps_less = |before: &Self| {
            self.keep.length() < before.keep.length() || self.keep_last < before.keep_last
        };
        let before = before.filter(|before| before.is_of_column(self));
        self.mode == Mode::Enforce && before.is_none_or(keeps_less)
    }

    /// Whether it drops by the column of the other one.
    fn is_of_column(&self, other: &Self) -> bool {
        self.mode == Mode::Enforce && self.source_field_id == other.source_field_id
    }
}

#[cfg(test)]
mod tests;
