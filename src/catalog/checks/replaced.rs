//! Policies that were left behind by the replacement of their table.

use sqlx::PgConnection;

/// A policy of a table that is gone, whose place another one took that has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftPolicy {
    /// The table that had the policy.
    pub old_table_id: i64,
    /// The live table that took its place, if by several replacements.
    pub table_id: i64,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub table: String,
    /// The policy's field.
    pub field: String,
    /// How long it kept.
    pub keep: String,
}

/// Every such policy of a catalog. The property counts as a policy of the successor.
///
/// Reads the catalog's rows of tables, not of files. Servers before V14 lack `replaced_table_id` and
/// those before V11 `properties`: both are read as [`crate::catalog`] says, and without the first
/// nothing is found.
pub async fn left_policies(
    connection: &mut PgConnection,
    catalog_id: i64,
) -> sqlx::Result<Vec<LeftPolicy>> {
    sqlx::query_as!(
        LeftPolicy,
        r#"with recursive replaced as materialized (
             select t.replaced_table_id as old_id, t.table_id as new_id
             from (select null::bigint as replaced_table_id) as absent
             cross join lateral (
               select catalog_id, table_id, replaced_table_id from hog_table) as t
             where t.catalog_id = $1 and t.replaced_table_id is not null
           ),
           chain as (
             select p.table_id as old_table_id, p.source, r.new_id
             from tailrace.policy p
             join hog_table o on o.catalog_id = p.catalog_id and o.table_id = p.table_id
                             and o.table_uuid = p.table_uuid and o.dropped_snapshot is not null
             join replaced r on r.old_id = p.table_id
             where p.catalog_id = $1
             union
             select c.old_table_id, c.source, r.new_id
             from chain c join replaced r on r.old_id = c.new_id
           )
           select distinct on (c.old_table_id, c.new_id)
                  c.old_table_id as "old_table_id!", t.table_id as "table_id!",
                  n.name as "namespace!", v.name as "table!", p.field as "field!", p.keep as "keep!"
           from chain c
           cross join (select null::jsonb as properties) as absent
           join tailrace.policy p
             on p.catalog_id = $1 and p.table_id = c.old_table_id and p.source = c.source
           join hog_table t on t.catalog_id = $1 and t.table_id = c.new_id
                           and t.dropped_snapshot is null
           join lateral (
             select catalog_id, table_id, namespace_id, name, end_snapshot, properties
             from hog_table_version) as v
             on v.catalog_id = $1 and v.table_id = t.table_id and v.end_snapshot is null
           join hog_namespace n on n.catalog_id = $1 and n.namespace_id = v.namespace_id
                               and not n.dropped
           where not coalesce(v.properties ? 'partition_retention'::text, false)
             and not exists (select from tailrace.policy s
                             where s.catalog_id = $1 and s.table_id = t.table_id
                               and s.table_uuid = t.table_uuid)
           order by c.old_table_id, c.new_id, c.source desc"#,
        catalog_id
    )
    .fetch_all(connection)
    .await
}
