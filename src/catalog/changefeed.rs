//! What happened to a table's files between two snapshots.
//!
//! A section of the changes is read by keyset pagination on (snapshot, id) in three steps, so that each statement
//! reads little and sorts less, whatever the window holds: [`outline`] gives the next snapshots and how many rows each
//! has, [`keys`] the ids of a few of these snapshots, [`data_files`] and [`delete_files`] the rows of a few of
//! the ids, by primary key.

mod rows;

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::session::{Session, Transaction};
use super::tables::TableIdentity;
pub use rows::{DataFile, DeleteFile, data_files, delete_files};

/// The lists of a plan of changes, in the order in which they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Files that began, but for compaction's outputs, by (begin_snapshot, data_file_id).
    Files,
    /// Vectors that began, by (begin_snapshot, delete_file_id).
    DeleteFiles,
    /// Files that a drop or truncate ended, by (end_snapshot, data_file_id).
    EndedFiles,
}

/// A row's place in its section: the snapshot, then the id.
pub type Key = (i64, i64);

/// What bounds a window, as of the transaction's snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edges {
    /// The newest snapshot.
    pub head: i64,
    /// The oldest one that can be read.
    pub floor: i64,
}

/// Begins a transaction that reads one state of the catalog: what [`edges`] says holds for all
/// that is read in it. Takes no lock.
///
/// The settings are those of the plans of [`outline`] and [`keys`]: a sequential or bitmap scan, a
/// hash of all groups and a hash join all read a whole window before they give its first row; two
/// lists of snapshots in order are best merged. The parameters are looked at each time, for a window
/// of three snapshots and one of a million make no common plan. Workers of the server are left to
/// others.
pub async fn begin(connection: &mut Session) -> sqlx::Result<Transaction<'_>> {
    let begin = "begin isolation level repeatable read read only; \
         set local enable_seqscan = off; set local enable_bitmapscan = off; \
         set local enable_hashagg = off; set local enable_hashjoin = off; \
         set local enable_mergejoin = on; \
         set local plan_cache_mode = force_custom_plan";
    connection.begin_with(AssertSqlSafe(begin)).await
}

/// Head and floor; `None` if the table, with this UUID, is not live any more: then its rows
/// may go at any time.
pub async fn edges(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    table_uuid: Uuid,
) -> sqlx::Result<Option<Edges>> {
    sqlx::query_as!(
        Edges,
        r#"select c.last_snapshot_id as head, c.earliest_snapshot_id as floor
           from hog_catalog c
           join hog_table t on t.catalog_id = c.catalog_id and t.table_id = $2
           where c.catalog_id = $1 and t.table_uuid = $3 and t.dropped_snapshot is null
             and exists (select from hog_table_version v
                         join hog_namespace n
                           on n.catalog_id = v.catalog_id and n.namespace_id = v.namespace_id
                         where v.catalog_id = t.catalog_id and v.table_id = t.table_id
                           and v.end_snapshot is null and not n.dropped)"#,
        catalog_id,
        table_id,
        table_uuid
    )
    .fetch_optional(connection)
    .await
}

/// The first snapshot after `after`, up to `to`, that carries both a deletion and an alteration
/// of the table: a truncate, or a drop with a fence.
pub async fn first_fence(
    connection: &mut Session,
    table: &TableIdentity,
    after: i64,
    to: i64,
) -> sqlx::Result<Option<i64>> {
    sqlx::query_scalar!(
        r#"select a.snapshot_id from hog_snapshot_change a
           where a.catalog_id = $1 and a.object_id = $2 and a.kind = 'table_altered'
             and a.snapshot_id > $3 and a.snapshot_id <= $4
             and exists (select from hog_snapshot_change d
                         where d.catalog_id = a.catalog_id and d.object_id = a.object_id
                           and d.kind = 'table_deleted_from' and d.snapshot_id = a.snapshot_id)
           order by a.snapshot_id limit 1"#,
        table.catalog_id,
        table.table_id,
        after,
        to
    )
    .fetch_optional(connection)
    .await
}

