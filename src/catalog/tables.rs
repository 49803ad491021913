//! The catalogs and tables that exist, and whether a table is one that tailrace may change.

use anyhow::Context;
use serde_json::Value;
use uuid::Uuid;

use super::session::Session;

/// A catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalog {
    /// `hog_catalog.catalog_id`.
    pub catalog_id: i64,
    /// Unique in the database.
    pub name: String,
}

/// Which table is meant: the id finds the rows, the uuid proves that it is the same table, the names
/// are those that it had when it was looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableIdentity {
    pub catalog_id: i64,
    pub catalog: String,
    /// Unique within its catalog; given out again after a restore.
    pub table_id: i64,
    pub table_uuid: Uuid,
    pub namespace: String,
    pub table: String,
}

/// A live table as the catalog shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveTable {
    pub identity: TableIdentity,
    /// The property `partition_retention` as it stands, if it is set.
    pub property: Option<Value>,
    /// False for the packed tables that some servers know (`hog_table.file_format`): they have
    /// no partition specs and must be left alone.
    pub is_parquet: bool,
}

/// Every catalog of the database, by name.
pub async fn catalogs(connection: &mut Session) -> sqlx::Result<Vec<Catalog>> {
    sqlx::query_as!(Catalog, "select catalog_id, name from hog_catalog order by name")
        .fetch_all(connection)
        .await
}

/// The live tables of a catalog that have a policy row of ours or the property, or all of
/// them; by namespace and name.
///
/// Servers before V11 lack `properties`, and most servers lack `file_format`: both are read as
/// [`super`] says.
pub async fn live_tables(
    connection: &mut Session,
    catalog: &Catalog,
    governed_only: bool,
) -> sqlx::Result<Vec<LiveTable>> {
    live_tables_among(connection, catalog, governed_only, None).await
}

/// The same of these tables only, by their ids, where some are given.
pub async fn live_tables_among(
    connection: &mut Session,
    catalog: &Catalog,
    governed_only: bool,
    table_ids: Option<&[i64]>,
) -> sqlx::Result<Vec<LiveTable>> {
    let rows = sqlx::query!(
        r#"select t.table_id, t.table_uuid, n.name as namespace, v.name as "table",
                  v.properties -> 'partition_retention'::text as property,
                  coalesce(t.file_format, 'parquet') = 'parquet' as "is_parquet!"
           from (select null::text as file_format, null::jsonb as properties) as absent
           cross join lateral (
             select catalog_id, table_id, namespace_id, name, end_snapshot, properties
             from hog_table_version) as v
           cross join lateral (
             select catalog_id, table_id, table_uuid, dropped_snapshot, file_format
             from hog_table
             where catalog_id = v.catalog_id and table_id = v.table_id offset 0) as t
           cross join lateral (
             select name, dropped from hog_namespace
             where catalog_id = v.catalog_id and namespace_id = v.namespace_id offset 0) as n
           where v.catalog_id = $1 and v.end_snapshot is null
             and t.dropped_snapshot is null and not n.dropped
             and ($3::bigint[] is null or v.table_id = any ($3))
             and (not $2 or v.properties ? 'partition_retention'::text
                  or exists (select from tailrace.policy p
                             where p.catalog_id = t.catalog_id and p.table_id = t.table_id
                               and p.table_uuid = t.table_uuid))
           order by n.name, v.name"#,
        catalog.catalog_id,
        governed_only,
        table_ids as Option<&[i64]>
    )
    .fetch_all(connection)
    .await?;
    let table = |row: (i64, Uuid, String, String)| TableIdentity {
        catalog_id: catalog.catalog_id,
        catalog: catalog.name.clone(),
        table_id: row.0,
        table_uuid: row.1,
        namespace: row.2,
        table: row.3,
    };
    Ok(rows
        .into_iter()
        .map(|row| LiveTable {
            identity: table((row.table_id, row.table_uuid, row.namespace, row.table)),
            property: row.property.filter(|value| !value.is_null()),
            is_parquet: row.is_parquet,
        })
        .collect())
}

/// A live table of a catalog by its names, through the indexes of live names.
pub async fn find_live_table(
    connection: &mut Session,
    catalog_id: i64,
    catalog: &str,
    namespace: &str,
    table: &str,
) -> sqlx::Result<Option<LiveTable>> {
    let row = sqlx::query!(
        r#"select t.table_id, t.table_uuid,
                  v.properties -> 'partition_retention'::text as property,
                  coalesce(t.file_format, 'parquet') = 'parquet' as "is_parquet!"
           from hog_namespace n
           cross join (select null::text as file_format, null::jsonb as properties) as absent
           join lateral (
             select catalog_id, table_id, namespace_id, name, end_snapshot, properties
             from hog_table_version) as v
             on v.catalog_id = n.catalog_id and v.namespace_id = n.namespace_id
            and v.name = $3 and v.end_snapshot is null
           join lateral (
             select catalog_id, table_id, table_uuid, dropped_snapshot, file_format
             from hog_table) as t
             on t.catalog_id = v.catalog_id and t.table_id = v.table_id
           where n.catalog_id = $1 and n.name = $2 and not n.dropped
             and t.dropped_snapshot is null"#,
        catalog_id,
        namespace,
        table
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| LiveTable {
        identity: TableIdentity {
            catalog_id,
            catalog: catalog.to_owned(),
            table_id: row.table_id,
            table_uuid: row.table_uuid,
            namespace: namespace.to_owned(),
            table: table.to_owned(),
        },
        property: row.property.filter(|value| !value.is_null()),
        is_parquet: row.is_parquet,
    }))
}

/// A live table by its names.
///
/// # Errors
/// There is none; the text says what of it there is not.
pub async fn find_table(
    connection: &mut Session,
    catalog: &str,
    namespace: &str,
    table: &str,
) -> anyhow::Result<LiveTable> {
    let found = catalogs(connection)
        .await?
        .into_iter()
        .find(|found| found.name == catalog)
        .with_context(|| format!("there is no catalog {catalog:?}"))?;
    find_live_table(connection, found.catalog_id, catalog, namespace, table)
        .await?
        .with_context(|| format!("there is no table {namespace}.{table} in catalog {catalog:?}"))
}

/// The id counter of the catalog's files: every file committed after this read has an id at
/// or above it, for ids are allocated under the commit lock (contract, "Compaction").
pub async fn file_id_counter(
    connection: &mut Session,
    catalog_id: i64,
) -> sqlx::Result<Option<i64>> {
    sqlx::query_scalar!("select next_file_id from hog_catalog where catalog_id = $1", catalog_id)
        .fetch_optional(connection)
        .await
}

/// Where a catalog's files end at a moment: what is committed later lies beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FileWatermark {
    /// The id counter: files committed later have ids from it on.
    pub files_below: i64,
    /// The newest snapshot: files committed later began after it.
    pub through_snapshot: i64,
}

/// Reads both at one moment, from the one row that every commit writes; `None` if the catalog is
/// gone.
pub async fn current_watermark(
    connection: &mut Session,
    catalog_id: i64,
) -> sqlx::Result<Option<FileWatermark>> {
    sqlx::query_as!(
        FileWatermark,
        r#"select next_file_id as files_below, last_snapshot_id as through_snapshot
           from hog_catalog where catalog_id = $1"#,
        catalog_id
    )
    .fetch_optional(connection)
    .await
}
