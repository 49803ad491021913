//! The ranges of tuples that one commit could not drop and that were not yet tried in halves when the work on
//! them stopped. Pure.
//!
//! It decides in which order and in how large commits tuples are tried, and nothing else: it keeps no tuple
//! from being dropped. The next time slice or pass goes on where the last one stopped, and the same commits
//! are not refused again.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::rules::expiry::StoredTuple;
use crate::rules::instant::UtcInstant;
use crate::sweep::expired::ExpiredTuple;

/// More parts than this are not remembered: the oldest ones are made one.
pub const MOST_PARTS: usize = 200;

/// A tuple's place in the order in which tuples are dropped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Bound {
    /// When the range of its values ended.
    pub range_end: UtcInstant,
    /// The spec of its files.
    pub spec_id: i64,
    /// Its values.
    pub tuple: StoredTuple,
}

impl Bound {
    fn of(expired: &ExpiredTuple) -> Self {
        Bound {
            range_end: expired.range_end,
            spec_id: expired.tuple.spec_id,
            tuple: expired.tuple.tuple.clone(),
        }
    }
}

/// What is known of a part. Names are those of the stored JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartState {
    /// A half of what was refused, which was not tried itself.
    Untried,
    /// Its tuples were refused together.
    Together,
    /// Its one tuple was refused alone, while no other commit of the table went through.
    Alone,
}

/// The tuples from one to another, both included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The first one.
    pub first: Bound,
    /// The last one.
    pub last: Bound,
    /// How often what it was part of was halved.
    pub halvings: u32,
    /// What is known of it.
    pub state: PartState,
    /// The time of the last pass that met a tuple of it.
    pub seen_at: UtcInstant,
}

impl Part {
    fn has(&self, place: &Bound) -> bool {
        self.first <= *place && *place <= self.last
    }
}

/// Tuples that lie in one part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartOf<T> {
    /// Which; several, but where the part's state is `Alone` or others of it went.
    pub tuples: Vec<T>,
    /// As the part's.
    pub halvings: u32,
    /// As the part's.
    pub state: PartState,
}

/// The parts of a table, while a pass is at work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// As they were remembered.
    before: Vec<Part>,
    /// The indexes of those of which this pass met a tuple: what it left of them is in `left`.
    met: BTreeSet<usize>,
    /// What this pass left.
    left: Vec<Part>,
}

impl Parts {
    /// What is remembered, as far as a pass at `now` can have met it before.
    pub fn of(remembered: Vec<Part>, now: UtcInstant) -> Self {
        let before = remembered.into_iter().filter(|part| part.seen_at <= now).collect();
        Parts { before, ..Parts::default() }
    }

    /// Sorts tuples into those that lie in no part, and those of each part, in their order: the oldest
    /// part first, but those of tuples that were refused alone last, and in the order in which they were.
    pub fn sort(
        &mut self,
        tuples: Vec<ExpiredTuple>,
    ) -> (Vec<ExpiredTuple>, Vec<PartOf<ExpiredTuple>>) {
        let mut of_parts: Vec<Vec<ExpiredTuple>> = vec![Vec::new(); self.before.len()];
        let mut others = Vec::new();
        for expired in tuples {
            let place = Bound::of(&expired);
            let parts = self.before.iter().enumerate().filter(|(_, part)| part.has(&place));
            // Parts of several batches may overlap: the narrowest says the most.
            let narrowness = |part: &Part| (part.state == PartState::Alone, part.halvings);
            match parts.max_by_key(|(_, part)| narrowness(part)) {
                Some((at, _)) => of_parts[at].push(expired),
                None => others.push(expired),
            }
        }
        let mut parts: Vec<_> = self.before.iter().zip(of_parts).enumerate().collect();
        parts.retain(|(_, (_, tuples))| !tuples.is_empty());
        self.met.extend(parts.iter().map(|(at, _)| at));
        parts.sort_by_key(|(_, (part, _))| match part.state {
            PartState::Alone => (true, None),
            PartState::Untried | PartState::Together => (false, Some(&part.first)),
        });
        let part_of = |(part, tuples): (&Part, _)| PartOf {
            tuples,
            halvings: part.halvings,
            state: part.state,
        };
        (others, parts.into_iter().map(|(_, part)| part_of(part)).collect())
    }

    /// Notes what the work on some tuples left.
    pub fn leave(&mut self, part: &PartOf<&ExpiredTuple>, now: UtcInstant) {
        let places = || part.tuples.iter().map(|expired| Bound::of(expired));
        let (Some(first), Some(last)) = (places().min(), places().max()) else { return };
        let PartOf { halvings, state, .. } = *part;
        self.left.push(Part { first, last, halvings, state, seen_at: now });
    }

    /// Forgets a tuple that was refused alone, and is known by itself from here on.
    pub fn is_poisoned(&mut self, expired: &ExpiredTuple) {
        let place = Bound::of(expired);
        self.left.retain(|part| part.state != PartState::Alone || part.first != place);
    }

    /// Forgets the parts of which no tuple was met since then.
    pub fn forget_unmet(&mut self, since: UtcInstant) {
        let mut at = 0..;
        let met = std::mem::take(&mut self.met);
        // Those that were met are in `left`, as far as anything is left of them.
        self.before
            .retain(|part| !at.next().is_some_and(|at| met.contains(&at)) && part.seen_at >= since);
    }

    /// What is to be remembered: at most [`MOST_PARTS`], those that wait the longest first.
    pub fn to_remember(&self) -> Vec<Part> {
        let before = self.before.iter().enumerate().filter(|(at, _)| !self.met.contains(at));
        let mut parts: Vec<Part> =
            before.map(|(_, part)| part).chain(&self.left).cloned().collect();
        if parts.len() <= MOST_PARTS {
            return parts;
        }
        parts.sort_by(|a, b| a.first.cmp(&b.first));
        let newer = parts.split_off(parts.len() - (MOST_PARTS - 1));
        let one = parts.into_iter().reduce(|one, next| Part {
            last: one.last.max(next.last),
            halvings: one.halvings.min(next.halvings),
            state: PartState::Together,
            seen_at: one.seen_at.max(next.seen_at),
            first: one.first,
        });
        one.into_iter().chain(newer).collect()
    }
}
