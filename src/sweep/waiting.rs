//! What has expired and stays all the same: why, since when, and when it is looked at next. Pure.
//!
//! It is remembered of a table, whatever the policy and the rules that it was found by. It never says
//! that a file may go. It keeps one from going in one case alone: a poisoned tuple, which the server
//! refused to end while other commits of its table went through, is not asked for until its next look.
//! Beside it stands which tuples were refused together, and are halved further (`parts`).

pub mod parts;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::batch::{Batch, BatchLimits, group};
use super::evidence::Withheld;
use super::plan::ExpiredTuple;
use crate::backoff::Backoff;
use crate::catalog::discovery::TupleOfSpec;
use crate::instant::UtcInstant;
use crate::window::{KeptReason, StoredTuple};
use parts::{Part, Parts};

/// More than this are not remembered one by one: poisoned ones first, then those whose ranges ended
/// first.
pub const MOST: usize = 1_000;

/// The pauses of a poisoned tuple.
const POISONED: Backoff =
    Backoff { shortest: Duration::from_secs(15 * 60), longest: Duration::from_secs(24 * 3600) };

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
    /// It has expired by its values, and its evidence keeps it.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// The spec of its files.
    pub spec_id: i64,
    /// Its values.
    pub tuple: StoredTuple,
    /// As a person read it when it was found.
    pub display: String,
    /// Why.
    pub reason: WaitReason,
    /// Since when for this reason.
    pub since: UtcInstant,
    /// The time of the last pass that found it so.
    pub seen_at: UtcInstant,
    /// Not before this is it tried again, or expected to go; `None`: each pass looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_look: Option<UtcInstant>,
    /// How often the server refused it alone.
    #[serde(default)]
    pub tries: u32,
    /// What the server said of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// The same with what it said of the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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

    /// Whether it can be relied on that the tuple still waits, a `grace` after a pass should have
    /// looked: a memory that no pass has kept up says nothing.
    pub fn is_current(&self, now: UtcInstant, grace: Duration) -> bool {
        let looked = match (self.reason, self.next_look) {
            (WaitReason::Poisoned, Some(next)) => next.max(self.seen_at),
            _ => self.seen_at,
        };
        self.is_past(now) && looked.plus(grace) >= now
    }

    /// Whether a pass of a time up to `now` can have written it.
    fn is_past(&self, now: UtcInstant) -> bool {
        let next = match self.reason {
            WaitReason::Poisoned => self.next_look.unwrap_or(now),
            _ => now,
        };
        self.since <= now && self.seen_at <= now && next <= now.plus(POISONED.longest)
    }

    /// In words, for logs and reports.
    pub fn in_words(&self) -> String {
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

/// As it is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    /// The tuples, poisoned ones first, then by the ends of their ranges; at most [`MOST`].
    pub tuples: Vec<Waiting>,
    /// By reason how many more there were.
    #[serde(default)]
    pub more: BTreeMap<String, usize>,
    /// What was refused together, and is halved further.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

/// What waits of a table, while a pass is at work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitingList {
    tuples: HashMap<TupleOfSpec, Waiting>,
    /// Those that this pass met and that stay.
    met: HashSet<TupleOfSpec>,
    /// What was refused together.
    pub parts: Parts,
}

impl WaitingList {
    /// What is remembered, as far as a pass at `now` can rely on it.
    pub fn of(remembered: Remembered, now: UtcInstant) -> Self {
        let past = remembered.tuples.into_iter().filter(|waiting| waiting.is_past(now));
        let tuples = past.map(|waiting| (waiting.key(), waiting)).collect();
        WaitingList { tuples, met: HashSet::new(), parts: Parts::of(remembered.parts, now) }
    }

    /// The tuple's entry, where it is poisoned.
    pub fn poison(&self, tuple: &TupleOfSpec) -> Option<&Waiting> {
        self.tuples.get(tuple).filter(|waiting| waiting.reason == WaitReason::Poisoned)
    }

    /// The poisoned tuples, the oldest range first.
    pub fn poisoned(&self) -> Vec<&Waiting> {
        let of = self.tuples.values().filter(|waiting| waiting.reason == WaitReason::Poisoned);
        let mut poisoned: Vec<_> = of.collect();
        poisoned.sort_by_key(|waiting| order(waiting));
        poisoned
    }

    /// Notes that a tuple is still there, whatever keeps it.
    pub fn meet(&mut self, expired: &ExpiredTuple, now: UtcInstant) {
        if let Some(waiting) = self.tuples.get_mut(&expired.tuple) {
            (waiting.seen_at, waiting.files) = (now, expired.counts.files);
            self.met.insert(expired.tuple.clone());
        }
    }

    /// Notes why a tuple stays. What it was poisoned with is returned where that is over.
    pub fn keep(
        &mut self,
        expired: &ExpiredTuple,
        reason: WaitReason,
        next_look: Option<UtcInstant>,
        now: UtcInstant,
    ) -> Option<Waiting> {
        let before = self.tuples.remove(&expired.tuple);
        let is_same = before.as_ref().is_some_and(|before| before.reason == reason);
        let waiting = Waiting {
            spec_id: expired.tuple.spec_id,
            tuple: expired.tuple.tuple.clone(),
            display: expired.display.clone(),
            reason,
            since: before.as_ref().filter(|_| is_same).map_or(now, |before| before.since),
            seen_at: now,
            next_look,
            tries: 0,
            said: None,
            error: None,
            files: expired.counts.files,
            range_end: expired.range_end,
        };
        self.tuples.insert(expired.tuple.clone(), waiting);
        self.met.insert(expired.tuple.clone());
        before.filter(|before| !is_same && before.reason == WaitReason::Poisoned)
    }

