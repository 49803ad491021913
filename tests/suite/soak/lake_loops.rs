//! Runs the simulated loops of the server.

use std::sync::Arc;

use anyhow::Result;
use chrono::{TimeDelta, Utc};
use fastrand::Rng;
use tailrace_kit::simulated_loops::{Cleanup, Compacted, Compaction, Expiry, HeldFiles};

use super::window::{self, CLAIMED};
use super::{Left, Soak};

/// Sits on rows, and has their statistics in the end or not.
pub async fn hydrate(soak: Arc<Soak>, mut random: Rng) -> Result<Left> {
    while soak.goes_on(&mut random, 300).await {
        let held = HeldFiles::hold(&soak.scene.catalog, random.i64(1..20)).await?;
        soak.count("rows that the hydrator held", held.file_ids.len() as u64);
        soak.goes_on(&mut random, 400).await;
        if random.bool() {
            held.finish().await?;
        } else {
            held.release().await?;
        }
    }
    Ok(Left::Nothing)
}

/// Plans and claims, takes its time, and commits what still stands.
pub async fn compact(soak: Arc<Soak>, mut random: Rng) -> Result<Left> {
    let compaction = Compaction::new(&soak.scene.catalog, 1000);
    while soak.goes_on(&mut random, 1000).await {
        let settled = window::settled(&soak).await?;
        let groups = compaction.plan(&soak.scene.table).await?;
        let settled = settled.if_still_in_force(&soak);
        for group in groups {
            soak.goes_on(&mut random, 150).await;
            let inputs = group.inputs.clone();
            let wasted = inputs.iter().any(|input| settled.contains(input));
            match compaction.commit(group).await? {
                Compacted::Done { .. } => {
                    soak.count("rewrites of the drop window", u64::from(wasted));
                    assert!(!(CLAIMED && wasted), "{inputs:?} will be dropped: {settled:?}");
                }
                Compacted::Lost => soak.count("compactions that lost", 1),
            }
        }
    }
    Ok(Left::Nothing)
}

/// Moves the floor up, as if the retention had passed, and purges when it comes to it.
pub async fn expire(soak: Arc<Soak>, mut random: Rng) -> Result<Left> {
    let mut expiry = Expiry::new(&soak.scene.catalog);
    while soak.goes_on(&mut random, 800).await {
        expiry.batch = random.i64(1..30);
        let moved = expiry.advance_floor(Some(Utc::now() + TimeDelta::hours(2))).await?;
        soak.count("snapshots that the floor passed", moved.to.abs_diff(moved.from));
        for _ in 0..random.u8(0..4) {
            soak.goes_on(&mut random, 300).await;
            let purged = expiry.purge_page().await?;
            soak.count("rows purged", purged.files + purged.vectors);
        }
    }
    Ok(Left::Nothing)
}

/// Deletes objects.
pub async fn clean_up(soak: Arc<Soak>, mut random: Rng) -> Result<Left> {
    let cleanup = Cleanup::new(&soak.scene.catalog);
    while soak.goes_on(&mut random, 700).await {
        let cleaned = cleanup.run(random.i64(1..100)).await?;
        assert_eq!((cleaned.violations, cleaned.absent), (0, 0), "{cleaned:?}");
        soak.count("objects deleted", cleaned.deleted);
    }
    Ok(Left::Nothing)
}
