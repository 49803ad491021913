//! The tables that have a policy, or ask for one.

use super::Scene;
use super::probe::{Probe, Stop};
use crate::catalog::specs::{TableShape, table_shape};
use crate::catalog::tables::{LiveTable, live_tables};
use crate::policy::effective::{Effective, look};
use crate::policy::since::in_force_since;
use crate::policy::{Mode, Policy};
use crate::rules::instant::UtcInstant;

/// A table and its policy.
#[derive(Debug)]
pub struct Governed {
    /// The table.
    pub live: LiveTable,
    /// Its columns and its live spec.
    pub shape: TableShape,
    /// The policy in force, or why none is.
    pub effective: Effective,
    /// Since when the policy is in force as it is; `None` where there is none, or nobody can tell.
    pub since: Option<UtcInstant>,
}

impl Governed {
    /// The policy, where it is enforced on a table that can be swept.
    pub fn enforced(&self) -> Option<&Policy> {
        let policy = self.effective.as_ref().ok()?.as_ref()?;
        (self.live.is_parquet && policy.mode == Mode::Enforce).then_some(policy)
    }
}

/// Reads them, by name.
pub async fn read(probe: &mut Probe<'_>, scene: &Scene<'_>) -> Result<Vec<Governed>, Stop> {
    let mut tables = Vec::new();
    for live in live_tables(probe.turn().await?, scene.catalog, true).await? {
        let identity = &live.identity;
        if !scene.has(identity.table_id) {
            continue;
        }
        let (catalog_id, table_id) = (identity.catalog_id, identity.table_id);
        let effective = look(probe.turn().await?, &live, scene.settings.sweep.min_keep).await?;
        let shape = table_shape(probe.turn().await?, catalog_id, table_id).await?;
        let since = match &effective {
            Ok(Some(policy)) => in_force_since(probe.turn().await?, identity, policy).await?,
            Ok(None) | Err(_) => None,
        };
        tables.push(Governed { live, shape, effective, since });
    }
    Ok(tables)
}
