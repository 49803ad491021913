//! The table that a drop names, with its columns and specs.

use crate::catalog::session::Session;
use crate::catalog::specs::{TableShape, spec_book, table_shape};
use crate::catalog::tables::{TableIdentity, find_table};
use crate::cli::arguments::TableName;
use crate::rules::expiry::{SpecBook, SpecField};
use crate::rules::transform::TimeRange;

/// A live table with its columns and specs.
#[derive(Debug)]
pub struct Known {
    pub identity: TableIdentity,
    /// Its live columns and spec.
    pub shape: TableShape,
    /// Every spec that it ever had.
    pub book: SpecBook,
}

impl Known {
    /// Reads the table with its columns and specs.
    pub async fn read(
        session: &mut Session,
        catalog: &str,
        table: &TableName,
    ) -> anyhow::Result<Self> {
        let live = find_table(session, catalog, &table.namespace, &table.table).await?;
        let (catalog_id, table_id) = (live.identity.catalog_id, live.identity.table_id);
        let shape = table_shape(session, catalog_id, table_id).await?;
        let book = spec_book(session, catalog_id, table_id).await?;
        Ok(Known { identity: live.identity, shape, book })
    }

    /// The position and the range of each value of a tuple that is a time by its spec.
    pub fn ranges(&self, spec_id: i64, values: &[Option<String>]) -> Vec<(usize, TimeRange)> {
        let fields = self.book.specs.get(&spec_id).filter(|fields| fields.len() == values.len());
        let of_field = |(position, field): (usize, &SpecField)| {
            let value = values.get(position)?;
            // No value is valid for two of the types that a column had.
            let transforms = self.book.transforms_of(field).into_iter();
            let range = transforms.filter_map(|of| of.decode(value.as_deref()).ok()).next()?;
            Some((position, range))
        };
        fields.into_iter().flatten().enumerate().filter_map(of_field).collect()
    }

    /// The times that the values of a tuple cover, for people: `2026-11-18T00:00:00Z to
    /// 2026-11-19T00:00:00Z`; empty where no value is a time.
    pub fn meaning(&self, spec_id: i64, values: &[Option<String>]) -> String {
        let range = |(_, TimeRange { start, end }): (usize, TimeRange)| match start == end {
            true => start.to_string(),
            false => format!("{start} to {end}"),
        };
        let ranges: Vec<_> = self.ranges(spec_id, values).into_iter().map(range).collect();
        ranges.join(" and ")
    }
}
