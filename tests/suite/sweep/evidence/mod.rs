//! Tests of what a partition value alone does not prove: ambiguous values, and rows that are newer
//! than the value says.

mod ambiguous;
mod late;
mod newer;
mod order;
mod planned;
mod random;
mod rights;
mod sql;
mod verified;
mod whole;

use anyhow::Result;
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::Settings;
use tailrace::sweep::report::TableReport;
use tailrace_kit::lake::{Catalog, Column, Field, NewFile, Table};

use crate::support::TestDatabase;
use crate::support::governed::of_table;
use crate::support::program::settings;

/// The time of most passes here: what ended by 2027-01-03 has expired where seven days are kept.
pub const NOW: &str = "2027-01-10T00:00:00Z";

/// A lake, and the table `events.raw` with columns of several types.
pub struct Scene {
    pub database: TestDatabase,
    pub catalog: Catalog,
    pub table: Table,
}

impl Scene {
    /// The table has had these specs, and keeps `at` for a week.
    pub async fn new(specs: &[&[Field]]) -> Result<Self> {
        Self::of_column("at", specs).await
    }

    /// As [`Self::new`], where the policy is on another column.
    pub async fn of_column(column: &str, specs: &[&[Field]]) -> Result<Self> {
        let database = TestDatabase::new().await?;
        let catalog = database.catalog("lake").await?;
        let columns = [
            Column::new("at", "timestamptz"),
            Column::new("created", "timestamp"),
            Column::new("nanos", "timestamp_ns"),
            Column::new("day", "date"),
            Column::new("birth", "date"),
            Column::new("tenant", "int"),
            Column::new("name", "string"),
        ];
        let [first, later @ ..] = specs else { panic!("a spec") };
        let table = database.table_of(&catalog, "raw", &columns, first).await?;
        for spec in later {
            table.evolve_spec(spec).await?;
        }
        database.govern(&table, column, "7d").await?;
        Ok(Scene { database, catalog, table })
    }

    /// A table that went from `identity(tenant)` to `day(at)`.
    pub async fn with_tenants() -> Result<Self> {
        Self::new(&[&[Field::identity("tenant")], &[Field::day("at")]]).await
    }

    pub async fn append(&self, files: Vec<NewFile>) -> Result<Vec<i64>> {
        Ok(self.table.append(files).await?.file_ids)
    }

    /// One pass at a time, over this table.
    pub async fn sweep_at(&self, now: &str) -> Result<TableReport> {
        self.sweep_with(now, settings()).await
    }

    pub async fn sweep_with(&self, now: &str, settings: Settings) -> Result<TableReport> {
        let settings = Settings { as_of: Some(now.parse()?), ..settings };
        let report = self.database.sweep_with(&settings).await?;
        Ok(of_table(&report, "raw").clone())
    }

    pub async fn live(&self) -> Result<Vec<i64>> {
        crate::support::governed::live_ids(&self.table).await
    }
}

/// An instant as a bound of eight bytes in microseconds.
pub fn micros(text: &str) -> [u8; 8] {
    let at: UtcInstant = text.parse().expect("an instant");
    i64::try_from(at.nanos() / 1_000).expect("of this time").to_le_bytes()
}

/// An instant as a bound of eight bytes in nanoseconds.
pub fn nanos(text: &str) -> [u8; 8] {
    let at: UtcInstant = text.parse().expect("an instant");
    i64::try_from(at.nanos()).expect("of this time").to_le_bytes()
}

/// A date as a bound of four bytes.
pub fn date(text: &str) -> [u8; 4] {
    let at: UtcInstant = format!("{text}T00:00:00Z").parse().expect("a date");
    i32::try_from(at.days()).expect("of this time").to_le_bytes()
}

/// A file with these values and this newest row of `at`.
pub fn file(values: &[&str], newest: &str) -> NewFile {
    NewFile::of(values.to_vec()).upper("at", &micros(newest))
}
