//! The statements that read a table's own files: by keyset pagination, since a snapshot, by ids, the newest.
//!
//! No statement here grows with the table: each reads a bounded piece, and the place where it
//! ended is all that has to be kept, so that a scan can go on in another pass or process.

use serde::{Deserialize, Serialize};

use super::live_file::{LiveFile, live_file, live_files};
use super::session::Session;

/// How many files one piece has.
pub const PIECE: i64 = 10_000;

/// A place among the files of a table, in the order (row id start, file id).
///
/// Files keep their place. A file that lands behind a place where a scan has been has an id at
/// or above the id counter as it was when the scan began.
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
pub async fn next_piece(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    after: Place,
    most: i64,
) -> sqlx::Result<(Vec<LiveFile>, Option<Place>)> {
    let rows = live_files!(
        r#"f.row_id_start as "row_id_start!", f.is_last as "is_last!",
           f.end_snapshot is null as "is_live!","#,
        r#"(
             select *, pg_catalog.lead(data_file_id) over (order by row_id_start, data_file_id)
                         is null as is_last
             from (
               select row_id_start, data_file_id, end_snapshot, spec_id, record_count,
                      file_size_bytes, file_format
               from hog_data_file
               where catalog_id = $1 and table_id = $2 and (row_id_start, data_file_id) > ($3, $4)
               order by row_id_start, data_file_id
               limit $5) as piece) as f
           where f.end_snapshot is null or f.is_last"#,
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
        if let (true, Some(data_file_id)) = (row.is_last, row.data_file_id) {
            last = Some(Place { row_id_start: row.row_id_start, data_file_id });
        }
        if row.is_live {
            files.extend(live_file!(row));
        }
    }
    Ok((files, last))
}

/// All live files of the table; `None` if they are more than `most`.
pub async fn at_most(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    most: i64,
) -> sqlx::Result<Option<Vec<LiveFile>>> {
    let files = live_since(connection, catalog_id, table_id, i64::MIN, most + 1).await?;
    Ok((files.len() as i64 <= most).then_some(files))
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
    let rows = live_files!(
        "",
        r#"(select data_file_id, spec_id, record_count, file_size_bytes, file_format
            from hog_data_file
            where catalog_id = $1 and table_id = $2 and end_snapshot is null
              and begin_snapshot > $3
            order by begin_snapshot
            limit $4) as f"#,
        catalog_id,
        table_id,
        after_snapshot,
        most
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().filter_map(|row| live_file!(row)).collect())
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
    let rows = live_files!(
        "",
        r#"hog_data_file f
           where f.catalog_id = $1 and f.data_file_id >= $3 and f.data_file_id < $4
             and f.table_id + 0 = $2 and coalesce(f.end_snapshot, -1) = -1"#,
        catalog_id,
        table_id,
        from_id,
        before_id
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().filter_map(|row| live_file!(row)).collect())
}

/// Those of some files that are live and of the table, by the primary key whatever the planner
/// believes of a long list.
pub async fn live_by_ids(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    ids: &[i64],
) -> sqlx::Result<Vec<LiveFile>> {
    let rows = live_files!(
        "",
        r#"pg_catalog.unnest($3::bigint[]) as i (id)
           cross join lateral (
             select data_file_id, table_id, spec_id, end_snapshot, record_count, file_size_bytes,
                    file_format
             from hog_data_file
             where catalog_id = $1 and data_file_id = i.id offset 0) as f
           where f.table_id = $2 and f.end_snapshot is null"#,
        catalog_id,
        table_id,
        ids
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().filter_map(|row| live_file!(row)).collect())
}

/// The table's newest live files, at most `most` of them.
///
/// By hog_data_file_live, which has the table's live files by the snapshot that they began in, from its end.
pub async fn newest_live(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    most: i64,
) -> sqlx::Result<Vec<LiveFile>> {
    let rows = live_files!(
        "",
        r#"(select data_file_id, spec_id, record_count, file_size_bytes, file_format
            from hog_data_file
            where catalog_id = $1 and table_id = $2 and end_snapshot is null
            order by begin_snapshot desc
            limit $3) as f"#,
        catalog_id,
        table_id,
        most
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().filter_map(|row| live_file!(row)).collect())
}

/// How many live files the table has, of every spec and of none, counted up to `most`. By hog_data_file_live.
pub async fn count_live(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    most: i64,
) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        r#"select pg_catalog.count(*) as "files!" from (
             select from hog_data_file
             where catalog_id = $1 and table_id = $2 and end_snapshot is null
             limit $3) as live"#,
        catalog_id,
        table_id,
        most
    )
    .fetch_one(connection)
    .await
}
