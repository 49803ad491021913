//! Files that stay because nobody can tell when they expire, or because their policy does not cover
//! them. That is no violation: doubt keeps. It is worth knowing.

use super::Scene;
use super::probe::{Probe, Stop};
use super::report::Findings;
use super::report::Sample;
use crate::catalog::finder::Finder;
use crate::policy::Policy;
use crate::policy::governed::Governed;
use crate::rules::expiry::KeptReason;
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
        let Some(policy) = table.followed() else { continue };
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
    let (_, judge) = policy.judge(probe.turn().await?, identity, scene.now).await?;
    let mut sorter = Sorter::once(&judge);
    let finder = Finder { table: identity, judge: &judge, reach: &scene.settings.sweep.reach };
    let mut pages = finder.all();
    while let Some(files) = pages.next(probe.turn().await?).await? {
        files.into_iter().for_each(|file| sorter.add(file));
    }
    Ok(sorter.census)
}
