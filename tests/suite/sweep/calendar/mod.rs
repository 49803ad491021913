//! Tests of a table's calendar, and of what else passes remember of the table: all of it only saves
//! time.

mod broken;
mod cut;
mod gone;
mod history;
mod late;
mod lost;
mod model;
mod orders;
mod planned;
mod resumed;
mod steps;
mod ways;
mod wrong;

use std::time::Duration;

use anyhow::{Context, Result};
use tailrace::rules::instant::UtcInstant;
use tailrace::rules::scan_limits::ScanLimits;
use tailrace::sweep::Settings;
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

/// At each so many statements of a pass something happens; at each one by `make soak`, which has the time.
fn step(usual: usize) -> usize {
    if std::env::var("TAILRACE_SOAK").is_ok() { 1 } else { usual }
}

/// Steps so small that few files are a large table.
fn small_steps() -> ScanLimits {
    ScanLimits {
        small_table: 0,
        piece: 7,
        files_at_hand: 5,
        tuples_at_hand: 3,
        due_at_once: 3,
        values_at_once: 2,
        values_listed: 3,
        most_rows: 500,
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
        scene.settings.scan_limits = small_steps();
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

    /// The rows of the calendar, as `spec value last_end [next_look]`, a day's value with a `d` before it.
    async fn rows(&self) -> Result<Vec<String>> {
        let query = "SELECT spec_id || ' ' || CASE WHEN is_day THEN 'd' ELSE '' END || value || ' '
                || to_char(last_end AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI')
                || coalesce(to_char(next_look AT TIME ZONE 'UTC', ' YYYY-MM-DD\"T\"HH24:MI'), '')
                || CASE WHEN range_end <> last_end THEN ' *' ELSE '' END
            FROM tailrace.calendar ORDER BY spec_id, range_end, value";
        Ok(sqlx::query_scalar(query).fetch_all(self.database.lake.pool()).await?)
    }

    /// One column of the stored state, as text.
    async fn state(&self, column: &str) -> Result<Option<String>> {
        self.database.text(&format!("SELECT {column} FROM tailrace.table_state")).await
    }
}
