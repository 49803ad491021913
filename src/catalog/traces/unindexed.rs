//! The rows that a drop ended, on servers before V19, which have no index by `end_snapshot`.

use sqlx::PgConnection;

use crate::catalog::inventory::owners::server_has_index;

/// How many file rows of a table are read for it, where nobody says otherwise.
pub const ROWS: i64 = 100_000;

/// Whether this server has hog_data_file_ended.
pub async fn has_ended_index(connection: &mut PgConnection) -> sqlx::Result<bool> {
    server_has_index(connection, "hog_data_file", "hog_data_file_ended").await
}

/// How many files that ended in each of these snapshots still have a row, as far as the table's
/// oldest file rows tell; `is_all` says whether those are all that can matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// (snapshot, files), without those that have none.
    pub files: Vec<(i64, i64)>,
    /// No other row of the table can have ended in one of the snapshots.
    pub is_all: bool,
}

/// Reads the table's files from the oldest on, through hog_data_file_changefeed (catalog_id,
/// table_id, begin_snapshot), and stops where files begin that none of the snapshots can have
/// ended, or after `most` rows. A server before V19 has no shorter way.
pub async fn left(
    connection: &mut PgConnection,
    catalog_id: i64,
    table_id: i64,
    snapshot_ids: &[i64],
    most: i64,
) -> sqlx::Result<Left> {
    let rows = sqlx::query!(
        r#"with oldest as materialized (
             select end_snapshot from hog_data_file
             where catalog_id = $1 and table_id = $2
               and begin_snapshot < (select pg_catalog.max(s)
                                     from pg_catalog.unnest($3::bigint[]) as s)
             order by begin_snapshot limit $4
           )
           select null::bigint as snapshot_id, pg_catalog.count(*) as "files!" from oldest
           union all
           select end_snapshot, pg_catalog.count(*) from oldest
           where end_snapshot = any ($3) group by end_snapshot"#,
        catalog_id,
        table_id,
        snapshot_ids,
        most
    )
    .fetch_all(connection)
    .await?;
    let mut left = Left { files: Vec::new(), is_all: true };
    for row in rows {
        match row.snapshot_id {
            Some(snapshot_id) => left.files.push((snapshot_id, row.files)),
            None => left.is_all = row.files < most,
        }
    }
    Ok(left)
}
