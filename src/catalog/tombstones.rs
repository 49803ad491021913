//! What we remember of tables that are gone.
//!
//! A catalog that is being restored is empty for a moment, so that a table is not there is no reason to
//! forget it. A row that names a table which is not there becomes a tombstone: `gone_seen_at` says
//! when a pass first saw it so, and the row is deleted when that is `history.keep` ago. It decides nothing
//! else: what is in force is asked of the catalog itself each time, so a policy is in force again in the
//! moment in which its table is back, and the next pass takes the tombstone away. Each statement looks at
//! the catalog by itself and asks again before it deletes.

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::session::Session;

/// A policy row whose table is gone, or was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPolicy {
    pub catalog_id: i64,
    /// The table's key; another table may have it by now.
    pub table_id: i64,
    pub table_uuid: Uuid,
    /// The catalog's name when the table was last seen. The names are missing only where no pass of this
    /// version has seen the table.
    pub catalog: Option<String>,
    /// The namespace's name then.
    pub namespace: Option<String>,
    /// The table's name then.
    pub table: Option<String>,
    /// `stored` or `property`.
    pub source: String,
    /// As written.
    pub field: String,
    /// How long a partition stayed, as written.
    pub keep: String,
}

/// A table that is gone: its catalog, its id, and its UUID.
pub type GoneTable = (i64, i64, Uuid);

fn arrays(tables: &[GoneTable]) -> (Vec<i64>, Vec<i64>, Vec<Uuid>) {
    tables.iter().copied().collect()
}

/// Notes which policies have their tables and which do not, in all catalogs but these; returns those whose
/// tables are back. Of a moment in which the catalog is empty nothing is kept but the time.
///
/// As in [`purge_policies`], rows are looked up by their keys, one after another, and what else there is to ask is
/// asked outside: without statistics the planner would rather read, for each policy, all live versions of its
/// namespace.
pub async fn note_policies(
    connection: &mut Session,
    now: DateTime<Utc>,
    but: &[i64],
) -> sqlx::Result<Vec<NamedPolicy>> {
    let back = sqlx::query_as!(
        NamedPolicy,
        r#"update tailrace.policy p set gone_seen_at = null, gone_told = null
           where p.gone_seen_at is not null and p.catalog_id <> all ($1::bigint[])
             and exists (
               select from (
                 select dropped_snapshot from hog_table
                 where catalog_id = p.catalog_id and table_id = p.table_id
                   and table_uuid = p.table_uuid offset 0) as t
               cross join lateral (
                 select namespace_id, end_snapshot from hog_table_version
                 where catalog_id = p.catalog_id and table_id = p.table_id offset 0) as v
               cross join lateral (
                 select dropped from hog_namespace
                 where catalog_id = p.catalog_id and namespace_id = v.namespace_id offset 0) as n
               where t.dropped_snapshot is null and v.end_snapshot is null and not n.dropped)
           returning coalesce(p.catalog_id) as "catalog_id!", p.table_id, p.table_uuid,
                     p.catalog_name as catalog, p.namespace_name as namespace,
                     p.table_name as "table", p.source, p.field, p.keep"#,
        but
    )
    .fetch_all(&mut *connection)
    .await?;
    sqlx::query!(
        r#"update tailrace.policy p set gone_seen_at = $1
           where p.gone_seen_at is null and p.catalog_id <> all ($2::bigint[])
             and not exists (
               select from (
                 select dropped_snapshot from hog_table
                 where catalog_id = p.catalog_id and table_id = p.table_id
                   and table_uuid = p.table_uuid offset 0) as t
               cross join lateral (
                 select namespace_id, end_snapshot from hog_table_version
                 where catalog_id = p.catalog_id and table_id = p.table_id offset 0) as v
               cross join lateral (
                 select dropped from hog_namespace
                 where catalog_id = p.catalog_id and namespace_id = v.namespace_id offset 0) as n
               where t.dropped_snapshot is null and v.end_snapshot is null and not n.dropped)"#,
        now,
        but
    )
    .execute(&mut *connection)
    .await?;
    note_names(connection, but).await?;
    Ok(back)
}

