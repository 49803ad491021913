//! Policies of tables that are gone. Such a policy is not in force. It is in force again when the same table,
//! by its UUID, is back. No policy follows the name of a table.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::history::{self, Changer, PolicyTerms};
use super::kept_rows::{KeptRow, all_rows, remove_row, settle_row};
use crate::catalog::checks::replaced::left_policies;
use crate::catalog::session::Session;
use crate::catalog::tables::{LiveTable, TableIdentity, catalogs, live_tables};
use crate::events;

/// A policy of a table that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tombstone {
    /// The row, with the names that the table was last seen by.
    pub kept: KeptRow,
    /// The catalog's name, as it is now or was last seen.
    pub catalog: String,
}

impl Tombstone {
    /// The namespace's and the table's name, or what can be said where nobody noted them.
    pub fn names(&self) -> (String, String) {
        let KeptRow { namespace, table, table_id, .. } = &self.kept;
        match (namespace, table) {
            (Some(namespace), Some(table)) => (namespace.clone(), table.clone()),
            _ => ("?".to_owned(), format!("table {table_id}")),
        }
    }

    /// When a pass first saw that the table is gone; `None` while none has.
    pub fn gone_since(&self) -> Option<DateTime<Utc>> {
        self.kept.gone_seen_at
    }
}

/// All of them, by catalog and name.
pub async fn tombstones(connection: &mut Session) -> sqlx::Result<Vec<Tombstone>> {
    let kept = all_rows(connection).await?;
    let mut live: BTreeSet<(i64, i64, Uuid)> = BTreeSet::new();
    let known = catalogs(connection).await?;
    for catalog in &known {
        let tables = live_tables(connection, catalog, true).await?;
        live.extend(
            tables
                .into_iter()
                .map(|LiveTable { identity: of, .. }| (of.catalog_id, of.table_id, of.table_uuid)),
        );
    }
    let is_gone =
        |kept: &KeptRow| !live.contains(&(kept.catalog_id, kept.table_id, kept.row.table_uuid));
    let named = |kept: KeptRow| {
        let catalog = known
            .iter()
            .find(|catalog| catalog.catalog_id == kept.catalog_id)
            .map(|catalog| catalog.name.clone())
            .or_else(|| kept.catalog.clone())
            .unwrap_or_else(|| format!("catalog {}", kept.catalog_id));
        Tombstone { kept, catalog }
    };
    let mut found: Vec<_> = kept.into_iter().filter(is_gone).map(named).collect();
    found.sort_by_cached_key(|one| (one.catalog.clone(), one.names(), one.kept.row.revision));
    Ok(found)
}

/// Those of tables that had this name, and, where there is a live table of the name now, of those whose
/// place it took.
pub async fn of_name(
    connection: &mut Session,
    catalog: &str,
    (namespace, table): (&str, &str),
    live: Option<&LiveTable>,
) -> sqlx::Result<Vec<Tombstone>> {
    let mut places = BTreeSet::new();
    if let Some(LiveTable { identity, .. }) = live {
        let left = left_policies(connection, &[identity.catalog_id]).await?;
        let here = left.into_iter().filter(|left| left.table_id == identity.table_id);
        places
            .extend(here.map(|left| (identity.catalog_id, left.old_table_id, left.old_table_uuid)));
    }
    let mut all = tombstones(connection).await?;
    all.retain(|Tombstone { kept, catalog: of }| {
        let has_name = of == catalog
            && kept.namespace.as_deref() == Some(namespace)
            && kept.table.as_deref() == Some(table);
        has_name || places.contains(&(kept.catalog_id, kept.table_id, kept.row.table_uuid))
    });
    Ok(all)
}

/// Notes that a live table's policy was taken away on purpose: that those of tables whose name or place it
/// has are gone is no news then. They are in force again all the same if their own tables are back.
pub async fn settle(connection: &mut Session, live: &LiveTable) -> sqlx::Result<()> {
    let TableIdentity { catalog, namespace, table, .. } = &live.identity;
    for Tombstone { kept, .. } in
        of_name(connection, catalog, (namespace, table), Some(live)).await?
    {
        settle_row(connection, (kept.catalog_id, kept.table_id), &kept.row).await?;
    }
    Ok(())
}

/// Removes some of them, and tells the log.
pub async fn forget(
    connection: &mut Session,
    tombstones: &[Tombstone],
    changer: Changer<'_>,
) -> sqlx::Result<()> {
    for tombstone in tombstones {
        let KeptRow { catalog_id, table_id, row, .. } = &tombstone.kept;
        let (namespace, table) = tombstone.names();
        let identity = TableIdentity {
            catalog_id: *catalog_id,
            catalog: tombstone.catalog.clone(),
            table_id: *table_id,
            table_uuid: row.table_uuid,
            namespace: namespace.clone(),
            table: table.clone(),
        };
        let mut transaction = connection.begin().await?;
        let is_removed = remove_row(&mut transaction, (*catalog_id, *table_id), row).await?;
        if is_removed {
            let terms = (Some(PolicyTerms::from(row)), None);
            history::note(&mut transaction, &identity, row.source(), terms, changer).await?;
        }
        transaction.commit().await?;
        if !is_removed {
            continue;
        }
        tracing::info!(
            event = events::POLICY_UNSET,
            catalog = tombstone.catalog,
            namespace,
            table,
            table_uuid = %row.table_uuid,
            by = changer.name,
            reason = changer.reason,
            "The policy of a table that is gone was taken away"
        );
    }
    Ok(())
}
