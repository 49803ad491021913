//! Policies that were left behind: their table is gone, and the live table in its place has no policy.

use uuid::Uuid;

use crate::catalog::session::Session;

/// A policy of a table that is gone, and a live table in its place that has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftPolicy {
    pub catalog_id: i64,
    pub catalog: String,
    /// The table that had the policy.
    pub old_table_id: i64,
    /// Its UUID.
    pub old_table_uuid: Uuid,
    /// The live table that took its place, if by several replacements, or has its name.
    pub table_id: i64,
    /// Whether the catalog says that it took the place; else it has the name and no more is known.
    pub is_replacement: bool,
    pub namespace: String,
    pub table: String,
    /// As the policy was written.
    pub field: String,
    /// As the policy was written.
    pub keep: String,
    /// So many of the newest time values stay whatever their age.
    pub keep_last: Option<i32>,
    /// What it did: `enforce`, `observe` or `paused`.
    pub mode: String,
}

/// Every such policy of these catalogs, by catalog and live table, the one that was set last first. A policy of any
/// mode is one, and the property counts as a policy of the successor.
///
/// Asks the catalog itself and no note of a pass: it is so from the moment in which the new table is
/// there, until it has a policy, or a person took one away under its name. What the old table was
/// called, the catalog says as long as it knows it, and then the policy.
///
/// Reads the catalog's rows of tables, not of files. Servers before V14 lack `replaced_table_id` and
/// those before V11 `properties`: both are read as [`crate::catalog`] says, and without the first a
/// successor is known by its name only.
pub async fn left_policies(
    connection: &mut Session,
    catalogs: &[i64],
) -> sqlx::Result<Vec<LeftPolicy>> {
    sqlx::query_as!(
        LeftPolicy,
        r#"with recursive replaced as materialized (
             select t.catalog_id, t.replaced_table_id as old_id, t.table_id as new_id
             from (select null::bigint as replaced_table_id) as absent
             cross join lateral (
               select catalog_id, table_id, replaced_table_id from hog_table) as t
             where t.catalog_id = any ($1::bigint[]) and t.replaced_table_id is not null
           ),
           gone as materialized (
             select distinct on (p.catalog_id, p.table_id, p.table_uuid)
                    p.catalog_id, c.name as catalog, p.table_id, p.table_uuid, p.field,
                    -- What was asked for, whether or not it still waits.
                    case when w.pending is null then p.keep
                      else w.pending ->> 'keep'::text end as keep,
                    case when w.pending is null then p.keep_last
                      else (w.pending ->> 'keep_last'::text)::integer end as keep_last,
                    case when w.pending is null then p.mode
                      else w.pending ->> 'mode'::text end as mode,
                    p.revision, o.table_id is not null as is_dropped,
                    coalesce(l.namespace, p.namespace_name) as namespace,
                    coalesce(l.name, p.table_name) as name
             from tailrace.policy p
             cross join lateral (
               select case when p.pending_revision = p.revision then p.pending end as pending) as w
             join hog_catalog c on c.catalog_id = p.catalog_id
             left join hog_table o on o.catalog_id = p.catalog_id and o.table_id = p.table_id
                                  and o.table_uuid = p.table_uuid
             left join lateral (
               select n.name as namespace, v.name, v.end_snapshot, n.dropped
               from hog_table_version v
               join hog_namespace n on n.catalog_id = v.catalog_id
                                   and n.namespace_id = v.namespace_id
               where v.catalog_id = o.catalog_id and v.table_id = o.table_id
               order by v.begin_snapshot desc limit 1) as l on true
             where p.catalog_id = any ($1::bigint[])
               and p.gone_told is distinct from 'settled'::text
               -- Of another catalog that had the id, it says nothing of this one.
               and coalesce(p.catalog_name, c.name) = c.name
               and not coalesce(o.dropped_snapshot is null and l.end_snapshot is null
                                and not l.dropped, false)
             order by p.catalog_id, p.table_id, p.table_uuid, p.source desc
           ),
           chain as (
             select g.catalog_id, g.table_id as old_id, g.table_uuid as old_uuid, r.new_id
             from gone g join replaced r on r.catalog_id = g.catalog_id and r.old_id = g.table_id
             where g.is_dropped
             union
             select c.catalog_id, c.old_id, c.old_uuid, r.new_id
             from chain c join replaced r on r.catalog_id = c.catalog_id and r.old_id = c.new_id
           ),
           successor as (
             select k.catalog_id, k.old_id, k.old_uuid, k.new_id,
                    pg_catalog.bool_or(k.by_lineage) as by_lineage
             from (
               select c.catalog_id, c.old_id, c.old_uuid, c.new_id, true as by_lineage from chain c
               union all
               select g.catalog_id, g.table_id, g.table_uuid, v.table_id, false
               from gone g
               join hog_namespace n on n.catalog_id = g.catalog_id and n.name = g.namespace
                                   and not n.dropped
               join hog_table_version v on v.catalog_id = g.catalog_id
                                       and v.namespace_id = n.namespace_id
                                       and v.name = g.name and v.end_snapshot is null) as k
             group by k.catalog_id, k.old_id, k.old_uuid, k.new_id
           )
           select g.catalog_id as "catalog_id!", g.catalog as "catalog!",
                  s.old_id as "old_table_id!", s.old_uuid as "old_table_uuid!",
                  t.table_id as "table_id!", s.by_lineage as "is_replacement!",
                  n.name as "namespace!", v.name as "table!", g.field as "field!",
                  g.keep as "keep!", g.keep_last, g.mode as "mode!"
           from successor s
           cross join (select null::jsonb as properties) as absent
           join gone g on g.catalog_id = s.catalog_id and g.table_id = s.old_id
                      and g.table_uuid = s.old_uuid
           join hog_table t on t.catalog_id = s.catalog_id and t.table_id = s.new_id
                           and t.dropped_snapshot is null
           join lateral (
             select catalog_id, table_id, namespace_id, name, end_snapshot, properties
             from hog_table_version) as v
             on v.catalog_id = t.catalog_id and v.table_id = t.table_id and v.end_snapshot is null
           join hog_namespace n on n.catalog_id = v.catalog_id and n.namespace_id = v.namespace_id
                               and not n.dropped
           where not coalesce(v.properties ? 'partition_retention'::text, false)
             and t.table_uuid <> g.table_uuid
             and not exists (select from tailrace.policy s
                             where s.catalog_id = t.catalog_id and s.table_id = t.table_id
                               and s.table_uuid = t.table_uuid)
           order by g.catalog, t.table_id, g.revision desc"#,
        catalogs
    )
    .fetch_all(connection)
    .await
}

/// Of each live table the policy that was set last; of policies in their order.
pub fn newest(mut left: Vec<LeftPolicy>) -> Vec<LeftPolicy> {
    left.dedup_by_key(|policy| (policy.catalog_id, policy.table_id));
    left
}
