//! Takes a stored policy away. The caller asks whether that is meant, and shows what is dropped without the
//! policy.

use serde_json::Value;

use super::history::Changer;
use super::row::PolicyRow;
use super::tombstones::Tombstone;
use super::{Source, store, tombstones};
use crate::catalog::session::Session;
use crate::catalog::tables::{LiveTable, TableIdentity};
use crate::events;

/// Takes a live table's stored policy away, and tells the log. Those of tables whose name or
/// place it has are no news then.
///
/// `is_confirmed`: whether it was shown what the table's property drops then, and accepted. Else the property is forgotten
/// first, as is one whose text is another by now: it waits as a new one when a pass reads it, before or after the stored
/// policy is gone.
///
/// Waits for a drop that is in its commit, as long as the session's `lock_timeout` allows.
pub async fn unset(
    connection: &mut Session,
    live: &LiveTable,
    changer: Changer<'_>,
    is_confirmed: bool,
) -> sqlx::Result<()> {
    let TableIdentity { catalog, namespace, table, .. } = &live.identity;
    let text = live.property.as_ref().and_then(Value::as_str);
    let mirror = store::rows(connection, &live.identity).await?.mirror;
    let was_shown = |row: &PolicyRow| is_confirmed && row.property_text.as_deref() == text;
    if mirror.is_some_and(|row| !was_shown(&row)) {
        store::remove(connection, &live.identity, Source::Property, changer).await?;
    }
    store::remove(connection, &live.identity, Source::Stored, changer).await?;
    tombstones::settle(connection, live).await?;
    tracing::info!(
        event = events::POLICY_UNSET,
        catalog,
        namespace,
        table,
        by = changer.name,
        reason = changer.reason,
        "A policy was taken away"
    );
    Ok(())
}

/// Takes away the policies of tables of a name that are gone, or whose place the live table took; gives them back.
pub async fn unset_gone(
    connection: &mut Session,
    catalog: &str,
    names: (&str, &str),
    live: Option<&LiveTable>,
    changer: Changer<'_>,
) -> sqlx::Result<Vec<Tombstone>> {
    let gone = tombstones::of_name(connection, catalog, names, live).await?;
    tombstones::forget(connection, &gone, changer).await?;
    Ok(gone)
}
