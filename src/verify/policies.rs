//! Whether policies can take effect: their field is a time field of the live spec, and their table exists.

use super::Scene;
use super::probe::{Probe, Stop};
use super::report::Findings;
use super::report::Sample;
use crate::catalog::checks::replaced::{left_policies, newest};
use crate::catalog::specs::TableShape;
use crate::policy::Policy;
use crate::policy::governed::Governed;
use crate::rules::transform::TimeTransform;
use crate::sweep::plan::NOT_PARQUET;

/// Looks at every policy, whatever its mode: one that is paused is to mean something too when it is
/// enforced again.
pub fn fields(scene: &Scene<'_>, findings: &mut Findings) -> Result<(), Stop> {
    for table in scene.governed()? {
        if let Some(problem) = problem(table) {
            findings.add(Sample {
                table: Some(scene.name(table.live.identity.table_id)),
                problem,
                ..Sample::default()
            });
        }
    }
    Ok(())
}

fn problem(table: &Governed) -> Option<String> {
    match &table.policy {
        Err(problem) => Some(problem.clone()),
        Ok(_) if !table.live.is_parquet => Some(NOT_PARQUET.to_owned()),
        Ok(policy) => (!means_time(policy, &table.shape)).then(|| {
            format!(
                "the policy's field {} is no time field of the live partition spec: new files are \
                 not covered",
                policy.field
            )
        }),
    }
}

fn means_time(policy: &Policy, shape: &TableShape) -> bool {
    let column = shape.columns.iter().find(|column| column.field_id == policy.source_field_id);
    let col_type = column.map(|column| column.col_type.as_str());
    let is_time = |transform: &str| TimeTransform::of_field(transform, col_type).is_some();
    column.is_some()
        && shape
            .live_spec_fields()
            .iter()
            .filter(|field| field.source_field_id == policy.source_field_id)
            .any(|field| is_time(&field.transform))
}

/// Looks for live tables without a policy that have the place or the name of one that is gone and had one.
pub async fn replaced(
    probe: &mut Probe<'_>,
    scene: &Scene<'_>,
    findings: &mut Findings,
) -> Result<(), Stop> {
    for left in newest(left_policies(probe.turn().await?, &[scene.catalog.catalog_id]).await?) {
        if scene.has(left.table_id) {
            let (old, field, keep) = (left.old_table_id, &left.field, &left.keep);
            findings.add(Sample {
                table: Some(format!("{}.{}", left.namespace, left.table)),
                problem: match left.is_replacement {
                    true => format!(
                        "it took the place of table {old}, which had the policy {field} keep {keep}, and \
                         has none"
                    ),
                    false => format!(
                        "it has the name of table {old}, which is gone and had the policy {field} keep \
                         {keep}, and has none"
                    ),
                },
                ..Sample::default()
            });
        }
    }
    Ok(())
}
