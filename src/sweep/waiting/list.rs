//! The tuples of a table that wait, while a pass works on it. Pure.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::parts::Parts;
use super::{MOST, MOST_POISONED, More, Pauses, Remembered, WaitReason, Waiting, order};
use crate::catalog::tuples::TupleOfSpec;
use crate::rules::batches::{Batch, BatchLimits, group};
use crate::rules::instant::UtcInstant;
use crate::rules::kept::is_undatable;
use crate::sweep::evidence::Withheld;
use crate::sweep::expired::ExpiredTuple;

/// The list, with all that this pass met, however much of it is to be remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingList {
    tuples: HashMap<TupleOfSpec, Waiting>,
    /// Those that this pass met and that stay.
    met: HashSet<TupleOfSpec>,
    /// What was refused together.
    pub parts: Parts,
    pauses: Pauses,
    /// Those that were not remembered one by one, as far as no pass has met all since.
    more: More,
    now: UtcInstant,
    /// Whether the list had no room for them.
    was_full: bool,
}

impl WaitingList {
    /// What is remembered, as far as a pass at `now` can rely on it.
    pub fn of(remembered: Remembered, now: UtcInstant, pauses: Pauses) -> Self {
        let has_more = remembered.more_of(|reason| reason != WaitReason::Poisoned) > 0;
        let was_full = has_more && remembered.is_full();
        let more = remembered.more;
        let past = remembered.tuples.into_iter().filter(|waiting| waiting.is_past(now));
        let tuples = past.map(|waiting| (waiting.key(), waiting)).collect();
        let parts = Parts::of(remembered.parts, now);
        WaitingList { tuples, met: HashSet::new(), parts, pauses, more, now, was_full }
    }

    /// From here on this pass looks at everything: it is a full one.
    pub fn heed_no_pause(&mut self) {
        self.pauses.are_heeded = false;
    }

    /// The tuple's entry, where it is poisoned.
    pub fn poison(&self, tuple: &TupleOfSpec) -> Option<&Waiting> {
        self.tuples.get(tuple).filter(|waiting| waiting.reason == WaitReason::Poisoned)
    }

    /// The tuples that wait for a reason, the oldest range first.
    pub fn waiting_for(&self, reason: WaitReason) -> Vec<&Waiting> {
        let of = self.tuples.values().filter(|waiting| waiting.reason == reason);
        let mut waiting: Vec<_> = of.collect();
        waiting.sort_by(|one, other| order(one, other));
        waiting
    }

    /// How many tuples are poisoned.
    pub fn poisoned(&self) -> usize {
        self.tuples.values().filter(|waiting| waiting.reason == WaitReason::Poisoned).count()
    }

    /// How many files wait of which it is unknown when they expire.
    pub fn undatable_files(&self) -> i64 {
        let is_it = |waiting: &&Waiting| match waiting.reason {
            WaitReason::Evidence(reason) => is_undatable(reason),
            WaitReason::Poisoned | WaitReason::Oversize | WaitReason::Busy => false,
        };
        self.tuples.values().filter(is_it).fold(0, |sum, waiting| sum.saturating_add(waiting.files))
    }

    /// The tuple's entry, where it waits and this pass leaves it alone.
    pub fn paused(&self, tuple: &TupleOfSpec, now: UtcInstant) -> Option<&Waiting> {
        let waiting = self.tuples.get(tuple)?;
        let pauses_until = waiting.pauses_until(now, &self.pauses)?;
        // What the server has refused in this pass it refuses again, however the pass came about: a table
        // has several time slices in one.
        let pause = self.pauses.after(waiting.tries, waiting.reason);
        let was_refused_just_now = waiting.reason == WaitReason::Poisoned
            && pause.is_some_and(|pause| now.plus(pause) == pauses_until);
        (self.pauses.are_heeded || was_refused_just_now).then_some(waiting)
    }

    /// Whether a tuple waits and this pass leaves it alone.
    pub fn is_paused(&self, tuple: &TupleOfSpec, now: UtcInstant) -> bool {
        self.paused(tuple, now).is_some()
    }

    /// When a tuple that waits is looked at next; `None` where that is by the next pass, or where it does not
    /// wait. Also of those that are too many to be remembered one by one.
    pub fn next_look_of(&self, tuple: &TupleOfSpec) -> Option<UtcInstant> {
        self.tuples.get(tuple)?.next_look
    }

    /// Notes that a tuple is still there, whatever keeps it.
    pub fn meet(&mut self, expired: &ExpiredTuple, now: UtcInstant) {
        if let Some(waiting) = self.tuples.get_mut(&expired.tuple) {
            (waiting.seen_at, waiting.files) = (now, expired.counts.files);
            self.met.insert(expired.tuple.clone());
        }
    }

