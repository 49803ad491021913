//! From the drop to the disk: the floor, the objects and a reader of an old snapshot, step by step.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use anyhow::Result;
use chrono::Utc;
use tailrace::cli::text::{columns, count};
use tailrace_kit::lake::LakeError;
use tailrace_kit::simulated_loops::{Cleaned, Cleanup, Expiry};

use super::evidence::objects;
use super::lake::{DemoLake, RETENTION};

/// The most paths that one run of the cleanup takes; more than the demo has.
const ALL: i64 = 100_000;

/// What there is after a step.
#[derive(Debug)]
pub struct Observation {
    /// What was done.
    step: &'static str,
    /// The oldest snapshot that can still be read.
    pub floor: i64,
    /// The objects on disk.
    pub objects: BTreeSet<String>,
    /// The rows of each governed table for a reader of the snapshot before the drop; none
    /// where that is refused.
    pub rows: Option<Vec<i64>>,
}

impl Observation {
    /// Looks at disk, floor and rows.
    pub async fn make(step: &'static str, lake: &DemoLake, snapshot_id: i64) -> Result<Self> {
        let folder = lake.catalog.objects().unwrap_or_default();
        Ok(Self {
            step,
            floor: lake.catalog.floor().await?,
            objects: on_disk(folder).await?,
            rows: rows_at(lake, snapshot_id).await?,
        })
    }

    /// The rows of each table.
    pub fn rows_text(&self) -> String {
        match &self.rows {
            Some(rows) => rows.iter().map(|rows| count(*rows)).collect::<Vec<_>>().join(", "),
            None => REFUSED.to_owned(),
        }
    }
}

async fn on_disk(folder: PathBuf) -> io::Result<BTreeSet<String>> {
    tokio::task::spawn_blocking(move || objects(&folder)).await.map_err(io::Error::other)?
}

async fn rows_at(lake: &DemoLake, snapshot_id: i64) -> Result<Option<Vec<i64>>> {
    let mut rows = Vec::new();
    for table in &lake.governed {
        match table.rows_at(snapshot_id).await {
            Ok(seen) => rows.push(seen),
            Err(LakeError::Expired { .. }) => return Ok(None),
            Err(other) => return Err(other.into()),
        }
    }
    Ok(Some(rows))
}

/// What a reader of a snapshot below the floor gets.
pub const REFUSED: &str = "refused";

/// The steps after the pass.
#[derive(Debug)]
pub struct Removal {
    /// Expiry and cleanup at once: the floor stays below the drop.
    pub below: Observation,
    /// Expiry when the drop is older than the retention.
    pub passed: Observation,
    /// And the cleanup after it.
    pub cleaned: Observation,
    /// What the last cleanup did.
    pub cleanup: Cleaned,
}

/// Runs the simulated server loops: at once, then as if two hours had passed.
pub async fn follow(lake: &DemoLake, before_drop: i64) -> Result<Removal> {
    let (expiry, cleanup) = (Expiry::new(&lake.catalog), Cleanup::new(&lake.catalog));
    expiry.run().await?;
    cleanup.run(ALL).await?;
    let below = Observation::make("expiry and cleanup, at once", lake, before_drop).await?;

    expiry.advance_floor(Some(Utc::now() + 2 * RETENTION)).await?;
    expiry.purge().await?;
    let passed = Observation::make("expiry, two hours later", lake, before_drop).await?;
    let cleanup = cleanup.run(ALL).await?;
    let cleaned = Observation::make("cleanup after it", lake, before_drop).await?;
    Ok(Removal { below, passed, cleaned, cleanup })
}

/// The steps as a table.
pub fn text(observations: &[&Observation], before_drop: i64) -> String {
    let heading = ["", "FLOOR", "OBJECTS", &format!("ROWS AT SNAPSHOT {before_drop}")];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(observations.iter().map(|made| {
        vec![
            made.step.to_owned(),
            made.floor.to_string(),
            made.objects.len().to_string(),
            made.rows_text(),
        ]
    }));
    columns(&rows, &[1, 2], "")
}
