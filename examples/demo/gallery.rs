//! The pictures of all tables at a moment.

use std::time::Duration;

use anyhow::Result;
use tailrace::catalog::session::Session;
use tailrace::policy::Policy;
use tailrace::rules::expiry::Retention;
use tailrace::rules::instant::UtcInstant;

use super::partitions::Partitions;
use super::picture::{Bar, columns, rows};
use super::scene::{EVENTS, NAMESPACE, POLICIES, Scene, UNGOVERNED};

/// A `keep` that nothing outlives, to have the partitions of a table without a policy dated.
const FOR_EVER: Duration = Duration::from_secs(10_000 * 365 * 86_400);

/// How a table is drawn.
#[derive(Clone, Copy, Debug)]
enum Layout {
    /// A column a day.
    Columns,
    /// A line a partition.
    Rows,
}

/// One table.
#[derive(Debug)]
struct Painted {
    heading: String,
    layout: Layout,
    cutoff: Option<String>,
    partitions: Partitions,
}

/// The partitions of all tables at one time.
#[derive(Debug)]
pub struct Gallery(Vec<Painted>);

impl Gallery {
    /// Reads them: the governed tables in the order of their policies, then the other one.
    pub async fn read(
        connection: &mut Session,
        scene: &Scene,
        policies: &[Policy],
        now: UtcInstant,
    ) -> Result<Self> {
        let mut painted = Vec::new();
        for ((table, place), policy) in scene.governed.iter().zip(POLICIES).zip(policies) {
            let keep = policy.keep.length();
            let retention = Retention { source_field_id: policy.source_field_id, keep, now };
            let key = (table.catalog.catalog_id, table.table_id);
            painted.push(Painted {
                heading: format!(
                    "{NAMESPACE}.{}: {} keep {}",
                    place.table, policy.field, policy.keep
                ),
                layout: if painted.len() == EVENTS { Layout::Columns } else { Layout::Rows },
                cutoff: Some(minute(retention.cutoff())),
                partitions: Partitions::read(connection, key, retention).await?,
            });
        }
        let table = &scene.ungoverned;
        let source_field_id = table.field_id("timestamp")?;
        let retention = Retention { source_field_id, keep: FOR_EVER, now };
        let key = (table.catalog.catalog_id, table.table_id);
        painted.push(Painted {
            heading: format!("{NAMESPACE}.{UNGOVERNED}: no policy"),
            layout: Layout::Columns,
            cutoff: None,
            partitions: Partitions::read(connection, key, retention).await?,
        });
        Ok(Self(painted))
    }

    /// The partitions of a governed table, by its place among the policies.
    pub fn governed(&self, place: usize) -> &Partitions {
        &self.0[place].partitions
    }

    /// The pictures.
    pub fn text(&self) -> String {
        self.0.iter().map(|table| table.drawn(table.partitions.bars())).collect()
    }

    /// The pictures, with a place for what was there `before`.
    pub fn text_since(&self, before: &Self) -> String {
        let pairs = self.0.iter().zip(&before.0);
        pairs
            .map(|(table, before)| table.drawn(table.partitions.bars_since(&before.partitions)))
            .collect()
    }
}

impl Painted {
    fn drawn(&self, bars: Vec<Bar>) -> String {
        let cutoff = self.cutoff.as_deref();
        let drawn = match self.layout {
            Layout::Columns => columns(&bars, cutoff),
            Layout::Rows => rows(&bars, cutoff),
        };
        format!("\n   {}\n\n{drawn}", self.heading)
    }
}

/// An instant to the minute, for people.
pub fn minute(at: UtcInstant) -> String {
    at.to_chrono().map(|time| time.format("%Y-%m-%d %H:%M UTC").to_string()).unwrap_or_default()
}
