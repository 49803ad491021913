//! Tests of when rows of the calendar fall due, and of which tables count. The tests write the rows
//! themselves.

mod daemon;
mod hour;
mod rows;
mod spin;
mod whose;

use std::time::Duration;

use anyhow::Result;
use tailrace::catalog::connect::close;
use tailrace::catalog::wakes::first_due;
use tailrace::rules::instant::UtcInstant;
use tailrace_kit::lake::{Catalog, Field, Table};

use crate::support::TestDatabase;

/// When the pass began of whose end is asked.
const SINCE: &str = "2026-11-30T12:00:00Z";
/// Ten minutes later, the distance of two passes.
const UNTIL: &str = "2026-11-30T12:10:00Z";
const EVERY: Duration = Duration::from_secs(600);

struct Scene {
    database: TestDatabase,
    catalog: Catalog,
}

impl Scene {
    async fn new() -> Result<Self> {
        let database = TestDatabase::new().await?;
        let catalog = database.catalog("lake").await?;
        Ok(Scene { database, catalog })
    }

    /// A table that enforces, keeps seven days, and was looked at by passes.
    async fn table(&self, name: &str) -> Result<Table> {
        let table = self.database.table(&self.catalog, name, &[Field::day("at")]).await?;
        self.database.govern(&table, "at", "7d").await?;
        self.noted(&table).await?;
        Ok(table)
    }

    /// What passes note of a table, by the policy that it has.
    async fn noted(&self, table: &Table) -> Result<()> {
        let (catalog_id, table_id) = (table.catalog.catalog_id, table.table_id);
        self.database
            .sql(&format!(
                "INSERT INTO tailrace.table_state (catalog_id, table_uuid, table_id, source_field_id,
                   through_snapshot, files_below, book)
                 SELECT catalog_id, table_uuid, table_id, source_field_id, 0, 0, ''
                   FROM tailrace.policy WHERE catalog_id = {catalog_id} AND table_id = {table_id}"
            ))
            .await
    }

    /// A row whose range is so long and which is due, with seven days, at this time.
    async fn row(&self, table: &Table, due: &str, pause: Option<&str>, span: u64) -> Result<()> {
        let (catalog_id, uuid) = (table.catalog.catalog_id, table.table_uuid);
        let pause = pause.map_or("NULL".to_owned(), |until| format!("'{until}'"));
        self.database
            .sql(&format!(
                "INSERT INTO tailrace.calendar
                 SELECT {catalog_id}, '{uuid}', 1, false, pg_catalog.gen_random_uuid()::text,
                   timestamptz '{due}' - interval '168 hours', timestamptz '{due}' - interval '168 hours',
                   {span}, {pause}"
            ))
            .await
    }

    /// What is due, in short: the table's name, the time, and whether it was due before.
    async fn due(&self) -> Result<Vec<String>> {
        let (since, until): (UtcInstant, UtcInstant) = (SINCE.parse()?, UNTIL.parse()?);
        let mut session = self.database.tailrace().read_only_session().await?;
        let due = first_due(&mut session, since, until, EVERY).await?;
        close(session).await;
        let mut told = Vec::new();
        for due in due {
            let name = format!(
                "SELECT c.name || '.' || v.name FROM hog_table t
                   JOIN hog_table_version v USING (catalog_id, table_id)
                   JOIN hog_catalog c USING (catalog_id)
                  WHERE t.table_uuid = '{}' AND t.catalog_id = {} AND v.end_snapshot IS NULL",
                due.table_uuid, due.catalog_id
            );
            let name = self.database.text(&name).await?.unwrap_or_default();
            let was_due = if due.was_due { ", was due" } else { "" };
            told.push(format!("{name} at {}{was_due}", due.at));
        }
        told.sort_unstable();
        Ok(told)
    }
}