    /// Notes that the server refused a tuple: `said` is what it said, `error` the same with what it said
    /// of the row, which may hold the snapshot that was tried. The next look is after a pause that
    /// doubles with each try. Its entry, where it is new or the server said something else before.
    pub fn refuse(
        &mut self,
        expired: &ExpiredTuple,
        said: &str,
        error: String,
        now: UtcInstant,
    ) -> Option<&Waiting> {
        let before = self.poison(&expired.tuple).cloned();
        let tries = before.as_ref().map_or(0, |before| before.tries);
        // The whole of it: passes of one daemon do not get in each other's way.
        let next_look = now.plus(POISONED.pause(tries, 1.0));
        self.keep(expired, WaitReason::Poisoned, Some(next_look), now);
        self.parts.is_poisoned(expired);
        let waiting = self.tuples.get_mut(&expired.tuple)?;
        waiting.tries = tries.saturating_add(1);
        let is_news = before.is_none_or(|before| before.said.as_deref() != Some(said));
        waiting.said = Some(said.to_owned());
        waiting.error = Some(error);
        is_news.then_some(&*waiting)
    }

    /// Forgets a tuple that went. What it was poisoned with is returned.
    pub fn went(&mut self, tuple: &TupleOfSpec) -> Option<Waiting> {
        self.met.remove(tuple);
        self.tuples.remove(tuple).filter(|waiting| waiting.reason == WaitReason::Poisoned)
    }

    /// Forgets what a pass that looked at everything did not meet; the poisoned ones are returned.
    pub fn forget_unmet(&mut self) -> Vec<Waiting> {
        let unmet: Vec<_> =
            self.tuples.keys().filter(|tuple| !self.met.contains(*tuple)).cloned().collect();
        unmet.iter().filter_map(|tuple| self.went(tuple)).collect()
    }

    /// Forgets what no pass has met since then; the poisoned ones are returned.
    pub fn forget_unseen(&mut self, since: UtcInstant) -> Vec<Waiting> {
        let unseen = self.tuples.values().filter(|waiting| waiting.seen_at < since);
        let unseen: Vec<_> = unseen.map(Waiting::key).collect();
        unseen.iter().filter_map(|tuple| self.went(tuple)).collect()
    }

    /// What another look confirms at `now`: the expired tuples that the next pass ends, and what waits.
    /// A busy tuple is in both, for the next pass tries it. What the evidence keeps waits as far as a
    /// pass has noted it.
    pub fn confirmed(
        mut self,
        expired: Vec<ExpiredTuple>,
        withheld: &[Withheld],
        limits: &BatchLimits,
        now: UtcInstant,
    ) -> (Vec<ExpiredTuple>, Vec<Waiting>) {
        let mut goes = Vec::new();
        for tuple in expired {
            let reason = self.tuples.get(&tuple.tuple).map(|waiting| waiting.reason);
            let is_oversize = group(&[tuple.counts.files], limits) == [Batch::Oversize(0)];
            match reason {
                _ if is_oversize => {
                    self.keep(&tuple, WaitReason::Oversize, None, now);
                }
                Some(WaitReason::Poisoned) => self.meet(&tuple, now),
                Some(WaitReason::Busy) => {
                    self.meet(&tuple, now);
                    goes.push(tuple);
                }
                _ => goes.push(tuple),
            }
        }
        for kept in withheld {
            let reason = WaitReason::Evidence(kept.reason);
            let noted = self.tuples.get(&kept.tuple.tuple);
            if noted.is_some_and(|waiting| waiting.reason == reason) {
                self.keep(&kept.tuple, reason, kept.leaves_at, now);
            }
        }
        self.forget_unmet();
        (goes, self.to_remember().tuples)
    }

    /// What is to be remembered.
    pub fn to_remember(&self) -> Remembered {
        let mut tuples: Vec<Waiting> = self.tuples.values().cloned().collect();
        tuples.sort_by_key(|waiting| (waiting.reason != WaitReason::Poisoned, order(waiting)));
        let mut more = BTreeMap::new();
        for waiting in tuples.drain(MOST.min(tuples.len())..) {
            *more.entry(waiting.reason.name().to_owned()).or_insert(0) += 1;
        }
        Remembered { tuples, more, parts: self.parts.to_remember() }
    }
}

fn order(waiting: &Waiting) -> (UtcInstant, i64, StoredTuple) {
    (waiting.range_end, waiting.spec_id, waiting.tuple.clone())
}

impl Remembered {
    /// How many there are, beside those that are remembered one by one, of the reasons that are `wanted`.
    pub fn more_of(&self, wanted: impl Fn(WaitReason) -> bool) -> usize {
        let reason = |name: &str| serde_json::from_value::<WaitReason>(name.into()).ok();
        let is_wanted = |name: &str| reason(name).is_some_and(&wanted);
        let of = self.more.iter().filter(|(name, _)| is_wanted(name));
        of.fold(0, |sum, (_, number)| sum.saturating_add(*number))
    }
}

#[cfg(test)]
mod tests;
