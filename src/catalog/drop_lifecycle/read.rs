//! The statements that read what became of drops. Nothing here writes or locks, and each statement has a
//! bound that does not grow with any table.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::types::Json;
use utoipa::ToSchema;
use uuid::Uuid;

use super::by_index;
use crate::catalog::drop_history::PartitionRow;
use crate::catalog::live_file::Counts;
use crate::catalog::restore::{Restored, compared_after, undone};
use crate::catalog::session::{Session, Transaction};
use crate::catalog::tuples::TupleOfSpec;
use crate::rules::instant::UtcInstant;

/// How many rows of a queue, and how many drops that are not gone, are counted at most.
pub const COUNTED: i64 = 100_000;
/// How many rows of one drop are counted at most.
pub const ROWS_COUNTED: i64 = 10_000;
/// How many consumers that hold a floor are told at most.
const CONSUMERS: i64 = 10;

/// A transaction in which all reads see one moment. It can write nothing.
pub async fn reading(connection: &mut Session) -> sqlx::Result<Transaction<'_>> {
    by_index(connection, "begin isolation level repeatable read read only").await
}

/// What decides in a catalog how far the floor may move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FloorRules {
    /// `earliest_snapshot_id`.
    pub floor: i64,
    /// The newest snapshot.
    pub head: i64,
    /// Null keeps everything for ever.
    pub retention_seconds: Option<i64>,
    /// The consumers that are heeded, with the lowest offsets first; empty if none is.
    pub consumers: Vec<Consumer>,
}

/// A consumer's offset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Consumer {
    /// Its name.
    pub consumer_id: String,
    /// The table that it reads.
    pub table_uuid: Uuid,
    /// The last snapshot that it has applied.
    pub committed_snapshot: i64,
    /// When it last said so.
    pub updated_at: UtcInstant,
}

/// Reads the rules; `None` if the catalog is gone. Only the lowest ten consumers are read, from the
/// beginning of hog_consumer_offset_retention_floor (catalog_id, committed_snapshot); their tables
/// are looked up one by one (`offset 0`), for a join would compare each with every table.
pub async fn floor_rules(
    connection: &mut Session,
    catalog_id: i64,
) -> sqlx::Result<Option<FloorRules>> {
    let Some(catalog) = sqlx::query!(
        r#"select earliest_snapshot_id, last_snapshot_id, snapshot_retention_seconds,
                  consumer_floor
           from hog_catalog where catalog_id = $1"#,
        catalog_id
    )
    .fetch_optional(&mut *connection)
    .await?
    else {
        return Ok(None);
    };
    let consumers = sqlx::query_as!(
        Consumer,
        r#"select consumer_id, table_uuid, committed_snapshot, updated_at
           from hog_consumer_offset o
           where catalog_id = $1 and $2
             and exists (select from hog_table t
                         where t.catalog_id = o.catalog_id and t.table_uuid = o.table_uuid
                         offset 0)
           order by committed_snapshot, consumer_id limit $3"#,
        catalog_id,
        catalog.consumer_floor,
        CONSUMERS
    )
    .fetch_all(connection)
    .await?;
    Ok(Some(FloorRules {
        floor: catalog.earliest_snapshot_id,
        head: catalog.last_snapshot_id,
        retention_seconds: catalog.snapshot_retention_seconds,
        consumers,
    }))
}