/// The next snapshots after `after`, up to `to`, that may have rows of the section, in order, at
/// most `limit`, each with the number of its rows. That can be 0: such a snapshot is listed for
/// the caller to go on after it.
///
/// In the order of an index, so it ends at its limit: hog_data_file_changefeed and
/// hog_delete_file_changefeed (catalog_id, table_id, begin_snapshot); for ended files
/// hog_snapshot_change_conflict (catalog_id, object_id, kind, snapshot_id), then hog_data_file_ended
/// (catalog_id, end_snapshot) for these snapshots alone. That index has no table_id, but a snapshot
/// ends files of the few tables that it changed, so hardly a row is read in vain; a range of
/// snapshots would read what compaction ended in the whole catalog. Before V19 there is no
/// hog_data_file_ended: the ended files of the snapshots are then found by one read of the table's
/// own files.
pub async fn outline(
    connection: &mut Session,
    section: Section,
    table: &TableIdentity,
    after: i64,
    to: i64,
    limit: i64,
) -> sqlx::Result<Vec<Key>> {
    let (catalog, table) = (table.catalog_id, table.table_id);
    macro_rules! rows {
        ($sql:literal) => {
            sqlx::query!($sql, catalog, table, after, to, limit)
                .fetch_all(connection)
                .await?
                .into_iter()
                .map(|row| (row.snapshot, row.rows))
                .collect()
        };
    }
    Ok(match section {
        Section::Files => rows!(
            r#"select b.snapshot as "snapshot!",
                      case when exists (
                        select from hog_snapshot_change c
                        where c.catalog_id = $1 and c.object_id = $2
                          and c.kind = 'table_compacted' and c.snapshot_id = b.snapshot)
                      then 0 else b.files end as "rows!"
               from (select begin_snapshot as snapshot, pg_catalog.count(*) as files
                     from hog_data_file
                     where catalog_id = $1 and table_id = $2
                       and begin_snapshot > $3 and begin_snapshot <= $4
                     group by begin_snapshot order by begin_snapshot limit $5) as b
               order by b.snapshot"#
        ),
        Section::DeleteFiles => rows!(
            r#"select begin_snapshot as "snapshot!", pg_catalog.count(*) as "rows!"
               from hog_delete_file
               where catalog_id = $1 and table_id = $2
                 and begin_snapshot > $3 and begin_snapshot <= $4
               group by begin_snapshot order by begin_snapshot limit $5"#
        ),
        // The array is known before the files are looked at, so that an index takes it as its
        // condition where there is one, and one read of the table's files where there is none;
        // `offset 0` as in `keys`.
        Section::EndedFiles => rows!(
            r#"with deleting as materialized (
                 select distinct d.snapshot_id as snapshot from hog_snapshot_change d
                 where d.catalog_id = $1 and d.object_id = $2 and d.kind = 'table_deleted_from'
                   and d.snapshot_id > $3 and d.snapshot_id <= $4
                   and not exists (
                     select from hog_snapshot_change c
                     where c.catalog_id = $1 and c.object_id = $2
                       and c.kind = 'table_compacted' and c.snapshot_id = d.snapshot_id)
                 order by d.snapshot_id limit $5
               ),
               ended as materialized (
                 select snapshot, pg_catalog.count(*) as files
                 from (select end_snapshot as snapshot from hog_data_file
                       where catalog_id = $1 and table_id = $2
                         and end_snapshot = any (array(select snapshot from deleting))
                       offset 0) as found
                 group by snapshot
               )
               select snapshot as "snapshot!", coalesce(files, 0) as "rows!"
               from deleting left join ended using (snapshot)
               order by snapshot"#
        ),
    })
}

/// The keys of the section's rows in these snapshots that come after `after`, in order, at most
/// `limit`. The snapshots must be from an [`outline`], those without rows left out.
///
/// By the indexes of [`outline`]. None has the id behind the snapshot, so these ids are sorted: the
/// caller asks for as many snapshots as make up one block, which reads a row once. Only a snapshot
/// that is larger than a block is read again for each of its blocks.
///
/// `offset 0` keeps the order out of the choice of an index scan: for its sake a whole range of
/// the index would be read, and filtered, of which these snapshots are a small part.
pub async fn keys(
    connection: &mut Session,
    section: Section,
    table: &TableIdentity,
    snapshots: &[i64],
    after: Key,
    limit: i64,
) -> sqlx::Result<Vec<Key>> {
    let (catalog, table) = (table.catalog_id, table.table_id);
    macro_rules! rows {
        ($sql:literal) => {
            sqlx::query!($sql, catalog, table, snapshots, after.0, after.1, limit)
                .fetch_all(connection)
                .await?
                .into_iter()
                .map(|row| (row.snapshot, row.id))
                .collect()
        };
    }
    Ok(match section {
        Section::Files => rows!(
            r#"select snapshot as "snapshot!", id as "id!"
               from (select begin_snapshot as snapshot, data_file_id as id from hog_data_file
                     where catalog_id = $1 and table_id = $2 and begin_snapshot = any ($3)
                       and (begin_snapshot, data_file_id) > ($4, $5)
                     offset 0) as found
               order by snapshot, id limit $6"#
        ),
        Section::DeleteFiles => rows!(
            r#"select snapshot as "snapshot!", id as "id!"
               from (select begin_snapshot as snapshot, delete_file_id as id from hog_delete_file
                     where catalog_id = $1 and table_id = $2 and begin_snapshot = any ($3)
                       and (begin_snapshot, delete_file_id) > ($4, $5)
                     offset 0) as found
               order by snapshot, id limit $6"#
        ),
        Section::EndedFiles => rows!(
            r#"select snapshot as "snapshot!", id as "id!"
               from (select end_snapshot as snapshot, data_file_id as id from hog_data_file
                     where catalog_id = $1 and table_id = $2 and end_snapshot = any ($3)
                       and (end_snapshot, data_file_id) > ($4, $5)
                     offset 0) as found
               order by snapshot, id limit $6"#
        ),
    })
}
