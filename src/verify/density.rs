//! Snapshot ids: dense from the floor to the head, and none above.

use super::Scene;
use super::probe::{Probe, Stop};
use super::report::Findings;
use super::report::{SAMPLES, Sample};
use crate::catalog::checks::snapshots::{missing_snapshots, snapshots_above, snapshots_between};

/// Ids in one piece.
const PIECE: i64 = 50_000;

/// More snapshots above the head than this are not counted.
const ABOVE: i64 = 10_000;

/// Counts the snapshots of the catalog, the newest first, piece by piece.
///
/// Expiry deletes what is below the floor and leaves the floor's own. The first commit of a catalog
/// makes snapshot 1.
pub async fn check(
    probe: &mut Probe<'_>,
    scene: &Scene<'_>,
    findings: &mut Findings,
) -> Result<(), Stop> {
    let (catalog_id, head) = (scene.catalog.catalog_id, scene.state.head);
    for snapshot_id in snapshots_above(probe.turn().await?, catalog_id, head, ABOVE).await? {
        findings.add(sample(snapshot_id, "there is such a snapshot above the head"));
    }
    let first = scene.state.floor.max(1);
    let mut through = head;
    while through >= first {
        let from = first.max(through.saturating_sub(PIECE - 1));
        let turn = probe.turn().await?;
        let there = snapshots_between(turn, catalog_id, from, through).await?;
        let missing = through - from + 1 - there;
        if missing > 0 {
            findings.count_more(missing);
            if findings.has_room() {
                let (turn, most) = (probe.turn().await?, SAMPLES as i64);
                for id in missing_snapshots(turn, catalog_id, from, through, most).await? {
                    findings.show(sample(id, "there is no such snapshot between floor and head"));
                }
            }
        }
        through = from - 1;
    }
    Ok(())
}

fn sample(snapshot_id: i64, problem: &str) -> Sample {
    Sample { snapshot_id: Some(snapshot_id), problem: problem.to_owned(), ..Sample::default() }
}
