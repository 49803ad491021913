//! Tests of compaction claims: what is claimed, renewed and released in `hog_compaction_claim`.

mod basics;
mod beside;
mod bounds;
mod daemon;
mod finding;
mod idle;
mod mirrored;
mod races;
mod release;
mod servers;
mod specs;

use anyhow::Result;
use tailrace::claims::{Renewed, Settings, renew};
use tailrace::config::{Config, LoadOptions};
use tailrace_kit::lake::{Catalog, Field, NewFile, Table};

use crate::support::TestDatabase;
use crate::support::program::{at_once, days_ago};

/// The settings that the configuration gives where nobody sets anything.
pub fn settings() -> Settings {
    let config = Config::load(&LoadOptions::default()).expect("the built-in configuration");
    let settings = Settings::from_config(&config);
    Settings { policy_limits: at_once(settings.policy_limits), ..settings }
}

/// A lake with the table `events.raw`, by day, kept for a week.
pub struct Scene {
    pub database: TestDatabase,
    pub catalog: Catalog,
    pub table: Table,
}

impl Scene {
    pub async fn new() -> Result<Self> {
        let database = TestDatabase::new().await?;
        let catalog = database.catalog("lake").await?;
        let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
        database.govern(&table, "at", "7d").await?;
        Ok(Scene { database, catalog, table })
    }

    /// Appends a small file for each of these days before today; their ids.
    pub async fn files(&self, ages: &[i64]) -> Result<Vec<i64>> {
        append(&self.table, ages).await
    }

    pub async fn renew(&self) -> Result<Renewed> {
        self.renew_with(&settings()).await
    }

    /// One renewal in which nothing failed.
    pub async fn renew_with(&self, settings: &Settings) -> Result<Renewed> {
        let renewed = renew(&self.database.tailrace(), settings, None).await?;
        assert_eq!(renewed.failed, []);
        Ok(renewed)
    }

    /// Our rows of the table as (key, ids), by key.
    pub async fn rows(&self) -> Result<Vec<(String, Vec<i64>)>> {
        rows_of(&self.database, &self.table).await
    }

    /// The ids that our rows of the table name, ascending.
    pub async fn claimed(&self) -> Result<Vec<i64>> {
        let mut ids: Vec<i64> = self.rows().await?.into_iter().flat_map(|(_, ids)| ids).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// Every row of the table of claims as JSON, by key.
    pub async fn all_rows(&self) -> Result<Vec<String>> {
        self.database.rows("SELECT * FROM hog_compaction_claim ORDER BY table_id, group_key").await
    }
}

/// Appends a small file for each of these days before today; their ids.
pub async fn append(table: &Table, ages: &[i64]) -> Result<Vec<i64>> {
    let files = ages.iter().map(|age| NewFile::of([days_ago(*age)]).bytes(100)).collect();
    Ok(table.append(files).await?.file_ids)
}

/// Our rows of a table as (key, ids), by key; each has the claimant of its catalog, and a lease of
/// half an hour.
pub async fn rows_of(database: &TestDatabase, table: &Table) -> Result<Vec<(String, Vec<i64>)>> {
    let rows: Vec<(String, Vec<i64>, bool)> = sqlx::query_as(
        "SELECT c.group_key, c.input_file_ids,
                c.expires_at BETWEEN now() + interval '29 minutes' AND now() + interval '30 minutes'
           FROM hog_compaction_claim c
           JOIN tailrace.claimant o USING (catalog_id, claimant)
          WHERE c.catalog_id = $1 AND c.table_id = $2 ORDER BY c.group_key",
    )
    .bind(table.catalog.catalog_id)
    .bind(table.table_id)
    .fetch_all(&database.pool)
    .await?;
    assert!(rows.iter().all(|(_, _, lease)| *lease), "{rows:?}");
    Ok(rows.into_iter().map(|(key, ids, _)| (key, ids)).collect())
}
