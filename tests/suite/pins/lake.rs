//! A lake for which commands and requests report as much as possible at one time.

use std::time::Duration;

use anyhow::Result;
use tailrace::policy::Mode;
use tailrace_kit::lake::{Catalog, CatalogOptions, Column, Field, NewFile, Table};
use tailrace_kit::simulated_loops::Consumer;

use crate::doctor::debt::Tier;
use crate::support::TestDatabase;
use crate::support::program::days_ago;

/// What passes are told beside the defaults: a tuple of more than two files is too large.
pub const ENV: [(&str, &str); 3] = [
    ("TAILRACE__SWEEP__MAX_FILES_PER_COMMIT", "2"),
    ("TAILRACE__SWEEP__MAX_FILES_PER_TUPLE", "2"),
    ("TAILRACE__SWEEP__OVERSIZE", "skip"),
];

pub struct Lake {
    pub database: TestDatabase,
    pub catalog: Catalog,
    /// `events.raw`, by `identity(team)` and `day(at)`, which keeps 7 days.
    pub raw: Table,
}

impl Lake {
    pub async fn new() -> Result<Self> {
        let database = TestDatabase::new().await?;
        let retention = Some(Duration::from_secs(3600));
        let options = CatalogOptions { retention, ..CatalogOptions::default() };
        let catalog = database.lake.catalog("lake", options).await?;
        let columns = [Column::new("team", "long"), Column::new("at", "timestamptz")];
        let spec = [Field::identity("team"), Field::day("at")];
        let raw = database.table_of(&catalog, "raw", &columns, &spec).await?;
        let lake = Lake { database, catalog, raw };
        lake.fill_raw().await?;
        lake.add_kept(&columns).await?;
        lake.add_refused().await?;
        lake.add_policies().await?;
        lake.sample().await?;
        Ok(lake)
    }

    /// A table `events.name` by day, with a file of each of these days.
    async fn by_day(&self, name: &str, days: &[&str]) -> Result<Table> {
        let table = self.database.table(&self.catalog, name, &[Field::day("at")]).await?;
        if !days.is_empty() {
            table.append(days.iter().map(|day| NewFile::of([*day])).collect()).await?;
        }
        Ok(table)
    }

    /// Expired, young, dated ahead, and of each kind that has no date.
    async fn fill_raw(&self) -> Result<()> {
        let (old, young) = (days_ago(9), days_ago(1));
        let files = vec![
            NewFile::of(["7", &old]).records(10).bytes(100),
            NewFile::new(vec![None, Some(old.clone())]),
            NewFile::of(["7", &young]),
            NewFile::of(["7", "99999"]),
            NewFile::of(["7", "x"]),
            NewFile::new(vec![Some("7".to_owned()), None]),
            NewFile::of(["7", &young]).missing(0),
            NewFile::of(["7", "9223372036854775807"]),
        ];
        let ids = self.raw.append(files).await?.file_ids;
        self.raw.register_vector(ids[0], 3, None).await?;
        self.database.govern(&self.raw, "day(at)", "7d").await?;
        Consumer::register(&self.raw, "copy").await?;
        Ok(())
    }

    /// What has expired by its values and is kept by what else is known of it.
    async fn add_kept(&self, columns: &[Column]) -> Result<()> {
        let tenants = self
            .database
            .table_of(&self.catalog, "tenants", columns, &[Field::identity("team")])
            .await?;
        tenants.evolve_spec(&[Field::day("at")]).await?;
        tenants.append(vec![NewFile::of(["42"])]).await?;
        self.database.govern(&tenants, "day(at)", "7d").await?;
        let newer = self.by_day("newer", &[]).await?;
        let now = chrono::Utc::now().timestamp_micros();
        let file = NewFile::of([days_ago(9)]).upper("at", &now.to_le_bytes());
        newer.append(vec![file]).await?;
        self.database.govern(&newer, "day(at)", "7d").await?;
        let undated = self.by_day("undated", &["x"]).await?;
        self.database.govern(&undated, "day(at)", "7d").await?;
        Ok(())
    }

    /// What the database refuses to end, and what is too large.
    async fn add_refused(&self) -> Result<()> {
        let refused = self.by_day("refused", &["18000", "18001", "18002"]).await?;
        self.database.govern(&refused, "day(at)", "7d").await?;
        let file = refused.live_files().await?[0].data_file_id;
        self.database
            .sql(&format!(
                "CREATE FUNCTION refuse_files() RETURNS trigger LANGUAGE plpgsql
                   AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
                 CREATE TRIGGER refuse BEFORE UPDATE ON hog_data_file FOR EACH ROW
                   WHEN (new.end_snapshot IS NOT NULL AND new.data_file_id = {file})
                   EXECUTE FUNCTION refuse_files()"
            ))
            .await?;
        let large = self.by_day("large", &["18000", "18000", "18000"]).await?;
        self.database.govern(&large, "day(at)", "7d").await?;
        Ok(())
    }

    /// A policy of each mode and source, one that is not followed, and one of a table that is gone.
    async fn add_policies(&self) -> Result<()> {
        for (name, mode) in [("observed", Mode::Observe), ("paused", Mode::Paused)] {
            let table = self.by_day(name, &["18000"]).await?;
            self.database.govern_as(&table, "day(at)", "7d", mode).await?;
        }
        for (name, keep) in [("property", "7d"), ("broken", "7 months")] {
            let table = self.by_day(name, &["18000"]).await?;
            let text = format!(r#"{{"field": "at", "keep": "{keep}"}}"#);
            table.set_property("partition_retention", Some(&text)).await?;
        }
        let gone = self.by_day("gone", &[]).await?;
        self.database.govern(&gone, "day(at)", "7d").await?;
        gone.drop_table().await?;
        self.by_day("gone", &[]).await?;
        Ok(())
    }

    /// The server's published sample.
    async fn sample(&self) -> Result<()> {
        let values = ["7", &days_ago(9)];
        let tier = Tier {
            generation: 1,
            table: &self.raw,
            values: Some(&values),
            counts: [4, 4, 4, 400, 400, 40],
        };
        self.database.sample(&[tier]).await?;
        self.database.publish(&self.raw, 1, 1).await
    }
}
