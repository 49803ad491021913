//! The leases of one table: written in a transaction of their own, under the catalog's lock for leases.

use anyhow::ensure;

use super::find::files_in_window;
use super::rows::{self, Changes};
use super::{LEASE, Settings};
use crate::catalog::compaction_claims::{self, Claims, make_claimant};
use crate::catalog::session::Session;
use crate::catalog::tables::LiveTable;
use crate::policy::effective;
use crate::policy::{Mode, Policy};
use crate::rules::instant::UtcInstant;

/// The policy of a table, if it drops.
pub async fn in_force(
    connection: &mut Session,
    table: &LiveTable,
    settings: &Settings,
) -> sqlx::Result<Option<Policy>> {
    let policy = effective::look(connection, table, settings.policy_limits).await?;
    Ok(policy.ok().flatten().filter(|policy| policy.mode == Mode::Enforce))
}

/// Claims a table's files; how many, in how many rows. `None` where they are unknown.
pub async fn renew_table(
    connection: &mut Session,
    table: &LiveTable,
    policy: &Policy,
    settings: &Settings,
    now: UtcInstant,
) -> anyhow::Result<Option<(usize, usize)>> {
    let identity = &table.identity;
    let found = files_in_window(connection, identity, policy, now, settings).await?;
    let Some(wanted) = found else { return Ok(None) };
    let claimant =
        match (compaction_claims::claimant(connection, identity.catalog_id).await?, &wanted) {
            (Some(claimant), _) => claimant,
            (None, wanted) if wanted.is_empty() => return Ok(Some((0, 0))),
            (None, _) => make_claimant(connection, identity.catalog_id).await?,
        };
    let claims = Claims { catalog_id: identity.catalog_id, table_id: identity.table_id, claimant };
    let mut transaction = connection.begin().await?;
    compaction_claims::lock(&mut transaction, claims.catalog_id).await?;
    // Whoever changed the policy since has released, or is about to release, by another one.
    if in_force(&mut transaction, table, settings).await?.as_ref() != Some(policy) {
        return Ok(Some((0, 0)));
    }
    let existing = claims.rows(&mut transaction).await?;
    let taken = claims.keys_of_others(&mut transaction).await?;
    let Changes { renewed, written, removed } = rows::changes(&existing, &wanted, &taken);
    // What is released first: a key may be taken anew.
    if !removed.is_empty() {
        claims.remove(&mut transaction, &removed).await?;
    }
    if !renewed.is_empty() {
        claims.renew(&mut transaction, &renewed, LEASE).await?;
    }
    for row in &written {
        let is_ours = claims.put(&mut transaction, row, LEASE).await?;
        ensure!(is_ours, "another claimant has just taken the key {}", row.group_key);
    }
    transaction.commit().await?;
    Ok(Some((wanted.len(), renewed.len() + written.len())))
}
