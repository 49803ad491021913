//! What `tailrace.in_drop_window` goes by: the setting, and the rules that are kept so that it is quick.

use std::collections::HashSet;
use std::time::Duration;

use uuid::Uuid;

use super::session::Session;

/// Notes what of the configuration the drop window in SQL is made of.
pub async fn note_window_setting(
    connection: &mut Session,
    lead: Duration,
    min_keep: Duration,
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"update tailrace.window_setting set lead_ms = $1, min_keep_seconds = $2
           where (lead_ms, min_keep_seconds) is distinct from ($1, $2)"#,
        i64::try_from(lead.as_millis()).unwrap_or(i64::MAX),
        i64::try_from(min_keep.as_secs()).unwrap_or(i64::MAX)
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// A table with a policy that enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enforced {
    pub catalog_id: i64,
    pub table_id: i64,
    pub table_uuid: Uuid,
    /// The column that the policy means.
    pub source_field_id: i64,
}

/// The catalogs in which [`keep_window_rules`] would change something, where these are all tables of
/// `tailrace.enforcing_policies`. (To ask that here for all tables would be to leave it to the planner whether
/// each is come to by its key or by the names of its namespace.)
///
/// No rule is worked out for it, which would take much longer. What they are made of changes with DDL, which
/// raises `schema_version`; with policies and the setting, which are compared; with trusted specs, which are
/// compared; or with facts that are stored with the copies of specs, and whoever stores one deletes the table's rules
/// ([`copy_specs`](super::specs::copy_specs()), [`settle`](super::restore::settle::settle())).
pub async fn with_old_rules(
    connection: &mut Session,
    enforced: &[Enforced],
) -> sqlx::Result<HashSet<i64>> {
    let catalogs: Vec<i64> = enforced.iter().map(|table| table.catalog_id).collect();
    let tables: Vec<i64> = enforced.iter().map(|table| table.table_id).collect();
    let uuids: Vec<Uuid> = enforced.iter().map(|table| table.table_uuid).collect();
    let fields: Vec<i64> = enforced.iter().map(|table| table.source_field_id).collect();
    // Of each table a few keys are looked up. Those of which there are rules and should be none are found by
    // sorting: without hash joins each rule would be compared with each table.
    let rows = sqlx::query_scalar!(
        r#"with enforced as materialized (
             select catalog_id, table_id, table_uuid, source_field_id
             from unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::bigint[])
                    as g (catalog_id, table_id, table_uuid, source_field_id)
           )
           select distinct catalog_id as "catalog_id!" from (
             select catalog_id from (
               select catalog_id, table_id, false as is_enforced from tailrace.window_rule
               union all
               select catalog_id, table_id, true from enforced) as tables
             group by catalog_id, table_id having not pg_catalog.bool_or(is_enforced)
             union all
             select e.catalog_id
             from enforced e
             cross join lateral (
               select schema_version from hog_catalog where catalog_id = e.catalog_id offset 0) as c
             cross join lateral (
               select spec_id, pg_catalog.bool_or(is_trusted) as is_trusted from (
                 select spec_id, false as is_trusted from hog_partition_spec
                 where catalog_id = e.catalog_id and table_id = e.table_id
                 union all
                 select spec_id, trusted_at is not null from tailrace.spec_copy
                 where catalog_id = e.catalog_id and table_id = e.table_id
                   and table_uuid = e.table_uuid) as seen
               group by spec_id) as spec
             where not exists (
               select from tailrace.window_rule r
               where r.catalog_id = e.catalog_id and r.table_id = e.table_id
                 and r.spec_id = spec.spec_id and r.table_uuid = e.table_uuid
                 and r.schema_version = c.schema_version
                 and r.source_field_id = e.source_field_id
                 and r.lead_ms = (select lead_ms from tailrace.window_setting)
                 and r.min_keep_seconds = (select min_keep_seconds from tailrace.window_setting)
                 and r.is_trusted = spec.is_trusted offset 0)) as old"#,
        &catalogs,
        &tables,
        &uuids,
        &fields
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().collect())
}

/// Brings the rules up to date by which `tailrace.in_drop_window` is quick. Of what changes them
/// without DDL (a spec is trusted, a copy is told its beginning) the function knows only from here.
pub async fn keep_window_rules(connection: &mut Session, catalog_id: i64) -> sqlx::Result<()> {
    sqlx::query!(r#"select tailrace.keep_window_rules($1) as "kept!: ()""#, catalog_id)
        .fetch_one(connection)
        .await?;
    Ok(())
}
