//! Since when a table's property `partition_retention` is its policy.

use chrono::{DateTime, Utc};

use crate::catalog::session::Session;
use crate::catalog::tables::TableIdentity;

/// Since when the property has its present text, and since when no stored policy has won over it; each
/// `None` where no pass noted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PropertySince {
    /// When the first of the table's versions that have the text without a break was made. Of one whose
    /// snapshot expiry has deleted no more is known than that it is as old as the floor, or as the mirror
    /// of the text: whichever is older.
    pub written: Option<DateTime<Utc>>,
    /// When the last stored policy was taken away, as far as the property had been mirrored by then.
    pub took_over: Option<DateTime<Utc>>,
}

/// Reads both. Costs one look for each version of the table that the catalog still has.
///
/// Servers before V11 lack `properties`: it is read as [`crate::catalog`] says.
pub async fn property_since(
    connection: &mut Session,
    table: &TableIdentity,
) -> sqlx::Result<PropertySince> {
    let row = sqlx::query_as!(
        PropertySince,
        r#"with versions as materialized (
             select v.begin_snapshot, v.end_snapshot,
                    v.properties -> 'partition_retention'::text as property
             from (select null::jsonb as properties) as absent
             cross join lateral (
               select catalog_id, table_id, begin_snapshot, end_snapshot, properties
               from hog_table_version) as v
             where v.catalog_id = $1 and v.table_id = $2
           ),
           present as (select property from versions where end_snapshot is null),
           first as (
             select pg_catalog.min(v.begin_snapshot) as begin_snapshot
             from versions v
             where v.begin_snapshot > coalesce((
               select pg_catalog.max(o.begin_snapshot) from versions o
               cross join present p where o.property is distinct from p.property), (-1)::bigint)
           ),
           mirror as (
             select property_text, updated_at, took_over_at from tailrace.policy
             where catalog_id = $1 and table_id = $2 and table_uuid = $3 and source = 'property'
           )
           select case
                    when s.snapshot_time is not null then s.snapshot_time
                    when f.begin_snapshot <= c.earliest_snapshot_id then least(
                      case when c.earliest_snapshot_time between '0001-01-01' and '9999-12-31'
                        then c.earliest_snapshot_time end,
                      (select m.updated_at from mirror m cross join present p
                       where pg_catalog.to_jsonb(m.property_text) = p.property))
                  end as written,
                  (select took_over_at from mirror) as took_over
           from hog_catalog c
           cross join first f
           left join lateral (
             select snapshot_time from hog_snapshot
             where catalog_id = $1 and snapshot_id = f.begin_snapshot
               and snapshot_time between '0001-01-01' and '9999-12-31') as s on true
           where c.catalog_id = $1"#,
        table.catalog_id,
        table.table_id,
        table.table_uuid
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.unwrap_or(PropertySince { written: None, took_over: None }))
}
