//! What is looked at first under the commit lock.

use serde_json::Value;
use sqlx::{Execute, Executor};
use uuid::Uuid;

use super::restore::Head;
use super::session::Session;

/// The catalog, the table and its policies as they are under the commit lock.
#[derive(Debug, Clone, PartialEq)]
pub struct UnderLock {
    /// The newest snapshot.
    pub head: i64,
    /// The table's incarnation; `None` where its row is gone.
    pub table_uuid: Option<Uuid>,
    /// The table's names; `None` where it is not live (dropped, or its namespace is).
    pub live_as: Option<(String, String)>,
    /// False for a packed table.
    pub is_parquet: bool,
    /// The property `partition_retention`.
    pub property: Option<Value>,
    /// The revisions of our policy rows, by source.
    pub stored_revision: Option<i64>,
    /// The revision of the property's mirror, `None` where there is none or it is not followed.
    pub property_revision: Option<i64>,
    /// The newest head that a pass noted, or that of the plan, is not in the catalog as it was, or the
    /// catalog's own head is not there: the catalog was restored
    /// since, and ids of files that were found before may be those of other files.
    pub is_restored: bool,
}

/// The bounds of a hold, enforced by the server from here on: no row lock is waited for longer
/// than `row_lock_ms`, no statement runs longer than `hold_ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldBounds {
    /// `drop.row_lock_timeout`.
    pub row_lock_ms: i64,
    /// `drop.max_hold`.
    pub hold_ms: i64,
}

/// Reads all of it in one round trip, sets the bounds for the statements that follow, and locks
/// the policy rows `FOR SHARE NOWAIT`: a writer of policies waits until our transaction ends,
/// and one that is writing at this moment fails us with SQLSTATE 55P03. Of an id that was given twice
/// the rows of both incarnations are locked, and only those of the one that is there count.
///
/// `None` if the catalog is gone. The commit lock must be held. `head` is that of the plan.
///
/// Columns that the server may lack are read as [`super`] says.
pub async fn read_under_lock(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    head: Option<Head>,
    bounds: HoldBounds,
) -> sqlx::Result<Option<UnderLock>> {
    run_or_prepare(connection, catalog_id, table_id, head, bounds, false).await
}

/// Has the server parse the statement of [`read_under_lock`], as [`super::tail::prepare_write`]
/// does. No row is locked.
pub async fn prepare_read(connection: &mut Session) -> sqlx::Result<()> {
    let bounds = HoldBounds { row_lock_ms: 0, hold_ms: 0 };
    run_or_prepare(connection, 0, 0, None, bounds, true).await.map(|_| ())
}

async fn run_or_prepare(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    head: Option<Head>,
    bounds: HoldBounds,
    only_prepare: bool,
) -> sqlx::Result<Option<UnderLock>> {
    let statement = sqlx::query!(
        r#"with policies as materialized (
             select source, table_uuid, revision, problem from tailrace.policy
             where catalog_id = $1 and table_id = $2
             order by source
             for share nowait
           )
           select coalesce(c.last_snapshot_id) as "head!",
                  coalesce(t.table_uuid) as table_uuid,
                  coalesce(n.name) as namespace, coalesce(v.name) as "table",
                  coalesce(t.file_format, 'parquet') = 'parquet' as "is_parquet!",
                  v.properties -> 'partition_retention'::text as property,
                  (select p.revision from policies p
                   where p.source = 'stored' and p.table_uuid = t.table_uuid) as stored_revision,
                  (select p.revision from policies p
                   where p.source = 'property' and p.problem is null
                     and p.table_uuid = t.table_uuid) as property_revision,
                  exists (
                    select from (select snapshot_id, snapshot_time from tailrace.noted_head
                                 where catalog_id = $1
                                 order by snapshot_id desc limit 1) as newest
                    where newest.snapshot_id >= c.earliest_snapshot_id
                      and not exists (select from hog_snapshot s
                                      where s.catalog_id = $1
                                        and s.snapshot_id = newest.snapshot_id
                                        and s.snapshot_time = newest.snapshot_time offset 0))
                  or coalesce($5 >= c.earliest_snapshot_id and not exists (
                    select from hog_snapshot s
                    where s.catalog_id = $1 and s.snapshot_id = $5 and s.snapshot_time = $6
                    offset 0), false)
                  or c.last_snapshot_id > 0::bigint and not exists (
                    select from hog_snapshot s
                    where s.catalog_id = $1 and s.snapshot_id = c.last_snapshot_id offset 0)
                    as "is_restored!",
                  pg_catalog.set_config('lock_timeout', $3::bigint::text, true) as "lock_timeout",
                  pg_catalog.set_config('statement_timeout', $4::bigint::text, true)
                    as "statement_timeout"
           from hog_catalog c
           cross join (select null::text as file_format, null::jsonb as properties) as absent
           left join lateral (
             select catalog_id, table_id, table_uuid, dropped_snapshot, file_format
             from hog_table) as t
             on t.catalog_id = c.catalog_id and t.table_id = $2
           left join lateral (
             select catalog_id, table_id, namespace_id, name, end_snapshot, properties
             from hog_table_version) as v
             on v.catalog_id = t.catalog_id and v.table_id = t.table_id
            and v.end_snapshot is null and t.dropped_snapshot is null
           left join hog_namespace n
             on n.catalog_id = v.catalog_id and n.namespace_id = v.namespace_id
            and not n.dropped
           where c.catalog_id = $1"#,
        catalog_id,
        table_id,
        bounds.row_lock_ms,
        bounds.hold_ms,
        head.map(|head| head.snapshot_id),
        head.map(|head| head.snapshot_time)
    );
    if only_prepare {
        connection.prepare(statement.sql()).await?;
        return Ok(None);
    }
    let row = statement.fetch_optional(connection).await?;
    Ok(row.map(|row| UnderLock {
        head: row.head,
        table_uuid: row.table_uuid,
        live_as: row.namespace.zip(row.table),
        is_parquet: row.is_parquet,
        property: row.property.filter(|value| !value.is_null()),
        stored_revision: row.stored_revision,
        property_revision: row.property_revision,
        is_restored: row.is_restored,
    }))
}
