//! What a look left: rows of values without live files are removed, the others fall due again when the first of what
//! is left does.
//!
//! A row goes only here. The look began after the look at late files that put it in was remembered, in this
//! session, which has the catalog's lease: whatever was committed up to the watermark was there to be seen.
//! What was committed since is late, and puts the row in again when it is read. A look of a session that was
//! lost settles nothing: another daemon may have read late files before ours got the lease back.

use std::collections::{BTreeMap, HashMap};

use super::Enforcement;
use crate::catalog::tuples::TupleOfSpec;
use crate::policy::Mode;
use crate::rules::instant::UtcInstant;
use crate::rules::instant::earlier;
use crate::sweep::ask::{Ask, AskedRow, NEVER};
use crate::sweep::calendar::{Row, RowKey, row_of, write};
use crate::sweep::lease::LeasedSession;
use crate::sweep::sorter::Sorter;

/// What is left of a value.
#[derive(Debug, Clone, Default)]
pub struct Left {
    /// When the first of the files expires that stay by their values.
    first: Option<UtcInstant>,
    /// Tuples that have expired and stay.
    tuples: Vec<TupleOfSpec>,
}

impl Left {
    fn merge(&mut self, other: &Left) {
        self.first = earlier(self.first, other.first);
        self.tuples.extend(other.tuples.iter().cloned());
    }
}

/// By spec and lookup value what the looks of a pass left.
pub type AllLeft = HashMap<(i64, String), Left>;

impl Enforcement<'_> {
    /// Notes a tuple that stays.
    pub(super) fn note_left(&mut self, tuple: &TupleOfSpec, value: &str) {
        let left = self.left.entry((tuple.spec_id, value.to_owned())).or_default();
        left.tuples.push(tuple.clone());
    }

    /// Settles the rows of what was looked up: all of it, or as many of the candidates. `number` is that of
    /// the session in which the look began.
    pub(super) async fn settle(
        &mut self,
        session: &mut LeasedSession<'_>,
        ask: &Ask,
        looked: usize,
        number: u64,
        sorter: &mut Sorter<'_>,
    ) -> sqlx::Result<()> {
        for (value, first) in sorter.young.iter_mut().flat_map(HashMap::drain) {
            let left = self.left.entry(value).or_default();
            left.first = earlier(left.first, first);
        }
        let left = std::mem::take(&mut self.left);
        if session.number() != number || !self.is_ours(session) {
            return Ok(());
        }
        let table = self.finder.table;
        let mut by_row: BTreeMap<RowKey, Left> = BTreeMap::new();
        let mut rows: BTreeMap<RowKey, Row> = BTreeMap::new();
        for ((spec_id, value), left) in &left {
            let row = row_of(self.finder.judge, &self.memory.days, *spec_id, Some(value));
            let Some(Ok(row)) = row else { continue };
            by_row.entry(row.key.clone()).or_default().merge(left);
            rows.entry(row.key.clone())
                .and_modify(|known| {
                    known.range_end = known.range_end.min(row.range_end);
                    known.last_end = known.last_end.min(row.last_end);
                })
                .or_insert(row);
        }
        let (mut gone, mut stay) = (Vec::new(), Vec::new());
        for AskedRow { row, last, pending } in &ask.rows {
            if last.is_some_and(|last| last >= looked) {
                rows.remove(&row.key);
                continue;
            }
            let left = by_row.remove(&row.key);
            rows.remove(&row.key);
            match (left, pending) {
                (None, None) => gone.push(row.key.clone()),
                (left, pending) => {
                    let left = left.unwrap_or_default();
                    stay.push(self.left_row(row.clone(), &left, *pending));
                }
            }
        }
        // Values that no row was asked for, as in a full pass. A day of which only some were is due again. Of
        // what was read piece by piece other pieces, before or after, may have left something as well.
        let (mut seen, mut due_again, mut new) = (Vec::new(), Vec::new(), Vec::new());
        for (key, row) in rows {
            let left = by_row.remove(&key).unwrap_or_default();
            match (sorter.is_whole, key.is_day) {
                (false, _) => seen.push(self.left_row(row, &left, None)),
                (true, true) => {
                    due_again.push(key);
                    seen.push(row);
                }
                (true, false) => new.push(self.left_row(row, &left, None)),
            }
        }
        let (connection, keep) = (session.connection(), self.finder.judge.retention().keep);
        write::put(connection, table, &seen, keep).await?;
        write::end_pauses(connection, table, &due_again).await?;
        write::set(connection, table, &stay).await?;
        write::set(connection, table, &new).await?;
        if !gone.is_empty() {
            // Before the rows by which it is looked at: what waited of these values would be told as waiting until
            // the next full pass.
            self.remember_waiting(session).await?;
            write::remove(session.connection(), table, &gone).await?;
        }
        seen.append(&mut new);
        self.fold(session, &seen).await
    }

    /// A row as it is after a look that left something of it.
    fn left_row(&self, row: Row, left: &Left, pending: Option<UtcInstant>) -> Row {
        let keep = self.finder.judge.retention().keep;
        // Of files that never expire by their values nothing falls due.
        let young = earlier(left.first.map(|first| first.minus(keep)), pending);
        if left.tuples.is_empty() {
            return Row { last_end: young.unwrap_or(NEVER), next_look: None, ..row };
        }
        let looks = left.tuples.iter().map(|tuple| self.next_look_of(tuple));
        // What waits for the next pass is due as it is.
        let next_look = looks.min().flatten();
        let next_look = next_look.map(|next| match young {
            Some(young) => next.min(young.plus(keep)),
            None => next,
        });
        Row { last_end: row.last_end.min(self.cutoff), next_look, ..row }
    }

    /// When a tuple that stayed is looked at again; `None` for the next pass. What a policy that observes would
    /// drop is logged once, and again by the next full pass.
    fn next_look_of(&self, tuple: &TupleOfSpec) -> Option<UtcInstant> {
        match self.policy.mode {
            Mode::Observe if self.is_observed(tuple) => {
                Some(self.context.now.plus(self.context.settings.full_pass_every))
            }
            _ => self.waiting.next_look_of(tuple),
        }
    }

    fn is_observed(&self, tuple: &TupleOfSpec) -> bool {
        self.observed.contains_key(tuple)
    }
}
