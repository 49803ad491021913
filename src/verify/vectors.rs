//! Live deletion vectors on files that a drop of tailrace ended: there must be none.

use super::Scene;
use super::probe::{Probe, Stop};
use super::report::Findings;
use super::report::Sample;
use crate::catalog::checks::vectors::left_vectors;

/// Live vectors in one piece.
const PIECE: i64 = 5_000;

/// Looks at every live vector of the catalog, piece by piece.
pub async fn check(
    probe: &mut Probe<'_>,
    scene: &Scene<'_>,
    findings: &mut Findings,
) -> Result<(), Stop> {
    let restored = scene.restored()?;
    let mut after = Some(i64::MIN);
    while let Some(file) = after {
        let turn = probe.turn().await?;
        let catalog_id = scene.catalog.catalog_id;
        let (left, last) = left_vectors(turn, catalog_id, restored, file, PIECE).await?;
        for vector in left.into_iter().filter(|vector| scene.has(vector.table_id)) {
            findings.add(Sample {
                table: Some(scene.name(vector.table_id)),
                data_file_id: Some(vector.data_file_id),
                delete_file_id: Some(vector.delete_file_id),
                snapshot_id: Some(vector.snapshot_id),
                problem: "it is live, and its file was ended by a drop".to_owned(),
                ..Sample::default()
            });
        }
        after = last;
    }
    Ok(())
}
