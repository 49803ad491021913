//! Which catalogs and tables need a closer look after the first look over all of them, for passes and for
//! renewals of claims.

use std::collections::{BTreeMap, HashMap};

use crate::catalog::restore::{Restored, restored_among};
use crate::catalog::session::Session;
use crate::catalog::triage::catalogs::CatalogLook;
use crate::catalog::triage::tables::{TableKey, TableLook};
use crate::catalog::triage::work::Watermark;

/// Which of these catalogs were restored, by catalog: those are compared at length of which it is unknown
/// in short. One statement, or none.
pub async fn restored_of(
    connection: &mut Session,
    looks: &[CatalogLook],
) -> sqlx::Result<BTreeMap<i64, Restored>> {
    let in_short = |look: &&CatalogLook| !look.agrees;
    let doubted: Vec<i64> =
        looks.iter().filter(in_short).map(|look| look.catalog.catalog_id).collect();
    match doubted.is_empty() {
        true => Ok(BTreeMap::new()),
        false => restored_among(connection, &doubted).await,
    }
}

/// The tables of catalogs that have commits beyond the tables' watermarks.
pub fn moved_on(tables: &[TableLook], looks: &HashMap<i64, &CatalogLook>) -> Vec<Watermark> {
    let watermark = |table: &TableLook| {
        let (catalog_id, table_id) = (table.identity.catalog_id, table.identity.table_id);
        let through_snapshot = table.state.as_ref()?.through_snapshot;
        let head = looks.get(&catalog_id)?.head;
        (head > through_snapshot).then_some(Watermark { catalog_id, table_id, through_snapshot })
    };
    tables.iter().filter_map(watermark).collect()
}

/// The tables of catalogs in which the definition of some table changed since it was noted of these.
pub fn redefined(tables: &[TableLook], looks: &HashMap<i64, &CatalogLook>) -> Vec<TableKey> {
    let key = |table: &TableLook| {
        let state = table.state.as_ref()?;
        let look = looks.get(&table.identity.catalog_id)?;
        (state.schema_version != Some(look.schema_version))
            .then_some((look.catalog.catalog_id, table.identity.table_uuid))
    };
    tables.iter().filter_map(key).collect()
}