    /// Notes why a tuple stays, after a look at it; `leaves_at` is when it goes if nothing changes. The next
    /// look is after a pause that grows with the looks in a row, and no later than that. What it was
    /// poisoned with is returned where that is over.
    pub fn keep(
        &mut self,
        expired: &ExpiredTuple,
        reason: WaitReason,
        leaves_at: Option<UtcInstant>,
        now: UtcInstant,
    ) -> Option<Waiting> {
        let before = self.tuples.remove(&expired.tuple);
        let same = before.as_ref().filter(|before| before.reason == reason);
        let looks = same.map_or(0, |same| same.tries);
        let pause = |looks| {
            let pause = self.pauses.after(looks, reason)?;
            let next = now.plus(pause);
            Some(leaves_at.map_or(next, |leaves_at| leaves_at.min(next)))
        };
        let (tries, next_look) = match same {
            // Several time slices of a pass are one look.
            Some(same) if same.seen_at == now && looks > 0 => (looks, same.next_look),
            // One of those that are not remembered one by one: how often it was looked at nobody knows,
            // and they are many.
            None if before.is_none() && self.was_full => (1, pause(u32::MAX)),
            _ => (looks.saturating_add(1), pause(looks.saturating_add(1))),
        };
        let waiting = Waiting {
            spec_id: expired.tuple.spec_id,
            tuple: expired.tuple.tuple.clone(),
            display: expired.display.clone(),
            reason,
            since: same.map_or(now, |same| same.since),
            seen_at: now,
            next_look,
            tries,
            said: None,
            error: None,
            files: expired.counts.files,
            range_end: expired.range_end,
        };
        self.tuples.insert(expired.tuple.clone(), waiting);
        self.met.insert(expired.tuple.clone());
        before.filter(|before| before.reason != reason && before.reason == WaitReason::Poisoned)
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
        let tries = before.as_ref().map_or(0, |before| before.tries).saturating_add(1);
        self.keep(expired, WaitReason::Poisoned, None, now);
        self.parts.is_poisoned(expired);
        let waiting = self.tuples.get_mut(&expired.tuple)?;
        let pause = self.pauses.after(tries, WaitReason::Poisoned);
        (waiting.tries, waiting.next_look) = (tries, pause.map(|pause| now.plus(pause)));
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
        self.forget_looked(|_| true)
    }

    /// A pass has looked at everything and tried it: how many there are is what it met.
    pub fn has_met_all(&mut self) {
        self.more = More::default();
    }

    /// Forgets what was looked for and not met; the poisoned ones are returned.
    pub fn forget_looked(&mut self, is_looked: impl Fn(&Waiting) -> bool) -> Vec<Waiting> {
        let met = |waiting: &Waiting| self.met.contains(&waiting.key());
        let unmet = self.tuples.values().filter(|one| is_looked(one) && !met(one));
        let unmet: Vec<_> = unmet.map(Waiting::key).collect();
        unmet.iter().filter_map(|tuple| self.went(tuple)).collect()
    }

    /// Forgets what no pass has met since then; the poisoned ones are returned.
    pub fn forget_unseen(&mut self, since: UtcInstant) -> Vec<Waiting> {
        let unseen = self.tuples.values().filter(|waiting| waiting.seen_at < since);
        let unseen: Vec<_> = unseen.map(Waiting::key).collect();
        unseen.iter().filter_map(|tuple| self.went(tuple)).collect()
    }

    /// What another look confirms at `now`: the expired tuples that passes end, and what waits. A busy
    /// tuple is in both, for it may go as soon as a pass tries it. What the evidence keeps waits as far as
    /// a pass has noted it.
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
                Some(WaitReason::Oversize) if is_oversize => self.meet(&tuple, now),
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
            self.meet(&kept.tuple, now);
            match self.tuples.get_mut(&kept.tuple.tuple) {
                // When it goes says more than when passes look again.
                Some(noted) if noted.reason == reason => {
                    noted.next_look = kept.leaves_at.or(noted.next_look);
                }
                Some(_) | None => {
                    self.met.remove(&kept.tuple.tuple);
                }
            }
        }
        self.forget_unmet();
        (goes, self.to_remember().tuples)
    }

    /// What is to be remembered.
    pub fn to_remember(&self) -> Remembered {
        let (mut poisoned, mut tuples): (Vec<Waiting>, Vec<Waiting>) =
            self.tuples.values().cloned().partition(|one| one.reason == WaitReason::Poisoned);
        let mut counts = BTreeMap::<String, usize>::new();
        for (of, most) in [(&mut poisoned, MOST_POISONED), (&mut tuples, MOST)] {
            of.sort_by(order);
            for waiting in of.drain(most.min(of.len())..) {
                *counts.entry(waiting.reason.name().to_owned()).or_default() += 1;
            }
        }
        let mut more = self.more.clone();
        if !counts.is_empty() {
            more.until = Some(self.now.plus(self.pauses.longest()));
        }
        for (reason, number) in counts {
            let known = more.counts.entry(reason).or_default();
            *known = number.max(*known);
        }
        poisoned.append(&mut tuples);
        Remembered { tuples: poisoned, more, parts: self.parts.to_remember() }
    }
}
