//! The history of drops, compared with what the catalog has of them.

use chrono::{DateTime, Utc};
use sqlx::types::Json;
use uuid::Uuid;

use crate::catalog::drop_history::PartitionRow;
use crate::catalog::live_file::Counts;
use crate::catalog::session::Session;
use crate::catalog::tuples::TupleOfSpec;

/// A drop as the drop history has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedDrop {
    pub drop_id: Uuid,
    /// The snapshot that it made.
    pub snapshot_id: i64,
    pub table_id: i64,
    /// The policy that it acted for; `None` for an explicit drop.
    pub policy_revision: Option<i64>,
    /// The time of its snapshot.
    pub dropped_at: DateTime<Utc>,
    /// Over all of its tuples.
    pub counts: Counts,
    /// The tuples; `None` for a whole table.
    pub tuples: Option<Vec<TupleOfSpec>>,
}

/// The next `most` drops of a catalog with snapshots in `(above, before)`, and those of the same snapshot
/// as the last of them, newest first, by drop_history_standing. Drops that are noted as undone are left out.
pub async fn recorded_drops(
    connection: &mut Session,
    catalog_id: i64,
    above: i64,
    before: i64,
    most: i64,
) -> sqlx::Result<Vec<RecordedDrop>> {
    let rows = sqlx::query!(
        r#"select drop_id, snapshot_id, table_id, policy_revision, dropped_at, files_ended,
                  delete_files_ended, records, bytes,
                  partitions as "partitions: Json<Vec<PartitionRow>>"
           from tailrace.drop_history
           where catalog_id = $1 and snapshot_id > $2 and snapshot_id < $3
             and undone_seen_at is null
           order by snapshot_id desc fetch first $4 rows with ties"#,
        catalog_id,
        above,
        before,
        most
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let elements = row.partitions.0.len();
            let tuples: Vec<_> = row
                .partitions
                .0
                .into_iter()
                .filter_map(PartitionRow::into_tuple)
                .map(|(tuple, _)| tuple)
                .collect();
            RecordedDrop {
                drop_id: row.drop_id,
                snapshot_id: row.snapshot_id,
                table_id: row.table_id,
                policy_revision: row.policy_revision,
                dropped_at: row.dropped_at,
                counts: Counts {
                    files: row.files_ended,
                    delete_files: row.delete_files_ended,
                    records: row.records,
                    bytes: row.bytes,
                },
                tuples: (tuples.len() == elements).then_some(tuples),
            }
        })
        .collect())
}

/// How many drops of a catalog, or of one table, are noted as undone.
pub async fn noted_undone(
    connection: &mut Session,
    catalog_id: i64,
    table_id: Option<i64>,
) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        r#"select pg_catalog.count(*) as "drops!" from tailrace.drop_history
           where catalog_id = $1 and undone_seen_at is not null
             and ($2::bigint is null or table_id = $2)"#,
        catalog_id,
        table_id
    )
    .fetch_one(connection)
    .await
}

/// What a snapshot says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotChanges {
    /// Whether the snapshot is there.
    pub exists: bool,
    /// Its changes: kind and object, in this order.
    pub changes: Vec<(String, i64)>,
}

/// The changes of each of these snapshots, in their order, by hog_snapshot_change_by_snapshot.
pub async fn changes_of(
    connection: &mut Session,
    catalog_id: i64,
    snapshot_ids: &[i64],
) -> sqlx::Result<Vec<SnapshotChanges>> {
    let rows = sqlx::query!(
        r#"select c.kinds as "kinds: Vec<String>", c.objects as "objects: Vec<i64>",
                  s.there is not null as "exists!"
           from pg_catalog.unnest($2::bigint[]) with ordinality as w (snapshot_id, ordinal)
           cross join lateral (
             select pg_catalog.array_agg(kind order by kind, object_id) as kinds,
                    pg_catalog.array_agg(object_id order by kind, object_id) as objects
             from hog_snapshot_change
             where catalog_id = $1 and snapshot_id = w.snapshot_id) as c
           -- One descent for each: as a condition it would be hashed, from all of the snapshots.
           left join lateral (
             select true as there from hog_snapshot
             where catalog_id = $1 and snapshot_id = w.snapshot_id offset 0) as s on true
           order by w.ordinal"#,
        catalog_id,
        snapshot_ids
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| SnapshotChanges {
            exists: row.exists,
            changes: row
                .kinds
                .unwrap_or_default()
                .into_iter()
                .zip(row.objects.unwrap_or_default())
                .collect(),
        })
        .collect())
}

/// What a snapshot ended of one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedRows {
    pub snapshot_id: i64,
    pub table_id: i64,
    /// The rows that are there.
    pub counts: Counts,
}

/// What each of these snapshots ended, by hog_data_file_ended, with the vectors that ended in the
/// same snapshot, by hog_delete_file_data_lookup. Costs as much as the files that they ended.
pub async fn ended_in(
    connection: &mut Session,
    catalog_id: i64,
    snapshot_ids: &[i64],
) -> sqlx::Result<Vec<EndedRows>> {
    let rows = sqlx::query!(
        r#"select w.snapshot_id as "snapshot_id!", e.table_id as "table_id!", e.files as "files!",
                  e.delete_files as "delete_files!", e.records as "records!", e.bytes as "bytes!"
           from pg_catalog.unnest($2::bigint[]) as w (snapshot_id)
           cross join lateral (
             select f.table_id, pg_catalog.count(*) as files,
                    pg_catalog.sum(v.vectors)::bigint as delete_files,
                    least(pg_catalog.sum(f.record_count), 9223372036854775807)::bigint
                      as records,
                    least(pg_catalog.sum(f.file_size_bytes), 9223372036854775807)::bigint
                      as bytes
             from hog_data_file f
             cross join lateral (
               select pg_catalog.count(*) as vectors from hog_delete_file d
               where d.catalog_id = $1 and d.data_file_id = f.data_file_id
                 and d.end_snapshot = w.snapshot_id) as v
             where f.catalog_id = $1 and f.end_snapshot = w.snapshot_id
             group by f.table_id) as e"#,
        catalog_id,
        snapshot_ids
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| EndedRows {
            snapshot_id: row.snapshot_id,
            table_id: row.table_id,
            counts: Counts {
                files: row.files,
                delete_files: row.delete_files,
                records: row.records,
                bytes: row.bytes,
            },
        })
        .collect())
}

/// The live files of a table that began before a snapshot: how many, and the ids of at most `most`
/// of them. By hog_data_file_live: after a drop of the whole table there are none to be read.
pub async fn live_before(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    snapshot_id: i64,
    most: i64,
) -> sqlx::Result<(i64, Vec<i64>)> {
    let rows = sqlx::query!(
        r#"select data_file_id, pg_catalog.count(*) over () as "files!" from hog_data_file
           where catalog_id = $1 and table_id = $2 and end_snapshot is null and begin_snapshot < $3
           order by begin_snapshot, data_file_id limit $4"#,
        catalog_id,
        table_id,
        snapshot_id,
        most
    )
    .fetch_all(connection)
    .await?;
    let files = rows.first().map_or(0, |row| row.files);
    Ok((files, rows.into_iter().map(|row| row.data_file_id).collect()))
}
