//! Files that stay because nobody can tell when they expire, or because their policy does not cover
//! them. That is no violation: doubt keeps. It is worth knowing.

use super::Scene;
use super::governed::Governed;
use super::probe::{Probe, Stop};
use super::report::Findings;
use super::report::Sample;
use crate::catalog::specs::spec_book;
use crate::catalog::walk::{Place, live_since, walk};
use crate::policy::Policy;
use crate::rules::expiry::{Judge, KeptReason, Retention};
use crate::rules::kept::{Census, is_undatable};
use crate::sweep::memory::store;
use crate::sweep::sorter::Sorter;

/// What the last full pass over a table counted, with its age; where none has, it is counted now, as
/// far as the budget goes.
pub async fn check(
    probe: &mut Probe<'_>,
    scene: &Scene<'_>,
    findings: &mut Findings,
) -> Result<(), Stop> {
    for table in scene.governed()? {
        let Ok(Some(policy)) = &table.effective else { continue };
        if !table.live.is_parquet {
            continue;
        }
        let identity = &table.live.identity;
        let remembered =
            store::census(probe.turn().await?, identity, policy.source_field_id).await?;
        let name = scene.name(identity.table_id);
        let census = match remembered {
            Some((census, at)) => {
                findings.notes.push(format!("{name} was counted at {at}"));
                census
            }
            None => count(probe, scene, table, policy).await?,
        };
        tell(&name, &census, findings);
    }
    Ok(())
}

fn tell(name: &str, census: &Census, findings: &mut Findings) {
    for (reason, group) in &census.kept {
        if !is_undatable(*reason) && *reason != KeptReason::Uncovered {
            continue;
        }
        findings.count_more(group.files);
        for sample in &group.samples {
            findings.show(Sample {
                table: Some(name.to_owned()),
                partition: Some(sample.display.clone()),
                problem: format!("files {}: {}", reason.name(), sample.files),
                ..Sample::default()
            });
        }
    }
}

async fn count(
    probe: &mut Probe<'_>,
    scene: &Scene<'_>,
    table: &Governed,
    policy: &Policy,
) -> Result<Census, Stop> {
    let identity = &table.live.identity;
    let (catalog_id, table_id) = (identity.catalog_id, identity.table_id);
    let book = spec_book(probe.turn().await?, catalog_id, table_id).await?;
    let (source_field_id, keep) = (policy.source_field_id, policy.keep.length());
    let judge = Judge::new(&book, Retention { source_field_id, keep, now: scene.now });
    let mut sorter = Sorter::once(&judge);
    let reach = &scene.settings.sweep.reach;
    let most = reach.small_table;
    let files = live_since(probe.turn().await?, catalog_id, table_id, i64::MIN, most + 1).await?;
    if files.len() as i64 <= most {
        files.into_iter().for_each(|file| sorter.add(file));
        return Ok(sorter.census);
    }
    let mut after = Some(Place::START);
    while let Some(place) = after {
        let turn = probe.turn().await?;
        let (files, next) = walk(turn, catalog_id, table_id, place, reach.piece).await?;
        files.into_iter().for_each(|file| sorter.add(file));
        after = next;
    }
    Ok(sorter.census)
}
