//! Reading a table's own files piece by piece.
//!
//! No statement here grows with the table: each reads a bounded piece, and the place where it
//! ended is all that has to be kept, so that a reading can go on in another pass or process.
//!
//! A file's vector is asked for by hog_delete_file_data_lookup, file by file, and whether it is live
//! only then: asked for at once, the planner may rather gather all live vectors of the catalog for
//! each piece, or, without statistics, read them for each file by hog_delete_file_live.

use serde::{Deserialize, Serialize};

use super::live_file::{LiveFile, LiveFileRow};
use super::session::Session;

/// How many files one piece has.
pub const PIECE: i64 = 10_000;

/// A place among the files of a table, in the order (row id start, file id).
///
/// Files keep their place. A file that lands behind a place where a reading has been has an id at
/// or above the id counter as it was when the reading began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// `hog_data_file.row_id_start`.
    pub row_id_start: i64,
    /// `hog_data_file.data_file_id`.
    pub data_file_id: i64,
}

impl Place {
    /// Before every file.
    pub const START: Place = Place { row_id_start: i64::MIN, data_file_id: i64::MIN };
}

/// Reads the table's next `most` files after a place, live or ended, and gives the live ones, with
/// the place of the last; `None` once there was none left.
///
/// By hog_data_file_maintenance_scan (catalog, table, row id start, file id), which every server
/// has: the one index that holds a table's own files in an order that is unique, so that a piece is
/// exactly as large as asked. hog_data_file_live would leave out the ended ones, but a single
/// snapshot may have brought all files of the table, and its order could not be cut there; the
/// primary key would read the neighbours'.
pub async fn walk(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    after: Place,
    most: i64,
) -> sqlx::Result<(Vec<LiveFile>, Option<Place>)> {
    let rows = sqlx::query!(
        r#"with piece as materialized (
             select row_id_start, data_file_id, end_snapshot, spec_id, record_count,
                    file_size_bytes, file_format
             from hog_data_file
             where catalog_id = $1 and table_id = $2 and (row_id_start, data_file_id) > ($3, $4)
             order by row_id_start, data_file_id
             limit $5
           ),
           marked as (
             select *, pg_catalog.lead(data_file_id) over (order by row_id_start, data_file_id)
                       is null as is_last
             from piece
           )
           select p.row_id_start as "row_id_start!", p.data_file_id as "data_file_id!",
                  p.is_last as "is_last!", p.end_snapshot is null as "is_live!",
                  p.spec_id, p.record_count as "record_count!",
                  p.file_size_bytes as "file_size_bytes!",
                  p.file_format = 'parquet' as "is_parquet!",
                  t.keys as "keys: Vec<i32>", t."values" as "values: Vec<Option<String>>",
                  exists (select from (
                            select end_snapshot from hog_delete_file
                            where catalog_id = $1 and data_file_id = p.data_file_id offset 0) as d
                          where d.end_snapshot is null) as "has_vector!"
           from marked p
           cross join lateral (
             select pg_catalog.array_agg(v.key_index order by v.key_index) as keys,
                    pg_catalog.array_agg(v.value order by v.key_index) as "values"
             from hog_file_partition_value v
             where v.catalog_id = $1 and v.data_file_id = p.data_file_id) as t
           where p.end_snapshot is null or p.is_last"#,
        catalog_id,
        table_id,
        after.row_id_start,
        after.data_file_id,
        most
    )
    .fetch_all(connection)
    .await?;
    let mut last = None;
    let mut files = Vec::with_capacity(rows.len());
    for row in rows {
        if row.is_last {
            last = Some(Place { row_id_start: row.row_id_start, data_file_id: row.data_file_id });
        }
        if row.is_live {
            files.push(
                LiveFileRow {
                    data_file_id: row.data_file_id,
                    spec_id: row.spec_id,
                    keys: row.keys,
                    values: row.values,
                    is_parquet: row.is_parquet,
                    has_vector: row.has_vector,
                    record_count: row.record_count,
                    file_size_bytes: row.file_size_bytes,
                }
                .into(),
            );
        }
    }
    Ok((files, last))
}

/// The table's live files that began after a snapshot, oldest snapshot first, at most `most` of
/// them: all of a small table with a snapshot below every other.
///
/// By hog_data_file_live: neither neighbours nor ended files are read.
pub async fn live_since(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    after_snapshot: i64,
    most: i64,
) -> sqlx::Result<Vec<LiveFile>> {
    let rows = sqlx::query_as!(
        LiveFileRow,
        r#"select f.data_file_id, f.spec_id, f.record_count, f.file_size_bytes,
                  f.file_format = 'parquet' as "is_parquet!",
                  t.keys as "keys: Vec<i32>", t."values" as "values: Vec<Option<String>>",
                  exists (select from (
                            select end_snapshot from hog_delete_file
                            where catalog_id = $1 and data_file_id = f.data_file_id offset 0) as d
                          where d.end_snapshot is null) as "has_vector!"
           from (select data_file_id, spec_id, record_count, file_size_bytes, file_format
                 from hog_data_file
                 where catalog_id = $1 and table_id = $2 and end_snapshot is null
                   and begin_snapshot > $3
                 order by begin_snapshot
                 limit $4) as f
           cross join lateral (
             select pg_catalog.array_agg(v.key_index order by v.key_index) as keys,
                    pg_catalog.array_agg(v.value order by v.key_index) as "values"
             from hog_file_partition_value v
             where v.catalog_id = $1 and v.data_file_id = f.data_file_id) as t"#,
        catalog_id,
        table_id,
        after_snapshot,
        most
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(LiveFile::from).collect())
}

/// The table's live files with ids in `[from_id, before_id)`.
///
/// By the primary key: it reads the neighbours' files of these ids as well, so it is for a range
/// that is narrow.
pub async fn live_in_ids(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    from_id: i64,
    before_id: i64,
) -> sqlx::Result<Vec<LiveFile>> {
    // The sums keep the planner from every index but the primary key's.
    let rows = sqlx::query_as!(
        LiveFileRow,
        r#"select f.data_file_id, f.spec_id, f.record_count, f.file_size_bytes,
                  f.file_format = 'parquet' as "is_parquet!",
                  t.keys as "keys: Vec<i32>", t."values" as "values: Vec<Option<String>>",
                  exists (select from (
                            select end_snapshot from hog_delete_file
                            where catalog_id = $1 and data_file_id = f.data_file_id offset 0) as d
                          where d.end_snapshot is null) as "has_vector!"
           from hog_data_file f
           cross join lateral (
             select pg_catalog.array_agg(v.key_index order by v.key_index) as keys,
                    pg_catalog.array_agg(v.value order by v.key_index) as "values"
             from hog_file_partition_value v
             where v.catalog_id = $1 and v.data_file_id = f.data_file_id) as t
           where f.catalog_id = $1 and f.data_file_id >= $3 and f.data_file_id < $4
             and f.table_id + 0 = $2 and coalesce(f.end_snapshot, -1) = -1"#,
        catalog_id,
        table_id,
        from_id,
        before_id
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(LiveFile::from).collect())
}
