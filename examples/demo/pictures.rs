//! The partitions of all tables at a moment, and how a table is drawn before and after a pass.

use std::time::Duration;

use anyhow::Result;
use tailrace::catalog::session::Session;
use tailrace::policy::Policy;
use tailrace::rules::expiry::Retention;
use tailrace::rules::instant::UtcInstant;

use super::lake::{DemoLake, POLICIES};
use super::partitions::Partitions;
use super::picture::{columns, rows};

/// A `keep` longer than any partition's age, to date the partitions of a table without a policy.
const FOR_EVER: Duration = Duration::from_secs(10_000 * 365 * 86_400);

/// The partitions of all tables at one time.
#[derive(Debug)]
pub struct Pictures {
    /// Those of the governed tables with their cutoffs, in the order of the policies.
    governed: Vec<(String, Partitions)>,
    /// Those of the table without a policy.
    pub ungoverned: Partitions,
}

impl Pictures {
    /// Reads them.
    pub async fn read(
        connection: &mut Session,
        lake: &DemoLake,
        policies: &[Policy],
        now: UtcInstant,
    ) -> Result<Self> {
        let mut governed = Vec::with_capacity(POLICIES.len());
        for (table, policy) in lake.governed.iter().zip(policies) {
            let keep = policy.keep.length();
            let retention = Retention { source_field_id: policy.source_field_id, keep, now };
            let key = (table.catalog.catalog_id, table.table_id);
            let partitions = Partitions::read(connection, key, retention).await?;
            governed.push((minute(retention.cutoff()), partitions));
        }
        let table = &lake.ungoverned;
        let source_field_id = table.field_id("timestamp")?;
        let retention = Retention { source_field_id, keep: FOR_EVER, now };
        let key = (table.catalog.catalog_id, table.table_id);
        let ungoverned = Partitions::read(connection, key, retention).await?;
        Ok(Self { governed, ungoverned })
    }

    /// The partitions of a governed table, by its place among the policies.
    pub fn governed(&self, place: usize) -> &Partitions {
        &self.governed[place].1
    }

    /// A table with a column for each partition.
    pub fn columns(&self, place: usize) -> String {
        let (cutoff, partitions) = &self.governed[place];
        columns(&partitions.bars(), cutoff)
    }

    /// The same table as it is `after` the pass, in the same places.
    pub fn columns_after(&self, place: usize, after: &Self) -> String {
        let (cutoff, partitions) = &self.governed[place];
        columns(&partitions.bars_after(after.governed(place)), cutoff)
    }

    /// A table with a line for each partition, before the pass and `after` it.
    pub fn rows(&self, place: usize, after: &Self) -> String {
        let (cutoff, partitions) = &self.governed[place];
        rows(&partitions.bars(), &partitions.bars_after(after.governed(place)), cutoff)
    }
}

/// An instant to the minute, for people.
fn minute(at: UtcInstant) -> String {
    at.to_chrono().map(|time| time.format("%Y-%m-%d %H:%M UTC").to_string()).unwrap_or_default()
}
