//! Releases at once what a changed policy no longer covers, in the call that changed the policy.

use std::collections::BTreeSet;

use super::Settings;
use super::find::window_judge;
use super::lease::in_force;
use super::rows::{MOST_IDS, without_others};
use crate::catalog::clock;
use crate::catalog::compaction_claims::{self, ClaimRow, Claims, has_claims};
use crate::catalog::errors::describe;
use crate::catalog::session::Session;
use crate::catalog::table_files::live_by_ids;
use crate::catalog::tables::{TableIdentity, find_live_table};
use crate::catalog::window_rules::keep_window_rules;
use crate::events;
use crate::rules::expiry::{Judge, Verdict};
use crate::rules::instant::UtcInstant;

/// Follows a change of a table's policy: what is claimed and no longer in the window is released,
/// and `tailrace.in_drop_window` is made quick again for the catalog.
///
/// Nothing of that is worth failing the change for: what fails is told in the log, and the next
/// renewal does it, or the leases lapse.
pub async fn policy_changed(connection: &mut Session, table: &TableIdentity, settings: &Settings) {
    let followed = async {
        let files = release(connection, table, settings, None).await?;
        keep_window_rules(connection, table.catalog_id).await?;
        anyhow::Ok(files)
    };
    let TableIdentity { catalog, namespace, table, .. } = table;
    match followed.await {
        Ok(0) => {}
        Ok(files) => tracing::info!(
            event = events::SHIELD_RELEASED,
            catalog,
            namespace,
            table,
            files,
            "Files that are no longer about to be dropped are left to compaction again"
        ),
        Err(error) => tracing::warn!(
            event = events::SHIELD_NOT_RELEASED,
            catalog,
            namespace,
            table,
            error = describe(&error),
            "Files that are no longer about to be dropped may be kept from compaction for a while"
        ),
    }
}

/// Releases the claimed files of a table that are not in the window of the policy in force, at
/// `now` or at the database's time; all of them where none enforces. Returns how many. Nothing is
/// claimed and no lease is lengthened.
///
/// # Errors
/// The database's.
pub async fn release(
    connection: &mut Session,
    table: &TableIdentity,
    settings: &Settings,
    now: Option<UtcInstant>,
) -> anyhow::Result<usize> {
    if !has_claims(connection).await? {
        return Ok(0);
    }
    let TableIdentity { catalog_id, table_id, .. } = *table;
    let Some(claimant) = compaction_claims::claimant(connection, catalog_id).await? else {
        return Ok(0);
    };
    let claims = Claims { catalog_id, table_id, claimant };
    let now = match now {
        Some(now) => now,
        None => clock::now(connection).await?,
    };
    let mut transaction = connection.begin().await?;
    // A renewal that found its files by the policy before writes them before this, or not at all.
    compaction_claims::lock(&mut transaction, catalog_id).await?;
    let existing = claims.rows(&mut transaction).await?;
    let mut staying = BTreeSet::new();
    if !existing.is_empty()
        && let Some(judge) = judge_in_force(&mut transaction, table, settings, now).await?
    {
        staying = in_window(&mut transaction, table, &existing, &judge).await?;
    }
    let changes = without_others(&existing, &staying);
    if !changes.removed.is_empty() {
        claims.remove(&mut transaction, &changes.removed).await?;
    }
    for row in &changes.written {
        claims.shrink(&mut transaction, row).await?;
    }
    transaction.commit().await?;
    let claimed: usize = existing.iter().map(|row| row.ids.len()).sum();
    Ok(claimed.saturating_sub(staying.len()))
}

/// The judge of the window, where a policy enforces.
async fn judge_in_force(
    connection: &mut Session,
    table: &TableIdentity,
    settings: &Settings,
    now: UtcInstant,
) -> sqlx::Result<Option<Judge>> {
    let TableIdentity { catalog_id, catalog, namespace, table: name, .. } = table;
    let live = find_live_table(connection, *catalog_id, catalog, namespace, name).await?;
    let Some(live) = live.filter(|live| settings.claims && live.identity == *table) else {
        return Ok(None);
    };
    let Some(policy) = in_force(connection, &live, settings).await? else { return Ok(None) };
    let (_, judge) = window_judge(connection, table, &policy, now, settings).await?;
    Ok(Some(judge))
}

/// Those of the claimed files that are live and in the window.
async fn in_window(
    connection: &mut Session,
    table: &TableIdentity,
    existing: &[ClaimRow],
    judge: &Judge,
) -> sqlx::Result<BTreeSet<i64>> {
    let mut staying = BTreeSet::new();
    for ids in existing.iter().flat_map(|row| row.ids.chunks(MOST_IDS)) {
        let files = live_by_ids(connection, table.catalog_id, table.table_id, ids).await?;
        let expired = files.into_iter().filter(|file| {
            matches!(judge.judge(file.spec_id, &file.tuple), Verdict::Expired { .. })
        });
        staying.extend(expired.map(|file| file.data_file_id));
    }
    Ok(staying)
}
