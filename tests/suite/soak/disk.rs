//! Checks the objects on disk.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use chrono::{TimeDelta, Utc};
use fastrand::Rng;
use tailrace_kit::simulated_loops::{Cleaned, Cleanup, Expiry};

use super::{Left, Soak};

impl Soak {
    /// The folder of all that the test leaves on disk.
    pub fn objects_folder(&self) -> Result<PathBuf> {
        let objects = self.scene.catalog.objects().context("objects on disk")?;
        Ok(objects.parent().context("a folder of catalogs")?.to_owned())
    }
}

/// Looks again and again whether an object is missing that a retained snapshot names.
pub async fn watch(soak: Arc<Soak>, mut random: Rng) -> Result<Left> {
    while soak.goes_on(&mut random, 600).await {
        look(&soak).await?;
    }
    Ok(Left::Nothing)
}

async fn look(soak: &Soak) -> Result<()> {
    let catalog = &soak.scene.catalog;
    let mut history = soak.history.lock().await;
    history.read().await?;
    let needed = history.named_after(catalog.floor().await?);
    let number = needed.len() as u64;
    let mut missing: BTreeSet<String> =
        needed.into_iter().filter(|path| !Path::new(path).is_file()).collect();
    if !missing.is_empty() {
        // The floor may have passed them meanwhile, and never goes back.
        history.read().await?;
        let still = history.named_after(catalog.floor().await?);
        missing.retain(|path| still.contains(path));
    }
    assert_eq!(missing, BTreeSet::new(), "retained snapshots name them");
    soak.count("looks for needed objects", 1);
    soak.count("objects looked for", number);
    Ok(())
}

/// Expires, purges and deletes to the end: the head is the only snapshot that is left.
pub async fn drain(soak: &Soak) -> Result<()> {
    let catalog = &soak.scene.catalog;
    soak.history.lock().await.read().await?;
    let expiry = Expiry::new(catalog);
    let later = Some(Utc::now() + TimeDelta::hours(2));
    let head = catalog.head().await?;
    loop {
        let moved = expiry.advance_floor(later).await?;
        if moved.to == head {
            break;
        }
        assert!(moved.to > moved.from, "something holds the floor back at {moved:?}");
    }
    let purged = expiry.purge().await?;
    soak.count("rows purged", purged.files + purged.vectors);
    let cleanup = Cleanup::new(catalog);
    loop {
        let cleaned = cleanup.run(1000).await?;
        assert_eq!((cleaned.violations, cleaned.absent), (0, 0), "{cleaned:?}");
        if cleaned == Cleaned::default() {
            return Ok(());
        }
        soak.count("objects deleted", cleaned.deleted);
    }
}

/// After [`drain`]: the objects that a row ever named are those of live files and vectors, exactly,
/// so nothing of a dropped partition is left; the others are those of commits that were refused.
pub async fn holds_what_is_live_and_no_more(soak: &Soak) -> Result<()> {
    let (catalog, table) = (&soak.scene.catalog, &soak.scene.table);
    let history = soak.history.lock().await;
    let (mut named, mut nameless) = (BTreeSet::new(), 0);
    let mut folders = vec![catalog.objects().context("objects on disk")?];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let path = path.to_string_lossy().into_owned();
            if history.objects.knows(&path) {
                named.insert(path);
            } else {
                nameless += 1;
            }
        }
    }
    let live = table.live_files().await?;
    let vectors = live.iter().filter_map(|file| file.vector.as_ref());
    let expected: BTreeSet<String> =
        live.iter().map(|f| f.path.clone()).chain(vectors.map(|v| v.path.clone())).collect();
    assert_eq!(&named - &expected, BTreeSet::new(), "they should be gone");
    assert_eq!(&expected - &named, BTreeSet::new(), "they should be there");
    assert_eq!(expected, history.named_after(catalog.head().await?));
    assert_eq!(nameless, soak.counted("objects without a row"));
    assert_eq!(table.all_files().await?.len(), live.len(), "no ended row is left");
    Ok(())
}
