//! The rows that a drop ended, on servers before V19, which have no index by `end_snapshot`.

use super::{OpenCatalog, Passed};
use crate::catalog::inventory::owners::server_has_index;
use crate::catalog::session::Session;

/// How many file rows of a table are read for it, where nobody says otherwise.
pub const ROWS: i64 = 100_000;

/// How many file rows of a catalog a pass reads for it.
pub const ROWS_OF_PASS: i64 = 5 * ROWS;

/// Whether this server has hog_data_file_ended, which came with V19; without it nothing finds the files
/// that a snapshot ended but a read of all of them.
pub async fn has_ended_index(connection: &mut Session) -> sqlx::Result<bool> {
    server_has_index(connection, "hog_data_file", "hog_data_file_ended").await
}

/// Whether the server's migrations went beyond V19, told by the column that V20 brought: where that is
/// there, an index of V19 is not there because somebody removed it.
pub async fn server_is_newer(connection: &mut Session) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (
             select from pg_catalog.pg_attribute a
             where a.attrelid = pg_catalog.to_regclass('hog_table')::oid
               and a.attname = 'retirement_eligible_at' and not a.attisdropped) as "there!""#
    )
    .fetch_one(connection)
    .await
}

/// How many drops of one table a pass looks at, the oldest first.
const DROPS_OF_TABLE: i64 = 100;

/// The oldest drops at or below the floor of which rows may be left, of each table: so that one table
/// whose drops cannot be read keeps no other's from being looked at.
///
/// The tables are found by steps through drop_history_of_table (catalog_id, table_uuid, snapshot_id),
/// and so are the drops of each.
pub async fn passed_by_table(
    connection: &mut Session,
    catalog: &OpenCatalog,
) -> sqlx::Result<Vec<Passed>> {
    sqlx::query_as!(
        Passed,
        r#"with recursive tables as (
             (select table_uuid from tailrace.drop_history
              where catalog_id = $1 order by table_uuid limit 1)
             union all
             select (select h.table_uuid from tailrace.drop_history h
                     where h.catalog_id = $1 and h.table_uuid > t.table_uuid
                     order by h.table_uuid limit 1)
             from tables t where t.table_uuid is not null
           )
           select d.drop_id, $1::bigint as "catalog_id!", d.snapshot_id, d.table_id from tables t
           cross join lateral (
             select drop_id, snapshot_id, table_id from tailrace.drop_history
             where catalog_id = $1 and table_uuid = t.table_uuid and snapshot_id <= $2
               and purged_seen_at is null and undone_seen_at is null
             order by snapshot_id limit $3) as d
           where t.table_uuid is not null"#,
        catalog.catalog_id,
        catalog.floor,
        DROPS_OF_TABLE
    )
    .fetch_all(connection)
    .await
}

/// How many files that ended in each of some snapshots still have a row, as far as the table's
/// oldest file rows tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// (snapshot, files), without those that have none.
    pub files: Vec<(i64, i64)>,
    /// Of the snapshots up to this one no other row of the table can have ended in one.
    pub known_through: i64,
    /// How many rows were read.
    pub read: i64,
}

impl Left {
    /// How many rows are left of a snapshot; `None` where the rows that were read do not tell.
    pub fn of(&self, snapshot_id: i64) -> Option<i64> {
        let files = self.files.iter().find(|(of, _)| *of == snapshot_id).map(|(_, files)| *files);
        (snapshot_id <= self.known_through).then(|| files.unwrap_or(0))
    }
}

/// Reads the table's files from the oldest on, through hog_data_file_changefeed (catalog_id,
/// table_id, begin_snapshot), and stops where files begin that none of the snapshots can have
/// ended, or after `most` rows. A server before V19 has no shorter way.
///
/// What a snapshot ended began before it: so all is known of the snapshots up to the one in which the
/// last row that was read began.
pub async fn left(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    snapshot_ids: &[i64],
    most: i64,
) -> sqlx::Result<Left> {
    let rows = sqlx::query!(
        r#"with oldest as materialized (
             select begin_snapshot, end_snapshot from hog_data_file
             where catalog_id = $1 and table_id = $2
               and begin_snapshot < (select pg_catalog.max(s)
                                     from pg_catalog.unnest($3::bigint[]) as s)
             order by begin_snapshot limit $4
           )
           select null::bigint as snapshot_id, pg_catalog.count(*) as "files!",
                  pg_catalog.max(begin_snapshot) as last_begin
           from oldest
           union all
           select end_snapshot, pg_catalog.count(*), null from oldest
           where end_snapshot = any ($3) group by end_snapshot"#,
        catalog_id,
        table_id,
        snapshot_ids,
        most
    )
    .fetch_all(connection)
    .await?;
    let mut left = Left { files: Vec::new(), known_through: i64::MAX, read: 0 };
    for row in rows {
        match row.snapshot_id {
            Some(snapshot_id) => left.files.push((snapshot_id, row.files)),
            None => {
                left.read = row.files;
                if row.files >= most {
                    left.known_through = row.last_begin.unwrap_or(i64::MIN);
                }
            }
        }
    }
    Ok(left)
}
