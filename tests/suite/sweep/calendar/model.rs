//! A model of the files that a table must have. It forgets nothing, and does not read the table.

use std::collections::BTreeMap;

use anyhow::Result;
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::Settings;
use tailrace::sweep::report::{Outcome, TableReport};

use super::Scene;

/// What is known of a live file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The spec that it was written under.
    pub spec_id: i64,
    /// Its value.
    pub value: Option<String>,
    /// When the range of its value ends; `None` where it is unknown.
    pub end: Option<UtcInstant>,
    /// When its newest row was, by its column statistics.
    pub newest: Option<UtcInstant>,
    /// How many of its rows its deletion vector takes away.
    pub vector: Option<i64>,
}

/// The live files by their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Model(pub BTreeMap<i64, File>);

impl Model {
    /// When the last file of each tuple does not count any more; `None` for never.
    fn ends(&self) -> BTreeMap<(i64, Option<String>), Option<UtcInstant>> {
        let mut ends = BTreeMap::new();
        for file in self.0.values() {
            let end = file.end.map(|end| file.newest.map_or(end, |newest| newest.max(end)));
            ends.entry((file.spec_id, file.value.clone()))
                .and_modify(|of: &mut Option<UtcInstant>| *of = of.zip(end).map(|(a, b)| a.max(b)))
                .or_insert(end);
        }
        ends
    }

    /// Whatever has expired goes, tuple by tuple.
    pub fn expire(&mut self, cutoff: UtcInstant) {
        let ends = self.ends();
        self.0.retain(|_, file| {
            ends[&(file.spec_id, file.value.clone())].is_none_or(|end| end > cutoff)
        });
    }

    /// The tuples that have expired by their values and wait for what their statistics say.
    pub fn waiting(&self, cutoff: UtcInstant) -> Vec<String> {
        let ends = self.ends();
        let waits = |file: &&File| {
            file.end.is_some_and(|end| end <= cutoff)
                && ends[&(file.spec_id, file.value.clone())].is_some_and(|end| end > cutoff)
        };
        let mut waiting: Vec<String> = self
            .0
            .values()
            .filter(waits)
            .map(|file| {
                let value = file.value.as_deref().unwrap_or_default();
                format!("{} {value} newer_rows_than_partition", file.spec_id)
            })
            .collect();
        waiting.sort_unstable();
        waiting.dedup();
        waiting
    }

    /// The files, each with what its vector takes away.
    pub fn kept(&self) -> Vec<(i64, Option<i64>)> {
        self.0.iter().map(|(id, file)| (*id, file.vector)).collect()
    }
}

impl Scene {
    /// The live files, each with what its vector takes away.
    pub async fn kept(&self) -> Result<Vec<(i64, Option<i64>)>> {
        let files = self.table.live_files().await?;
        let vector = |file: &tailrace_kit::lake::FileRow| {
            file.vector.as_ref().map(|vector| vector.delete_count)
        };
        Ok(files.iter().map(|file| (file.data_file_id, vector(file))).collect())
    }

    /// The vectors that live on although their files have ended.
    pub async fn orphans(&self) -> Result<i64> {
        let query = "SELECT count(*) FROM hog_delete_file d
                       JOIN hog_data_file f USING (catalog_id, data_file_id)
                      WHERE d.end_snapshot IS NULL AND f.end_snapshot IS NOT NULL";
        Ok(sqlx::query_scalar(query).fetch_one(self.database.lake.pool()).await?)
    }

    /// What waits, as [`Model::waiting`] has it.
    pub async fn waiting(&self) -> Result<Vec<String>> {
        let query = "SELECT spec_id || ' ' || (tuple -> 'values' ->> 0) || ' ' || reason
                       FROM tailrace.waiting";
        let mut waiting: Vec<String> =
            sqlx::query_scalar(query).fetch_all(self.database.lake.pool()).await?;
        waiting.sort_unstable();
        Ok(waiting)
    }

    /// Passes until one finds nothing to do, which `most` of them are enough for. What each of them did.
    pub async fn to_the_end(&self, most: usize) -> Result<Vec<TableReport>> {
        const RESTS: [Outcome; 4] =
            [Outcome::NothingToDo, Outcome::Observed, Outcome::Paused, Outcome::Unhealthy];
        let mut reports = Vec::new();
        loop {
            let settings = Settings { as_of: Some(self.now), ..self.settings };
            // No report where the policy is paused and nothing changed.
            reports.extend(self.database.sweep_with(&settings).await?.tables);
            if reports.last().is_none_or(|report| RESTS.contains(&report.outcome)) {
                return Ok(reports);
            }
            anyhow::ensure!(reports.len() < most, "no end: {reports:?}");
        }
    }
}
