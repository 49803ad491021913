//! What has expired and is kept all the same: why, since when, and when it is looked at next. Pure.
//!
//! It is remembered for a table, whatever policy and rules it was found by. It never allows a drop; it only
//! delays one: a tuple in its pause is not looked at until the pause ends, except by a full pass or by
//! `tailrace sweep`. It also holds which tuples were refused together and are halved further (`parts`).

mod list;
pub mod parts;
mod pauses;
pub mod store;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::catalog::tuples::TupleOfSpec;
use crate::rules::expiry::{KeptReason, StoredTuple};
use crate::rules::instant::UtcInstant;
pub use list::WaitingList;
use parts::Part;
pub use pauses::Pauses;

/// More poisoned tuples of a table than this are not told one by one: the table is given up until the
/// next pass instead.
pub const MOST_POISONED: usize = 1_000;

/// More others than this are not remembered one by one, but those whose ranges ended first.
pub const MOST: usize = 10_000;

/// Why a tuple waits. Names are those of the stored and the shown JSON.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// The server refuses to end its files, and ends others of the table.
    Poisoned,
    /// It is larger than `sweep.max_files_per_tuple`, and `sweep.oversize` is `skip`.
    Oversize,
    /// Somebody else had locked rows of it.
    Busy,
    /// It has expired by its values, and its evidence or a hold keeps it.
    #[serde(untagged)]
    Evidence(KeptReason),
}

impl WaitReason {
    /// The reason as JSON and logs have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Poisoned => "poisoned",
            Self::Oversize => "oversize",
            Self::Busy => "busy",
            Self::Evidence(reason) => reason.name(),
        }
    }
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A tuple that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The spec of its files.
    pub spec_id: i64,
    /// Its values.
    pub tuple: StoredTuple,
    /// As a person read it when it was found.
    pub display: String,
    pub reason: WaitReason,
    /// Since when for this reason.
    pub since: UtcInstant,
    /// The time of the last pass that met it.
    pub seen_at: UtcInstant,
    /// Not before this is it looked at again; `None`: the next pass looks.
    pub next_look: Option<UtcInstant>,
    /// How many looks in a row found it so for this reason; of a poisoned one, how often the server
    /// refused it alone.
    pub tries: u32,
    /// What the server said of it.
    pub said: Option<String>,
    /// The same with what it said of the row.
    pub error: Option<String>,
    /// How many files, as far as the pass looked.
    pub files: i64,
    /// When the range of its values ended.
    pub range_end: UtcInstant,
}

impl Waiting {
    /// Which tuple.
    pub fn key(&self) -> TupleOfSpec {
        TupleOfSpec { spec_id: self.spec_id, tuple: self.tuple.clone() }
    }

    /// When its pause ends; `None` where there is none, where it is over, or where it would be longer
    /// than any pause: no pass can have written that.
    pub fn pauses_until(&self, now: UtcInstant, pauses: &Pauses) -> Option<UtcInstant> {
        let farthest = now.plus(pauses.longest());
        self.next_look.filter(|next| now < *next && *next <= farthest)
    }

    /// Whether it can be relied on that the tuple still waits, a `grace` after a pass should have
    /// looked: a memory that no pass has kept up says nothing.
    pub fn is_current(&self, now: UtcInstant, grace: Duration, pauses: &Pauses) -> bool {
        let farthest = self.seen_at.plus(pauses.longest());
        let next = self.next_look.filter(|next| *next <= farthest);
        let should_look = next.map_or(self.seen_at, |next| next.max(self.seen_at));
        self.is_past(now) && should_look.plus(grace) >= now
    }

    /// Whether a pass of a time up to `now` can have written it.
    fn is_past(&self, now: UtcInstant) -> bool {
        self.since <= now && self.seen_at <= now
    }

    /// In words, for logs and reports.
    pub fn describe(&self) -> String {
        let error = self.error.as_deref().map(|error| format!(": {error}"));
        let next = self.next_look.map(|next| format!("; next look {next}"));
        let Waiting { display, reason, since, .. } = self;
        let (error, next) = (error.unwrap_or_default(), next.unwrap_or_default());
        format!("partition {display} waits ({reason}) since {since}{error}{next}")
    }

    /// Whether it has expired by the keep in force, which may be longer than the one that it was found by.
    pub fn has_expired(&self, keep: Duration, now: UtcInstant) -> bool {
        self.range_end.plus(keep) <= now
    }
}

/// What is remembered of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remembered {
    /// The tuples, poisoned ones first, then by the ends of their ranges; at most [`MOST_POISONED`] and
    /// [`MOST`] others.
    pub tuples: Vec<Waiting>,
    /// Those that are not remembered one by one.
    pub more: More,
    /// What was refused together, and is halved further.
    pub parts: Vec<Part>,
}

/// How many tuples of a table wait that are not remembered one by one.
///
/// A pass meets only what is due, so it may meet some of them, or none. They are looked at again before their
/// pauses are over, and counted then: until that time no pass tells fewer than the one before, unless it has met
/// all.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct More {
    /// By reason how many.
    #[serde(flatten)]
    pub counts: BTreeMap<String, usize>,
    /// When the longest pause ends that one of them can have; `None` where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UtcInstant>,
}

/// Poisoned ones first, then by the ends of their ranges.
fn order(one: &Waiting, other: &Waiting) -> std::cmp::Ordering {
    let of = |waiting: &Waiting| {
        (waiting.reason != WaitReason::Poisoned, waiting.range_end, waiting.spec_id)
    };
    of(one).cmp(&of(other)).then_with(|| one.tuple.cmp(&other.tuple))
}

impl Remembered {
    /// Whether no further tuple that is not poisoned would be remembered one by one.
    pub fn is_full(&self) -> bool {
        let others = self.tuples.iter().filter(|one| one.reason != WaitReason::Poisoned);
        others.count() >= MOST
    }

    /// Forgets how many more there were, where each was to be looked at again a `grace` ago or nobody noted when, or
    /// where they have not expired by the keep in force: they ended after the last of a full list.
    pub fn forget_old_more(&mut self, keep: Duration, now: UtcInstant, grace: Duration) {
        let is_over = self.more.until.is_none_or(|until| until.plus(grace) < now);
        let last = self.tuples.last().filter(|_| self.is_full());
        if is_over || last.is_some_and(|last| !last.has_expired(keep, now)) {
            self.more = More::default();
        }
    }

    /// How many there are, beside those that are remembered one by one, of the reasons that are `wanted`.
    pub fn more_of(&self, wanted: impl Fn(WaitReason) -> bool) -> usize {
        let reason = |name: &str| serde_json::from_value::<WaitReason>(name.into()).ok();
        let is_wanted = |name: &str| reason(name).is_some_and(&wanted);
        let of = self.more.counts.iter().filter(|(name, _)| is_wanted(name));
        of.fold(0, |sum, (_, number)| sum.saturating_add(*number))
    }
}

#[cfg(test)]
mod tests;
