//! What of a table's definition a pass goes by, in short: so that a catalog whose `schema_version` moved has
//! work in those tables only whose definition did.

use std::collections::HashMap;

use uuid::Uuid;

use super::tables::TableKey;
use super::work::arrays;
use crate::catalog::session::Session;

/// The shapes of these live tables: names, and of the live version, the live spec and the live columns how
/// many there are and in which snapshot the newest began.
///
/// Two shapes of one table (by UUID) are the same only if nothing of that changed in between: whatever changes
/// begins a row in a later snapshot than all that there were, or takes one away. After a restore, which
/// gives snapshots out again, every table has work whatever its shape.
pub async fn shapes(
    connection: &mut Session,
    tables: &[TableKey],
) -> sqlx::Result<HashMap<TableKey, String>> {
    if tables.is_empty() {
        return Ok(HashMap::new());
    }
    let (catalogs, uuids) = arrays(tables);
    let rows = sqlx::query!(
        r#"select t.catalog_id, t.table_uuid,
                  pg_catalog.jsonb_build_array(n.name, v.name, v.begin_snapshot, spec.live,
                    spec.newest, spec.id, field.live, field.newest)::text as "shape!"
           from unnest($1::bigint[], $2::uuid[]) as g (catalog_id, table_uuid)
           join hog_table t on t.catalog_id = g.catalog_id and t.table_uuid = g.table_uuid
                           and t.dropped_snapshot is null
           cross join lateral (
             select namespace_id, name, begin_snapshot from hog_table_version
             where catalog_id = t.catalog_id and table_id = t.table_id and end_snapshot is null
             order by begin_snapshot desc limit 1) as v
           join hog_namespace n on n.catalog_id = t.catalog_id and n.namespace_id = v.namespace_id
           cross join lateral (
             select pg_catalog.count(*) as live, pg_catalog.max(begin_snapshot) as newest,
                    pg_catalog.max(spec_id) as id
             from hog_partition_spec
             where catalog_id = t.catalog_id and table_id = t.table_id and end_snapshot is null) as spec
           cross join lateral (
             select pg_catalog.count(*) as live, pg_catalog.max(begin_snapshot) as newest
             from hog_column
             where catalog_id = t.catalog_id and table_id = t.table_id and end_snapshot is null)
             as field"#,
        &catalogs,
        &uuids
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| ((row.catalog_id, row.table_uuid), row.shape)).collect())
}

/// A table whose definition was found as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unchanged {
    pub catalog_id: i64,
    pub table_uuid: Uuid,
    /// The catalog's `schema_version` as it was read before the shape was.
    pub schema_version: i64,
    pub shape: String,
}

/// Notes that tables have the same shape as before although `schema_version` moved. Only where the shape is
/// still the one that is noted: a session with the lease may have noted another one meanwhile.
pub async fn note_unchanged(connection: &mut Session, tables: &[Unchanged]) -> sqlx::Result<()> {
    if tables.is_empty() {
        return Ok(());
    }
    let catalogs: Vec<i64> = tables.iter().map(|table| table.catalog_id).collect();
    let uuids: Vec<Uuid> = tables.iter().map(|table| table.table_uuid).collect();
    let versions: Vec<i64> = tables.iter().map(|table| table.schema_version).collect();
    let shapes: Vec<String> = tables.iter().map(|table| table.shape.clone()).collect();
    sqlx::query!(
        r#"update tailrace.table_state s set schema_version = g.schema_version
           from unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::text[])
                  as g (catalog_id, table_uuid, schema_version, shape)
           where s.catalog_id = g.catalog_id and s.table_uuid = g.table_uuid and s.shape = g.shape
             and s.schema_version <> g.schema_version"#,
        &catalogs,
        &uuids,
        &versions,
        &shapes
    )
    .execute(connection)
    .await?;
    Ok(())
}
