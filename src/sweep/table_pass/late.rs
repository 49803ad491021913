//! Files that were added since the last pass: appends of old rows, and outputs of compaction. Their values
//! are put into the calendar, and those that have expired are looked up at once.

use std::collections::BTreeMap;

use super::{Enforcement, Reached};
use crate::catalog::late::{LateFiles, LateValue, LookupKey, late_values};
use crate::sweep::calendar::{Row, RowKey, row_of, write};
use crate::sweep::lease::LeasedSession;
use crate::sweep::plan::NOT_PARQUET;

impl Enforcement<'_> {
    /// Reads the late files, to the end or until the time is over. The watermark moves with what is in the
    /// calendar, and never before it.
    ///
    /// Before the first of them is looked up all are read: they are counted first, for the blast radius. A value that has
    /// expired is looked up whatever its row says: a pause is of tuples that wait, and another
    /// one may have come.
    pub(super) async fn late(
        &mut self,
        session: &mut LeasedSession<'_>,
    ) -> anyhow::Result<Reached> {
        let table = self.finder.table;
        let lookup_keys: Vec<LookupKey> = self
            .finder
            .judge
            .lookup_keys()
            .map(|(spec_id, key_index)| LookupKey { spec_id, key_index })
            .collect();
        let of = LateFiles {
            catalog_id: table.catalog_id,
            table_id: table.table_id,
            lookup_keys: &lookup_keys,
            current_watermark: self.current_watermark,
        };
        let (mut due, mut files, mut block) = (BTreeMap::new(), 0_i64, None);
        let mut has_read = false;
        let mut is_counted = self.is_counted_from_here();
        while self.memory.watermark != self.current_watermark {
            // One statement is asked whatever the time: most often it tells that there is none.
            if has_read && self.is_over() {
                self.work.cut_short();
                return Ok(Reached::Until);
            }
            has_read = true;
            let watermark = self.memory.watermark;
            let piece = late_values(session.connection(), &of, watermark, block).await?;
            anyhow::ensure!(piece.is_parquet, NOT_PARQUET);
            files += piece.values.iter().map(|value| value.files).sum::<i64>();
            self.has_begun |= !piece.values.is_empty();
            let rows = self.sorted(piece.values, &mut due);
            self.put(session, rows).await?;
            if self.is_ours(session) {
                let keys: Vec<RowKey> = due.keys().cloned().collect();
                write::end_pauses(session.connection(), table, &keys).await?;
            }
            self.memory.watermark = piece.watermark;
            block = piece.block;
            if files > self.finder.scan_limits.small_table && self.memory.is_outgrown_by(files) {
                // The full scan that follows meets them all.
                self.memory.watermark = self.current_watermark;
                self.memory.full_scan = None;
                self.memory.owes_full_pass = true;
                is_counted = false;
            }
            if self.memory.watermark != self.current_watermark {
                self.remember(session).await?;
            }
        }
        self.settle_late(session, is_counted).await?;
        self.look_up_rows(session, due).await
    }

    /// The rows of late values; those that have expired are noted as due.
    fn sorted(&mut self, values: Vec<LateValue>, due: &mut BTreeMap<RowKey, Row>) -> Vec<Row> {
        let mut rows = Vec::with_capacity(values.len());
        let mut expired_files = 0;
        for LateValue { spec_id, value, files, .. } in values {
            let Some(spec_id) = spec_id else { continue };
            self.note_spec(spec_id);
            let row = row_of(self.finder.judge, &self.memory.days, spec_id, value.as_deref());
            let Some(Ok(row)) = row else { continue };
            if row.last_end <= self.cutoff {
                due.insert(row.key.clone(), row.clone());
                expired_files += files;
            }
            rows.push(row);
        }
        self.count_late(expired_files);
        rows
    }

    /// Looks up the values of rows, where they can be.
    async fn look_up_rows(
        &mut self,
        session: &mut LeasedSession<'_>,
        rows: BTreeMap<RowKey, Row>,
    ) -> anyhow::Result<Reached> {
        if !self.has_index {
            return Ok(Reached::All);
        }
        self.look_up_due(session, rows.into_values().collect()).await
    }
}