/// How many drops of a catalog are not gone (up to [`COUNTED`] each of those with rows and of
/// those in the queue), and when the oldest was made. `restored` is what
/// [`restored`](crate::catalog::restore::restored()) said.
pub async fn not_gone(
    connection: &mut Session,
    catalog_id: i64,
    restored: Option<&Restored>,
) -> sqlx::Result<(i64, Option<UtcInstant>)> {
    let row = sqlx::query!(
        r#"with kept as materialized (
             select snapshot_id, dropped_at from tailrace.drop_history
             where catalog_id = $1 and purged_seen_at is null and undone_seen_at is null
             order by snapshot_id limit $2
           ),
           queued as materialized (
             select snapshot_id, dropped_at from tailrace.drop_history
             where catalog_id = $1 and purged_seen_at is not null and gone_seen_at is null
               and undone_seen_at is null
             order by last_removal_id limit $2
           )
           select pg_catalog.count(*) as "drops!", pg_catalog.min(dropped_at) as oldest
           from (select * from kept union all select * from queued) as open
           where case when snapshot_id <= $3 then true else exists (
             select from hog_snapshot s
             where s.catalog_id = $1 and s.snapshot_id = open.snapshot_id
               and s.snapshot_time = open.dropped_at
               and s.snapshot_id <= (select last_snapshot_id from hog_catalog
                                     where catalog_id = $1)) end"#,
        catalog_id,
        COUNTED,
        compared_after(restored)
    )
    .fetch_one(connection)
    .await?;
    Ok((row.drops, row.oldest.map(UtcInstant::from)))
}

/// The UUIDs of the tables that have this name (NAMESPACE.TABLE), or had it when a pass looked at one of
/// their drops.
pub async fn uuids(
    connection: &mut Session,
    catalog_id: i64,
    namespace: &str,
    table: &str,
) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        r#"select t.table_uuid as "table_uuid!"
           from hog_namespace n
           join hog_table_version v
             on v.catalog_id = n.catalog_id and v.namespace_id = n.namespace_id
            and v.name = $3 and v.end_snapshot is null
           join hog_table t on t.catalog_id = v.catalog_id and t.table_id = v.table_id
           where n.catalog_id = $1 and n.name = $2 and not n.dropped
             and t.dropped_snapshot is null
           union
           select table_uuid from tailrace.drop_history
           where catalog_id = $1 and table_name = $2 || '.' || $3"#,
        catalog_id,
        namespace,
        table
    )
    .fetch_all(connection)
    .await
}

/// The newest drops of a catalog below a snapshot, or of some of its tables, newest first. All drops of
/// the last one's snapshot are among them, for an undone drop may have the snapshot of another one.
pub async fn newest(
    connection: &mut Session,
    catalog_id: i64,
    tables: Option<&[Uuid]>,
    before: i64,
    limit: i64,
) -> sqlx::Result<Vec<Uuid>> {
    match tables {
        None => {
            sqlx::query_scalar!(
                r#"select drop_id from (
                     select drop_id, snapshot_id, dropped_at from tailrace.drop_history
                     where catalog_id = $1 and snapshot_id < $2
                     order by snapshot_id desc fetch first $3 rows with ties) as newest
                   order by snapshot_id desc, dropped_at desc"#,
                catalog_id,
                before,
                limit
            )
            .fetch_all(connection)
            .await
        }
        Some(tables) => {
            sqlx::query_scalar!(
                r#"select drop_id from (
                     select h.drop_id, h.snapshot_id, h.dropped_at
                     from pg_catalog.unnest($2::uuid[]) as t (table_uuid)
                     cross join lateral (
                       select drop_id, snapshot_id, dropped_at from tailrace.drop_history
                       where catalog_id = $1 and table_uuid = t.table_uuid and snapshot_id < $3
                       order by snapshot_id desc fetch first $4 rows with ties) as h
                     order by h.snapshot_id desc fetch first $4 rows with ties) as newest
                   order by snapshot_id desc, dropped_at desc"#,
                catalog_id,
                tables,
                before,
                limit
            )
            .fetch_all(connection)
            .await
        }
    }
}

