//! From the drop to the disk: the floor, the objects and a reader of the past, step by step.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use anyhow::Result;
use chrono::Utc;
use tailrace::cli::text::{columns, count};
use tailrace_kit::lake::LakeError;
use tailrace_kit::standin::{Cleaned, Cleanup, Expiry};

use super::evidence::objects;
use super::scene::{RETENTION, Scene};

/// The most paths that one run of the cleanup takes; more than the demo has.
const ALL: i64 = 100_000;

/// What there is after a step.
#[derive(Debug)]
pub struct Sight {
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

impl Sight {
    /// Looks at disk, floor and rows.
    pub async fn take(step: &'static str, scene: &Scene, snapshot_id: i64) -> Result<Self> {
        let folder = scene.catalog.objects().unwrap_or_default();
        Ok(Self {
            step,
            floor: scene.catalog.floor().await?,
            objects: on_disk(folder).await?,
            rows: rows_at(scene, snapshot_id).await?,
        })
    }
}

impl Sight {
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

async fn rows_at(scene: &Scene, snapshot_id: i64) -> Result<Option<Vec<i64>>> {
    let mut rows = Vec::new();
    for table in &scene.governed {
        match table.rows_at(snapshot_id).await {
            Ok(seen) => rows.push(seen),
            Err(LakeError::Expired { .. }) => return Ok(None),
            Err(other) => return Err(other.into()),
        }
    }
    Ok(Some(rows))
}

/// What a reader of a snapshot below the floor is told.
pub const REFUSED: &str = "refused, below the floor";

/// The steps after the pass.
#[derive(Debug)]
pub struct Removal {
    /// Expiry and cleanup at once: the floor stays below the drop.
    pub below: Sight,
    /// Expiry when the drop is older than the retention.
    pub passed: Sight,
    /// And the cleanup after it.
    pub cleaned: Sight,
    /// What the last cleanup did.
    pub cleanup: Cleaned,
}

/// Runs the stand-ins for the server's loops: at once, then as if two hours had passed.
pub async fn follow(scene: &Scene, before_drop: i64) -> Result<Removal> {
    let (expiry, cleanup) = (Expiry::new(&scene.catalog), Cleanup::new(&scene.catalog));
    expiry.run().await?;
    cleanup.run(ALL).await?;
    let below = Sight::take("stand-ins: expiry, cleanup", scene, before_drop).await?;

    expiry.advance_floor(Some(Utc::now() + 2 * RETENTION)).await?;
    expiry.purge().await?;
    let passed = Sight::take("stand-in: expiry, later", scene, before_drop).await?;
    let cleanup = cleanup.run(ALL).await?;
    let cleaned = Sight::take("stand-in: cleanup", scene, before_drop).await?;
    Ok(Removal { below, passed, cleaned, cleanup })
}

/// The steps as a table.
pub fn text(sights: &[&Sight], before_drop: i64) -> String {
    let heading = ["", "FLOOR", "OBJECTS", &format!("ROWS AT SNAPSHOT {before_drop}, BY TABLE")];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(sights.iter().map(|sight| {
        vec![
            sight.step.to_owned(),
            sight.floor.to_string(),
            sight.objects.len().to_string(),
            sight.rows_text(),
        ]
    }));
    columns(&rows, &[1, 2], "   ")
}
