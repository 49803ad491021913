//! Values that are looked up, as many by one statement as its size allows.

use std::collections::VecDeque;

use crate::catalog::live_file::LiveFile;
use crate::catalog::session::Session;
use crate::catalog::values::{FromValue, Value, files_with_values};

/// Look-ups under way, in their order. A value with more entries than a page comes again, before the others.
#[derive(Debug, Default)]
pub struct LookUps {
    open: VecDeque<FromValue>,
}

impl LookUps {
    /// Adds values, of which the entries of files with lower ids are not read.
    pub fn add(&mut self, values: impl IntoIterator<Item = Value>, from_id: i64) {
        self.open.extend(values.into_iter().map(|value| FromValue { value, from_id }));
    }

    /// Whether all were looked up.
    pub fn is_over(&self) -> bool {
        self.open.is_empty()
    }

    /// Looks up the next `at_once` values: the table's live files, each with the value by which it was found.
    pub async fn next(
        &mut self,
        connection: &mut Session,
        (catalog_id, table_id): (i64, i64),
        at_once: usize,
    ) -> sqlx::Result<Vec<(Value, LiveFile)>> {
        let asked: Vec<FromValue> =
            self.open.drain(..self.open.len().min(at_once.max(1))).collect();
        let found = files_with_values(connection, catalog_id, table_id, &asked).await?;
        for more in found.more.into_iter().rev() {
            self.open.push_front(more);
        }
        let with_value = |(at, file): (usize, LiveFile)| Some((asked.get(at)?.value.clone(), file));
        Ok(found.files.into_iter().filter_map(with_value).collect())
    }
}