/// A drop as the drop history and the catalog show it.
#[derive(Debug, Clone)]
pub struct DropRow {
    /// The one that it made, at which its files ended.
    pub snapshot_id: i64,
    pub table_id: i64,
    pub table_uuid: Uuid,
    /// The name that the table has, or had last; `None` if no pass saw it before it went.
    pub table: Option<String>,
    /// The policy that it acted for; `None` for an explicit one.
    pub policy_revision: Option<i64>,
    /// The time of its snapshot.
    pub dropped_at: UtcInstant,
    /// What it ended.
    pub counts: Counts,
    /// The first 100 of its partitions; none for a whole table.
    pub partitions: Vec<(TupleOfSpec, Counts)>,
    /// How many partitions there were.
    pub partitions_total: i64,
    /// What passes noted.
    pub noted: Noted,
    /// When the snapshot before it was made, if the catalog still has it.
    pub before_at: Option<UtcInstant>,
    /// Whether a restore took it back, as [`undone`](crate::catalog::restore::undone()) says, noted or
    /// not.
    pub is_undone: bool,
}

/// What passes noted of a drop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Noted {
    /// When no row of its files was left, and the mark in the queue then.
    pub purged: Option<(UtcInstant, i64)>,
    /// When no undrained row at or below the mark was left.
    pub gone_at: Option<UtcInstant>,
    /// When the catalog was found not to know the drop.
    pub undone_at: Option<UtcInstant>,
}

/// Reads these drops, the newest first. Drops that were purged from the history are left out.
pub async fn drops(
    connection: &mut Session,
    catalog_id: i64,
    restored: Option<&Restored>,
    drop_ids: &[Uuid],
) -> sqlx::Result<Vec<DropRow>> {
    let undone = undone(&mut *connection, catalog_id, restored, drop_ids).await?;
    let rows = sqlx::query!(
        r#"select h.drop_id, h.snapshot_id, h.table_id, h.table_uuid, h.policy_revision,
                  h.dropped_at, h.files_ended, h.delete_files_ended, h.records, h.bytes,
                  pg_catalog.jsonb_path_query_array(h.partitions, '$[0 to 99]')
                    as "partitions!: Json<Vec<PartitionRow>>",
                  pg_catalog.jsonb_array_length(h.partitions)::bigint as "partitions_total!",
                  h.purged_seen_at, h.last_removal_id, h.gone_seen_at, h.undone_seen_at,
                  (select s.snapshot_time from hog_snapshot s
                   where s.catalog_id = $1 and s.snapshot_id = h.snapshot_id - 1)
                    as "before_at: DateTime<Utc>",
                  coalesce((
                    select n.name || '.' || v.name
                    from hog_table_version v
                    join hog_namespace n
                      on n.catalog_id = v.catalog_id and n.namespace_id = v.namespace_id
                    join hog_table t on t.catalog_id = v.catalog_id and t.table_id = v.table_id
                    where v.catalog_id = h.catalog_id and v.table_id = h.table_id
                      and t.table_uuid = h.table_uuid
                    order by v.begin_snapshot desc limit 1), h.table_name) as "table"
           from tailrace.drop_history h
           join hog_catalog c on c.catalog_id = h.catalog_id
           where h.drop_id = any ($2) and h.catalog_id = $1
           order by h.snapshot_id desc, h.dropped_at desc"#,
        catalog_id,
        drop_ids
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| DropRow {
            snapshot_id: row.snapshot_id,
            table_id: row.table_id,
            table_uuid: row.table_uuid,
            table: row.table,
            policy_revision: row.policy_revision,
            dropped_at: row.dropped_at.into(),
            counts: Counts {
                files: row.files_ended,
                delete_files: row.delete_files_ended,
                records: row.records,
                bytes: row.bytes,
            },
            partitions: row.partitions.0.into_iter().filter_map(PartitionRow::into_tuple).collect(),
            partitions_total: row.partitions_total,
            noted: Noted {
                purged: row.purged_seen_at.map(UtcInstant::from).zip(row.last_removal_id),
                gone_at: row.gone_seen_at.map(UtcInstant::from),
                undone_at: row.undone_seen_at.map(UtcInstant::from),
            },
            before_at: row.before_at.map(UtcInstant::from),
            is_undone: undone.contains(&row.drop_id),
        })
        .collect())
}
