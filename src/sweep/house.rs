//! What a pass does beside its tables: it deletes rows that belong to nothing any more, notes what became of
//! earlier drops, and looks after policies whose tables are gone.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::settings::Settings;
use crate::catalog::checks::replaced::{LeftPolicy, left_policies, newest};
use crate::catalog::gone_tables::purge_gone_tables;
use crate::catalog::purge::purge;
use crate::catalog::session::Session;
use crate::catalog::tombstones::{self, GoneTable, NamedPolicy};
use crate::events;
use crate::guards::approval;
use crate::policy::command::{forget, set_again};
use crate::policy::history;
use crate::rules::instant::UtcInstant;
use crate::trace::advance;

/// Does all of it in every catalog except those `untouched`. Their clock is in doubt, or they were restored or
/// are not whole: nothing may be purged there, and nothing noted of drops. A failure is logged and does not stop
/// the pass. No piece is cancelled while it waits, because the session would be lost for the next one. Each piece
/// is a few statements, which the server limits.
pub async fn keep_house(
    control: &mut Session,
    settings: &Settings,
    now: UtcInstant,
    untouched: &BTreeSet<i64>,
) {
    let but: Vec<i64> = untouched.iter().copied().collect();
    // Rows that nothing stands behind do no harm: that they could not be purged is no reason to let
    // a pass fail.
    let purged = purge(control, now, settings.history_keep, settings.receipt_keep, &but).await;
    if let Err(error) = purged {
        tracing::warn!(event = events::PURGE_FAILED, %error, "Old rows of the schema tailrace could not be deleted");
    }
    let purged = purge_gone_tables(control, now, settings.full_pass_every, &but).await;
    if let Err(error) = purged {
        tracing::warn!(
            event = events::PURGE_FAILED,
            %error,
            "What passes noted of tables that are gone could not be deleted"
        );
    }
    if let Some(now) = now.to_chrono() {
        let purged = history::purge(control, now, settings.history_keep, &but).await;
        if let Err(error) = purged {
            tracing::warn!(
                event = events::PURGE_FAILED,
                %error,
                "Old changes of policies could not be deleted"
            );
        }
        if let Err(error) = approval::purge(control, now, &but).await {
            tracing::warn!(
                event = events::PURGE_FAILED,
                %error,
                "Old approvals could not be deleted"
            );
        }
        let looked = look_after_tombstones(control, now, settings.history_keep, &but).await;
        if let Err(error) = looked {
            tracing::warn!(
                event = events::PURGE_FAILED,
                %error,
                "The policies of tables that are gone could not be checked"
            );
        }
    }
    // Nor that it could not be noted what became of earlier drops.
    if let Err(error) = advance(control, now, untouched).await {
        tracing::warn!(
            event = events::TRACE_FAILED,
            %error,
            "What became of drops could not be noted"
        );
    }
}

/// Notes which tables are gone and which are back, tells it once, and purges what is kept of those that
/// are gone for longer than `keep`. That something was logged is noted first: it is logged once at most.
async fn look_after_tombstones(
    connection: &mut Session,
    now: DateTime<Utc>,
    keep: Duration,
    but: &[i64],
) -> sqlx::Result<()> {
    let back = tombstones::note_policies(connection, now, but).await?;
    tombstones::look_after_copies(connection, now, keep, but).await?;
    for policy in &back {
        let (catalog, namespace, table) = names(policy);
        tracing::info!(
            event = events::POLICY_BACK,
            catalog, namespace, table, table_uuid = %policy.table_uuid,
            source = policy.source, field = policy.field, keep = policy.keep,
            "A table that was gone is back, and its policy is in force again"
        );
    }
    let needed = log_orphaned(connection, but).await?;
    for policy in tombstones::note_told(connection, but).await? {
        let (catalog, namespace, table) = names(&policy);
        tracing::info!(
            event = events::POLICY_TOMBSTONED,
            catalog, namespace, table, table_uuid = %policy.table_uuid,
            source = policy.source, field = policy.field, keep = policy.keep,
            "A table is gone; its policy is kept for history.keep, and in force again if the same table is \
             back"
        );
    }
    for policy in tombstones::purge_policies(connection, now, keep, but, &needed).await? {
        let (catalog, namespace, table) = names(&policy);
        tracing::info!(
            event = events::POLICY_PURGED,
            catalog, namespace, table, table_uuid = %policy.table_uuid,
            source = policy.source, field = policy.field, keep = policy.keep,
            "A table is gone for longer than history.keep; its policy is forgotten"
        );
    }
    Ok(())
}

/// Logs live tables that have the name or the place of one with a policy, and have none; returns the
/// tables that are gone and had them.
async fn log_orphaned(connection: &mut Session, but: &[i64]) -> sqlx::Result<Vec<GoneTable>> {
    let with_gone = tombstones::with_gone_policies(connection, but).await?;
    if with_gone.is_empty() {
        return Ok(Vec::new());
    }
    let left = left_policies(connection, &with_gone).await?;
    let gone = |left: &LeftPolicy| (left.catalog_id, left.old_table_id, left.old_table_uuid);
    let needed: Vec<GoneTable> = left.iter().map(gone).collect();
    let news = tombstones::note_orphaned(connection, &needed).await?;
    // Of several that one live table has the place of, the one that was set last comes first, and is logged.
    for left in newest(left.into_iter().filter(|left| news.contains(&gone(left))).collect()) {
        tracing::warn!(
            event = events::POLICY_ORPHANED,
            catalog = left.catalog,
            namespace = left.namespace, table = left.table,
            old_table_uuid = %left.old_table_uuid,
            field = left.field, keep = left.keep, mode = left.mode,
            set = set_again(&left.catalog, &left),
            unset = forget(&left.catalog, &left),
            "A table with a policy is gone, and another one is in its place that has none: nothing \
             is dropped from it until `set` is run; if that is meant, `unset` settles it"
        );
    }
    Ok(needed)
}

fn names(policy: &NamedPolicy) -> (Option<&str>, Option<&str>, Option<&str>) {
    (policy.catalog.as_deref(), policy.namespace.as_deref(), policy.table.as_deref())
}