/// Notes the names of tables beside their policies: the last ones that the catalog knows, also of tables
/// that were dropped. They say what a policy was for when the catalog no longer does.
async fn note_names(connection: &mut Session, but: &[i64]) -> sqlx::Result<()> {
    sqlx::query!(
        r#"update tailrace.policy p
           set catalog_name = k.catalog, namespace_name = k.namespace, table_name = k.name
           from (
             select o.catalog_id, o.table_id, o.table_uuid, o.source, c.name as catalog,
                    n.name as namespace, v.name
             from tailrace.policy o
             -- Each by its key: of joins the planner would believe that they leave next to nothing.
             cross join lateral (
               select name from hog_catalog where catalog_id = o.catalog_id offset 0) as c
             cross join lateral (
               select table_id from hog_table
               where catalog_id = o.catalog_id and table_id = o.table_id
                 and table_uuid = o.table_uuid offset 0) as t
             cross join lateral (
               select namespace_id, name from hog_table_version
               where catalog_id = o.catalog_id and table_id = t.table_id
               order by begin_snapshot desc limit 1) as v
             cross join lateral (
               select name from hog_namespace
               where catalog_id = o.catalog_id and namespace_id = v.namespace_id offset 0) as n) as k
           where k.catalog_id = p.catalog_id and k.table_id = p.table_id
             and k.table_uuid = p.table_uuid and k.source = p.source
             and p.catalog_id <> all ($1::bigint[])
             and (p.catalog_name is distinct from k.catalog
                  or p.namespace_name is distinct from k.namespace
                  or p.table_name is distinct from k.name)"#,
        but
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The catalogs with policies of tables that are gone.
pub async fn with_gone_policies(connection: &mut Session, but: &[i64]) -> sqlx::Result<Vec<i64>> {
    sqlx::query_scalar!(
        r#"select distinct coalesce(catalog_id) as "catalog_id!" from tailrace.policy
           where gone_seen_at is not null and catalog_id <> all ($1::bigint[])
           order by 1"#,
        but
    )
    .fetch_all(connection)
    .await
}

/// Notes that it was logged that another table has the name or the place of each of these, and no policy.
/// Returns those for which it had not been logged.
pub async fn note_orphaned(
    connection: &mut Session,
    gone: &[GoneTable],
) -> sqlx::Result<HashSet<GoneTable>> {
    if gone.is_empty() {
        return Ok(HashSet::new());
    }
    let (catalogs, tables, uuids) = arrays(gone);
    let noted = sqlx::query!(
        r#"update tailrace.policy p set gone_told = 'orphaned'
           from (select distinct catalog_id, table_id, table_uuid
                 from unnest($1::bigint[], $2::bigint[], $3::uuid[])
                        as g (catalog_id, table_id, table_uuid)) as k
           where p.catalog_id = k.catalog_id and p.table_id = k.table_id
             and p.table_uuid = k.table_uuid
             and p.gone_seen_at is not null and p.gone_told is distinct from 'orphaned'::text
           returning coalesce(p.catalog_id) as "catalog_id!", p.table_id, p.table_uuid"#,
        &catalogs,
        &tables,
        &uuids
    )
    .fetch_all(connection)
    .await?;
    Ok(noted.into_iter().map(|row| (row.catalog_id, row.table_id, row.table_uuid)).collect())
}

/// Notes of all other policies that it is logged that their tables are gone; returns those of which it was
/// not before.
pub async fn note_told(connection: &mut Session, but: &[i64]) -> sqlx::Result<Vec<NamedPolicy>> {
    sqlx::query_as!(
        NamedPolicy,
        r#"update tailrace.policy p set gone_told = 'gone'
           where p.gone_seen_at is not null and p.gone_told is null
             and p.catalog_id <> all ($1::bigint[])
           returning coalesce(p.catalog_id) as "catalog_id!", p.table_id, p.table_uuid,
                     p.catalog_name as catalog, p.namespace_name as namespace,
                     p.table_name as "table", p.source, p.field, p.keep"#,
        but
    )
    .fetch_all(connection)
    .await
}

/// Deletes the policies of tables that are gone for longer than `keep`, in all catalogs but these, and
/// returns them. Those of `needed` stay: a live table has their name and no policy, and that is told by
/// them.
///
/// After a refused clock the age counts from when it was accepted again.
pub async fn purge_policies(
    connection: &mut Session,
    now: DateTime<Utc>,
    keep: Duration,
    but: &[i64],
    needed: &[GoneTable],
) -> sqlx::Result<Vec<NamedPolicy>> {
    let (catalogs, tables, uuids) = arrays(needed);
    sqlx::query_as!(
        NamedPolicy,
        r#"delete from tailrace.policy p
           where p.gone_seen_at < $1::timestamptz - pg_catalog.make_interval(secs => $2)
             and p.catalog_id <> all ($3::bigint[])
             and not exists (
               select from (
                 select dropped_snapshot from hog_table
                 where catalog_id = p.catalog_id and table_id = p.table_id
                   and table_uuid = p.table_uuid offset 0) as t
               cross join lateral (
                 select namespace_id, end_snapshot from hog_table_version
                 where catalog_id = p.catalog_id and table_id = p.table_id offset 0) as v
               cross join lateral (
                 select dropped from hog_namespace
                 where catalog_id = p.catalog_id and namespace_id = v.namespace_id offset 0) as n
               where t.dropped_snapshot is null and v.end_snapshot is null and not n.dropped)
             and not exists (
               select from unnest($4::bigint[], $5::bigint[], $6::uuid[])
                        as k (catalog_id, table_id, table_uuid)
               where k.catalog_id = p.catalog_id and k.table_id = p.table_id
                 and k.table_uuid = p.table_uuid)
             and not exists (
               select from tailrace.clock_memory m
               where m.catalog_id = p.catalog_id and m.epoch > 0::bigint
                 and m.epoch_began >= $1::timestamptz - pg_catalog.make_interval(secs => $2))
           returning coalesce(p.catalog_id) as "catalog_id!", p.table_id, p.table_uuid,
                     p.catalog_name as catalog, p.namespace_name as namespace,
                     p.table_name as "table", p.source, p.field, p.keep"#,
        now,
        keep.as_secs_f64(),
        but,
        &catalogs,
        &tables,
        &uuids
    )
    .fetch_all(connection)
    .await
}

/// The same of the copies of specs and of the types of their columns: notes which have their tables, and
/// deletes those whose tables are gone for longer than `keep`.
pub async fn look_after_copies(
    connection: &mut Session,
    now: DateTime<Utc>,
    keep: Duration,
    but: &[i64],
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"update tailrace.spec_copy x
           set gone_seen_at = case when x.gone_seen_at is null then $1::timestamptz end
           where x.catalog_id <> all ($2::bigint[])
             and (x.gone_seen_at is null) <> exists (
               select from hog_table t
               where t.catalog_id = x.catalog_id and t.table_id = x.table_id
                 and t.table_uuid = x.table_uuid and t.dropped_snapshot is null)"#,
        now,
        but
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        r#"update tailrace.source_column_type x
           set gone_seen_at = case when x.gone_seen_at is null then $1::timestamptz end
           where x.catalog_id <> all ($2::bigint[])
             and (x.gone_seen_at is null) <> exists (
               select from hog_table t
               where t.catalog_id = x.catalog_id and t.table_id = x.table_id
                 and t.table_uuid = x.table_uuid and t.dropped_snapshot is null)"#,
        now,
        but
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        r#"delete from tailrace.spec_copy x
           where x.gone_seen_at < $1::timestamptz - pg_catalog.make_interval(secs => $2)
             and x.catalog_id <> all ($3::bigint[])
             and not exists (
               select from tailrace.clock_memory m
               where m.catalog_id = x.catalog_id and m.epoch > 0::bigint
                 and m.epoch_began >= $1::timestamptz - pg_catalog.make_interval(secs => $2))
             and not exists (
               select from hog_table t
               where t.catalog_id = x.catalog_id and t.table_id = x.table_id
                 and t.table_uuid = x.table_uuid and t.dropped_snapshot is null)"#,
        now,
        keep.as_secs_f64(),
        but
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        r#"delete from tailrace.source_column_type x
           where x.gone_seen_at < $1::timestamptz - pg_catalog.make_interval(secs => $2)
             and x.catalog_id <> all ($3::bigint[])
             and not exists (
               select from tailrace.clock_memory m
               where m.catalog_id = x.catalog_id and m.epoch > 0::bigint
                 and m.epoch_began >= $1::timestamptz - pg_catalog.make_interval(secs => $2))
             and not exists (
               select from hog_table t
               where t.catalog_id = x.catalog_id and t.table_id = x.table_id
                 and t.table_uuid = x.table_uuid and t.dropped_snapshot is null)"#,
        now,
        keep.as_secs_f64(),
        but
    )
    .execute(connection)
    .await?;
    Ok(())
}
