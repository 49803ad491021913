//! What a pass reads from the memory at its beginning, and what it leaves there for the next one.

use std::time::Duration;

use super::{Enforcement, Reached};
use crate::catalog::live_file::LiveFile;
use crate::rules::fair_queue::Step;
use crate::rules::instant::UtcInstant;
use crate::sweep::ask::{Ask, NEVER};
use crate::sweep::calendar::{self, Row};
use crate::sweep::lease::LeasedSession;
use crate::sweep::memory::{BookDigest, Memory, full_pass_due_at, store};
use crate::sweep::sorter::Sorter;
use crate::sweep::waiting::{self, WaitingList};

impl Enforcement<'_> {
    /// Reads what is remembered, and judges the calendar by the specs as they are known now. Whether a full pass
    /// begins.
    ///
    /// What could not be dated may be datable by other rules, another type of the column, or because a spec is
    /// known now that was not: then a full pass is owed at once. Where values only mean more or less than they
    /// did, the rows are judged anew, and no file is read.
    pub(super) async fn recall(&mut self, session: &mut LeasedSession<'_>) -> anyhow::Result<bool> {
        let (table, now) = (self.finder.table, self.context.now);
        let field = self.policy.source_field_id;
        self.number = session.number();
        let loaded = store::load(session.connection(), table, field).await?;
        let book = BookDigest::of(self.book, field);
        let revision = loaded.as_ref().and_then(|loaded| loaded.policy_revision);
        let guard_revision = loaded.as_ref().map_or(0, |loaded| loaded.guard_revision);
        match loaded {
            Some(loaded) => {
                self.remembered = Some(loaded.memory.clone());
                self.memory = loaded.memory.checked(self.current_watermark, now);
                if self.memory.book != book {
                    self.judge_anew(session, book).await?;
                }
            }
            None => {
                // None, or of another column. A memory whose rows are gone would hide files until the next full
                // pass: it goes before them.
                store::forget(session.connection(), table).await?;
                calendar::write::clear(session.connection(), table).await?;
                self.memory = Memory::new(self.current_watermark, book);
            }
        }
        let judge = self.finder.judge;
        let is_learned = |spec_id: &i64| judge.spec(*spec_id).is_some();
        if self.memory.unknown_specs.iter().any(is_learned) {
            self.memory.owes_full_pass = true;
            self.memory.unknown_specs.retain(|spec_id| !is_learned(spec_id));
        }
        let settings = self.context.settings;
        let due = |at| {
            let every = settings.full_pass_every;
            full_pass_due_at(at, table.table_uuid, every, settings.spreads_full_passes)
        };
        let begins = self.context.through == Step::Rest && self.memory.begins_full_pass(due, now);
        let is_listing = self.list_from().is_some();
        let is_another = revision.is_some_and(|revision| revision != self.policy.revision)
            || guard_revision != self.policy.guards.revision;
        let heeds_pauses = settings.heeds_pauses && !begins && !is_listing && !is_another;
        // What a shorter keep, a policy that comes to enforce or a released hold lets go is looked at at once. Where no pass has
        // come through, nobody knows under which policy a row came to pause.
        self.heeds_pauses = heeds_pauses && revision.is_some();
        // Also of rows that are not due yet by the policy: a shorter keep before it may have had them looked at.
        let is_of_policy = revision.is_some() && !is_another;
        let farthest = if is_of_policy { self.farthest_pause() } else { now };
        calendar::write::end_far_pauses(session.connection(), table, farthest).await?;
        self.seen_below = self.memory.watermark.files_below;
        self.waited = waiting::store::load(session.connection(), table).await?;
        let keep = self.policy.keep.length();
        let mut waited = self.waited.clone();
        waited.forget_old_more(keep, now, Duration::ZERO);
        self.waiting = WaitingList::of(waited, now, settings.pauses());
        if !heeds_pauses {
            self.waiting.heed_no_pause();
        }
        // By a keep that was made longer they have not expired.
        let young = self.waiting.forget_looked(|waiting| !waiting.has_expired(keep, now));
        self.log_released(young);
        self.meet_rule(session).await?;
        Ok(begins)
    }

    async fn judge_anew(
        &mut self,
        session: &mut LeasedSession<'_>,
        book: BookDigest,
    ) -> sqlx::Result<()> {
        let (table, judge) = (self.finder.table, self.finder.judge);
        if self.memory.book.rules != book.rules {
            self.memory.owes_full_pass = true;
            // What it has read so far was judged by other rules.
            self.memory.full_scan = None;
        }
        let rows = calendar::read::all(session.connection(), table).await?;
        let anew = rows.into_iter().map(|row| {
            let ends = judge.ends(row.key.spec_id, Some(&row.key.value));
            let (range_end, last_end) = match (row.key.is_day, ends) {
                // Its values are judged when they are looked up, from when the first of the day may be due.
                (true, _) => {
                    let day = row.range_end.plus_nanos(-1).days();
                    (row.range_end, UtcInstant::from_days(day))
                }
                (false, Some(Ok(ends))) => (ends.own, ends.last),
                (false, _) => (row.range_end, NEVER),
            };
            Row { range_end, last_end, next_look: None, ..row }
        });
        let anew: Vec<Row> = anew.collect();
        calendar::write::set(session.connection(), table, &anew).await?;
        self.memory.book = book;
        Ok(())
    }

    /// A pause that lies further ahead was noted by another clock or configuration, and is over.
    fn farthest_pause(&self) -> UtcInstant {
        let settings = self.context.settings;
        let ceiling = settings.pauses().longest().max(settings.full_pass_every);
        self.context.now.plus(ceiling)
    }

    /// Notes that files have this spec, where nobody knows what it means.
    pub(super) fn note_spec(&mut self, spec_id: i64) {
        if self.finder.judge.spec(spec_id).is_none() {
            self.memory.unknown_specs.insert(spec_id);
        }
    }

    /// Whether the session is the one in which the memory was read. In another one it may be older than what
    /// is stored, for another daemon may have had the lease: then nothing is written over that.
    pub(super) fn is_ours(&self, session: &LeasedSession<'_>) -> bool {
        session.number() == self.number
    }

    /// Remembers what was looked at so far, where that is news.
    pub(super) async fn remember(&mut self, session: &mut LeasedSession<'_>) -> sqlx::Result<()> {
        if !self.is_ours(session) || self.remembered.as_ref() == Some(&self.memory) {
            return Ok(());
        }
        let (table, field) = (self.finder.table, self.policy.source_field_id);
        store::save(session.connection(), table, field, &self.memory).await?;
        self.remembered = Some(self.memory.clone());
        Ok(())
    }

    /// Remembers what waits.
    pub(super) async fn remember_waiting(
        &mut self,
        session: &mut LeasedSession<'_>,
    ) -> sqlx::Result<()> {
        if !self.is_ours(session) {
            return Ok(());
        }
        let waits = self.waiting.to_remember();
        let table = self.finder.table;
        waiting::store::save(session.connection(), table, &self.waited, &waits).await?;
        self.waited = waits;
        Ok(())
    }

    /// A full pass over a table that is small enough to be read at once.
    pub(super) async fn full_at_once(
        &mut self,
        session: &mut LeasedSession<'_>,
        files: Vec<LiveFile>,
    ) -> anyhow::Result<Reached> {
        let (table, now) = (self.finder.table, self.context.now);
        let due = calendar::read::due(session.connection(), table, self.cutoff, None, i64::MAX);
        let due = due.await?;
        let (reached, mut sorter) = self.look_at_all(session, files, due).await?;
        let kept_counts = std::mem::take(&mut sorter.kept_counts);
        self.memory.full_scan = None;
        self.memory.owes_full_pass = false;
        self.memory.kept_counts = Some((kept_counts, now));
        self.memory.full_pass_at = Some(now);
        Ok(reached)
    }

    /// Without the lookup index: notes what the full scan left so far, before the place that it has come to is
    /// remembered. Its rows went when it began.
    pub(super) async fn settle_full_scan(
        &mut self,
        session: &mut LeasedSession<'_>,
        sorter: &mut Sorter<'_>,
    ) -> sqlx::Result<()> {
        if self.has_index {
            return Ok(());
        }
        let number = self.number;
        self.settle(session, &Ask::default(), 0, number, sorter).await?;
        self.remember_waiting(session).await
    }
}
