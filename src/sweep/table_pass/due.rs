//! What is due by the calendar.

use std::collections::HashSet;

use super::{Enforcement, Reached};
use crate::catalog::finder::Candidate;
use crate::catalog::live_file::LiveFile;
use crate::rules::instant::UtcInstant;
use crate::sweep::ask::{self, Ask, AskedRow, NEVER, groups};
use crate::sweep::calendar::{Row, RowKey, read, row_of, write};
use crate::sweep::lease::LeasedSession;
use crate::sweep::sorter::Sorter;
use crate::sweep::waiting::Waiting;

impl<'a> Enforcement<'a> {
    /// Drops what is due. Where only the table itself can be asked, a small one is read at once, and of a
    /// larger one a full scan begins.
    pub(super) async fn due(&mut self, session: &mut LeasedSession<'_>) -> anyhow::Result<Reached> {
        // Rows that stay due after their look are read again, before younger ones. So each time as many more rows are
        // read as were looked at, and those are left out; more than that are new, or there are no others.
        let mut looked: HashSet<RowKey> = HashSet::new();
        loop {
            let most = self.finder.scan_limits.due_at_once.saturating_add(looked.len() as i64);
            let (table, now) = (self.finder.table, self.heeds_pauses.then_some(self.context.now));
            let mut rows = read::due(session.connection(), table, self.cutoff, now, most).await?;
            let is_last = (rows.len() as i64) < most;
            rows.retain(|row| looked.insert(row.key.clone()));
            let rows = self.known_rows(session, rows).await?;
            if !rows.is_empty() && !self.has_index {
                if let Some(files) = self.finder.small_table(session.connection()).await? {
                    return self
                        .look_at_all(session, files, rows)
                        .await
                        .map(|(reached, _)| reached);
                }
                self.begin_full_scan(session, false).await?;
                return Ok(Reached::All);
            }
            if !self.look_up_due(session, rows).await?.is_all() {
                return Ok(Reached::Until);
            }
            if is_last {
                return Ok(Reached::All);
            }
        }
    }

    /// Rows without those of specs that are not known any more, or do not date the policy's column: these name
    /// nothing that could be looked up, and fall due no more until the specs change.
    async fn known_rows(
        &self,
        session: &mut LeasedSession<'_>,
        rows: Vec<Row>,
    ) -> anyhow::Result<Vec<Row>> {
        let table = self.finder.table;
        let knows = |row: &Row| {
            let spec = self.finder.judge.spec(row.key.spec_id);
            spec.is_some_and(|spec| spec.lookup_key_index().is_some())
        };
        let (rows, unknown): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(knows);
        if !unknown.is_empty() && self.is_ours(session) {
            let never = |row| Row { last_end: NEVER, next_look: None, ..row };
            let unknown: Vec<Row> = unknown.into_iter().map(never).collect();
            write::set(session.connection(), table, &unknown).await?;
        }
        Ok(rows)
    }

    /// Looks up the values of rows, a group after the other.
    pub(super) async fn look_up_due(
        &mut self,
        session: &mut LeasedSession<'_>,
        rows: Vec<Row>,
    ) -> anyhow::Result<Reached> {
        for rows in groups(rows) {
            let (finder, connection) = (self.finder, session.connection());
            let ask = ask::ask(finder, connection, rows).await?;
            if finder.is_crowded(connection, &ask.candidates).await?
                && let Some(files) = finder.small_table(connection).await?
            {
                let rows = ask.rows.into_iter().map(|asked| asked.row).collect();
                let (reached, _) = self.look_at_all(session, files, rows).await?;
                if !reached.is_all() {
                    return Ok(reached);
                }
                continue;
            }
            if !self.look_up(session, &ask).await?.is_all() {
                return Ok(Reached::Until);
            }
        }
        Ok(Reached::All)
    }

