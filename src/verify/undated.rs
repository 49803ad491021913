//! Files that are kept because it is unknown when they expire, or because their policy does not cover them.
//! That is no violation, but an operator should know of it.

use super::Scene;
use super::probe::{Probe, Stop};
use super::report::Findings;
use super::report::Sample;
use crate::catalog::finder::Finder;
use crate::policy::Policy;
use crate::policy::governed::Governed;
use crate::rules::expiry::KeptReason;
use crate::rules::kept::{KeptCounts, is_undatable};
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
            store::kept_counts(probe.turn().await?, identity, policy.source_field_id).await?;
        let name = scene.name(identity.table_id);
        let kept_counts = match remembered {
            Some((kept_counts, at)) => {
                findings.notes.push(format!("{name} was counted at {at}"));
                kept_counts
            }
            None => count(probe, scene, table, policy).await?,
        };
        add_undated(&name, &kept_counts, findings);
    }
    Ok(())
}

fn add_undated(name: &str, kept_counts: &KeptCounts, findings: &mut Findings) {
    for (reason, group) in &kept_counts.kept {
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
) -> Result<KeptCounts, Stop> {
    let identity = &table.live.identity;
    let (_, judge) = policy.judge(probe.turn().await?, identity, scene.now).await?;
    let mut sorter = Sorter::once(&judge);
    let finder =
        Finder { table: identity, judge: &judge, scan_limits: &scene.settings.sweep.scan_limits };
    let mut pages = finder.all();
    while let Some(files) = pages.next(probe.turn().await?).await? {
        files.into_iter().for_each(|file| sorter.add(file));
    }
    Ok(sorter.kept_counts)
}
