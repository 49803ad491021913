//! What passes remember of a table, and that it only ever saves time.

mod history;
mod late;
mod resumed;
mod ways;
mod wrong;

use std::time::Duration;

use anyhow::{Context, Result};
use tailrace::instant::UtcInstant;
use tailrace::sweep::Settings;
use tailrace::sweep::reach::Reach;
use tailrace::sweep::report::TableReport;
use tailrace_kit::lake::{Catalog, Field, NewFile, Table};

use crate::support::TestDatabase;
use crate::support::program::settings;

const DAY: Duration = Duration::from_secs(86_400);

/// A governed table `events.raw` by day, that keeps seven, and a time that tests move.
struct Scene {
    database: TestDatabase,
    catalog: Catalog,
    table: Table,
    now: UtcInstant,
    settings: Settings,
}

/// Steps so small that few files are a large table.
fn small_steps() -> Reach {
    Reach {
        small_table: 0,
        piece: 7,
        files_at_hand: 5,
        tuples_at_hand: 3,
        texts_at_once: 2,
        texts_listed: 3,
        most_expiring: 500,
        pieces_remembered: 2,
    }
}

impl Scene {
    async fn new(fields: &[Field]) -> Result<Self> {
        let database = TestDatabase::new().await?;
        let catalog = database.catalog("lake").await?;
        let table = database.table(&catalog, "raw", fields).await?;
        database.govern(&table, "at", "7d").await?;
        let settings = Settings { lock_duty: 1.0, ..settings() };
        let now = "2026-11-30T12:00:00Z".parse()?;
        Ok(Scene { database, catalog, table, now, settings })
    }

    /// A table whose statements are many and small, for it counts as large.
    async fn large(fields: &[Field]) -> Result<Self> {
        let mut scene = Self::new(fields).await?;
        scene.settings.reach = small_steps();
        Ok(scene)
    }

    async fn sweep(&self) -> Result<TableReport> {
        let settings = Settings { as_of: Some(self.now), ..self.settings };
        let report = self.database.sweep_with(&settings).await?;
        report.tables.into_iter().next().context("a report")
    }

    /// The ordinal of the day that was so many days before now.
    fn day(&self, ago: i64) -> String {
        (self.now.days() as i64 - ago).to_string()
    }

    fn file(&self, ago: i64) -> NewFile {
        NewFile::of([self.day(ago)])
    }

    async fn live(&self) -> Result<Vec<i64>> {
        crate::support::governed::live_ids(&self.table).await
    }

    /// One column of the stored cursor, as text.
    async fn cursor(&self, column: &str) -> Result<Option<String>> {
        self.database.text(&format!("SELECT {column} FROM tailrace.sweep_cursor")).await
    }

    /// One column of the stored state, as text.
    async fn state(&self, column: &str) -> Result<Option<String>> {
        self.database.text(&format!("SELECT {column} FROM tailrace.sweep_state")).await
    }
}