    /// Drops what has expired of all files of the table, as they were read in one statement after the watermark,
    /// and brings the whole calendar up to them. Gives back the sorter, which has counted what stays.
    pub(super) async fn look_at_all(
        &mut self,
        session: &mut LeasedSession<'_>,
        files: Vec<LiveFile>,
        due: Vec<Row>,
    ) -> anyhow::Result<(Reached, Sorter<'a>)> {
        let (judge, number) = (self.finder.judge, session.number());
        let mut sorter = Sorter::for_a_look(judge);
        for file in files {
            if let Some(spec_id) = file.spec_id {
                self.note_spec(spec_id);
            }
            sorter.add(file);
        }
        self.has_begun = true;
        self.count_all_late(session, &sorter).await?;
        let reached = self.drop_found(session, &mut sorter).await?;
        // What was not tried was met all the same.
        self.has_seen_all = true;
        self.forget_unmet();
        if reached.is_all() {
            self.waiting.has_met_all();
        }
        let rows = due.into_iter().map(|row| {
            // What has not expired of a day is told by the files.
            AskedRow { row, last: None, pending: None }
        });
        let ask = Ask { candidates: Vec::new(), rows: rows.collect() };
        self.settle(session, &ask, 0, number, &mut sorter).await?;
        self.memory.watermark = self.current_watermark;
        Ok((reached, sorter))
    }

    /// Puts in the rows of files that stay, so far as this pass has not.
    pub(super) async fn put_seen(
        &mut self,
        session: &mut LeasedSession<'_>,
        files: impl Iterator<Item = (i64, Option<String>)>,
    ) -> sqlx::Result<()> {
        let mut rows = Vec::new();
        for (spec_id, value) in files {
            let row = row_of(self.finder.judge, &self.memory.days, spec_id, value.as_deref());
            let Some(Ok(row)) = row else { continue };
            let known = self.put_before.entry(row.key.clone()).or_insert(UtcInstant::LATEST);
            if row.last_end < *known {
                *known = row.last_end;
                rows.push(row);
            }
        }
        self.put(session, rows).await
    }

    /// Puts rows in. Where a spec comes to have too many of them, they become rows for days.
    pub(super) async fn put(
        &mut self,
        session: &mut LeasedSession<'_>,
        rows: Vec<Row>,
    ) -> sqlx::Result<()> {
        if rows.is_empty() || !self.is_ours(session) {
            return Ok(());
        }
        let keep = self.finder.judge.retention().keep;
        match write::put(session.connection(), self.finder.table, &rows, keep).await? {
            0 => Ok(()),
            _ => self.fold(session, &rows).await,
        }
    }

    /// Where specs have come to have too many rows by these, they become rows for days.
    pub(super) async fn fold(
        &mut self,
        session: &mut LeasedSession<'_>,
        rows: &[Row],
    ) -> sqlx::Result<()> {
        let (table, connection) = (self.finder.table, session.connection());
        // Of instants only those have rows of their own that their days do not identify.
        let can_fold =
            |row: &&Row| !row.key.is_day && !self.finder.judge.has_instants(row.key.spec_id);
        let mut specs: Vec<i64> = rows.iter().filter(can_fold).map(|row| row.key.spec_id).collect();
        specs.sort_unstable();
        specs.dedup();
        for spec_id in specs {
            let most = self.finder.scan_limits.most_rows;
            if read::has_more_values(connection, table, spec_id, most).await? {
                write::fold_into_days(connection, table, spec_id).await?;
                self.memory.days.insert(spec_id);
            }
        }
        Ok(())
    }

    /// Forgets what waited under values that were looked up whole, and was not met.
    pub(super) fn forget_looked(&mut self, candidates: &[Candidate]) {
        let judge = self.finder.judge;
        let looked: HashSet<(i32, &str)> =
            candidates.iter().map(|of| (of.key_index, of.text.as_str())).collect();
        let is_looked = |waiting: &Waiting| {
            let lookup_key = judge.spec(waiting.spec_id).and_then(|spec| spec.lookup_key());
            let at = lookup_key.and_then(|lookup_key| {
                let key = waiting.tuple.keys.get(lookup_key)?;
                Some((*key, waiting.tuple.values.get(lookup_key)?.as_deref()?))
            });
            at.is_some_and(|at| looked.contains(&at))
        };
        let gone = self.waiting.forget_looked(is_looked);
        self.log_released(gone);
    }

    /// When the ranges of the values end that a full pass has yet to look up.
    pub(super) fn list_from(&self) -> Option<UtcInstant> {
        self.memory.full_scan.as_ref().and_then(|full_scan| full_scan.list_from)
    }
}
