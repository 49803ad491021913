//! What became of our drops: how it is noted (here), and how it is read ([`read`]).
//!
//! A drop ends rows; the server's expiry deletes them once the floor has passed, and queues their paths; its cleanup
//! deletes the objects. Nothing in a queue row says which drop it comes from, so two moments are noted: that no row
//! is left ([`without_rows`], [`note_purged`]), and that no object is ([`note_gone`]). The dates are those at which a
//! pass saw it: never early, late by the distance of two passes.
//!
//! All of it is true of drops that the catalog knows: of a catalog that was restored, nothing is noted until that is
//! settled ([`super::restore`]). A foreign snapshot may have the id of an undone drop.

pub mod queue;
pub mod read;
pub mod unindexed;

use uuid::Uuid;

use super::session::{Session, Transaction};
use crate::rules::instant::UtcInstant;

/// How many drops of a catalog one pass looks at, the oldest first.
pub const DROPS: i64 = 1_000;

/// A catalog of whose drops some are not gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenCatalog {
    pub catalog_id: i64,
    /// `earliest_snapshot_id`: rows that ended at or below it are no reader's any more.
    pub floor: i64,
}

/// Begins a transaction whose statements reach rows by index, whatever the planner believes of the
/// tables: with old statistics it may take one of ten million files for a small one.
pub(super) async fn by_index<'c>(
    connection: &'c mut Session,
    begin: &'static str,
) -> sqlx::Result<Transaction<'c>> {
    let mut transaction = connection.begin_with(begin).await?;
    sqlx::raw_sql(
        "set local enable_seqscan = off; set local enable_hashjoin = off; \
         set local enable_mergejoin = off; set local enable_bitmapscan = off",
    )
    .execute(&mut *transaction)
    .await?;
    Ok(transaction)
}

/// A transaction to note something in. No lock but those of the rows of the drop history.
pub async fn noting(connection: &mut Session) -> sqlx::Result<Transaction<'_>> {
    by_index(connection, "begin isolation level read committed read write").await
}

/// The catalogs with drops that are not gone.
pub async fn open_catalogs(connection: &mut Session) -> sqlx::Result<Vec<OpenCatalog>> {
    sqlx::query_as!(
        OpenCatalog,
        r#"select c.catalog_id, c.earliest_snapshot_id as floor
           from hog_catalog c
           where exists (select from tailrace.drop_history h
                         where h.catalog_id = c.catalog_id
                           and h.purged_seen_at is null and h.undone_seen_at is null)
              or exists (select from tailrace.drop_history h
                         where h.catalog_id = c.catalog_id and h.purged_seen_at is not null
                           and h.gone_seen_at is null and h.undone_seen_at is null)
           order by c.catalog_id"#
    )
    .fetch_all(connection)
    .await
}

/// Notes the names of tables beside their drops, among the newest [`DROPS`] of each catalog: the name that
/// the catalog knew last, if the table was dropped meanwhile.
pub async fn note_names(connection: &mut Session, catalogs: &[OpenCatalog]) -> sqlx::Result<()> {
    sqlx::query!(
        r#"update tailrace.drop_history h set table_name = k.name
           from (
             select d.drop_id, n.name || '.'::text || v.name as name
             from pg_catalog.unnest($1::bigint[]) as g (catalog_id)
             cross join lateral (
               select drop_id, table_id, table_uuid, table_name from tailrace.drop_history
               where catalog_id = g.catalog_id and purged_seen_at is null
                 and undone_seen_at is null
               order by snapshot_id desc limit $2) as d
             join hog_table t on t.catalog_id = g.catalog_id and t.table_id = d.table_id
                             and t.table_uuid = d.table_uuid
             cross join lateral (
               select namespace_id, name from hog_table_version
               where catalog_id = t.catalog_id and table_id = t.table_id
               order by begin_snapshot desc limit 1) as v
             join hog_namespace n on n.catalog_id = g.catalog_id and n.namespace_id = v.namespace_id
             where d.table_name is null) as k
           where h.drop_id = k.drop_id and h.table_name is null"#,
        &ids(catalogs),
        DROPS
    )
    .execute(connection)
    .await?;
    Ok(())
}

fn ids(catalogs: &[OpenCatalog]) -> Vec<i64> {
    catalogs.iter().map(|catalog| catalog.catalog_id).collect()
}

/// A drop that the floor has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    pub drop_id: Uuid,
    pub catalog_id: i64,
    /// The one that it made, at which its files ended.
    pub snapshot_id: i64,
    pub table_id: i64,
}

/// Of each catalog the oldest [`DROPS`] drops at or below the floor of which rows may be left.
pub async fn passed(
    connection: &mut Session,
    catalogs: &[OpenCatalog],
) -> sqlx::Result<Vec<Passed>> {
    let floors: Vec<i64> = catalogs.iter().map(|catalog| catalog.floor).collect();
    sqlx::query_as!(
        Passed,
        r#"select d.drop_id, g.catalog_id as "catalog_id!", d.snapshot_id, d.table_id
           from unnest($1::bigint[], $2::bigint[]) as g (catalog_id, floor)
           cross join lateral (
             select drop_id, snapshot_id, table_id from tailrace.drop_history
             where catalog_id = g.catalog_id and snapshot_id <= g.floor
               and purged_seen_at is null and undone_seen_at is null
             order by snapshot_id limit $3) as d"#,
        &ids(catalogs),
        &floors,
        DROPS
    )
    .fetch_all(connection)
    .await
}

/// Which of these drops ended no file that still has a row: one look each into
/// hog_data_file_ended (catalog_id, end_snapshot).
///
/// Only the drop's own snapshot S ended files at S, so the drop's rows are those with
/// `end_snapshot = S`, and none is ever added. Its vectors hang on its files and go before or with
/// them (`hog_delete_file` references the file, and deleting one cascades): where no file is left, no
/// vector is.
pub async fn without_rows(connection: &mut Session, passed: &[Passed]) -> sqlx::Result<Vec<Uuid>> {
    let drops: Vec<Uuid> = passed.iter().map(|drop| drop.drop_id).collect();
    let catalogs: Vec<i64> = passed.iter().map(|drop| drop.catalog_id).collect();
    let snapshots: Vec<i64> = passed.iter().map(|drop| drop.snapshot_id).collect();
    sqlx::query_scalar!(
        r#"select s.drop_id as "drop_id!"
           from unnest($1::uuid[], $2::bigint[], $3::bigint[]) as s (drop_id, catalog_id, snapshot_id)
           where not exists (select from hog_data_file f
                             where f.catalog_id = s.catalog_id and f.end_snapshot = s.snapshot_id)"#,
        &drops,
        &catalogs,
        &snapshots
    )
    .fetch_all(connection)
    .await
}

/// Notes that no row of these drops is left, and the mark: the highest undrained id of the catalog's
/// queue, at the end of hog_file_removal_drain, the index of what is undrained. A statement before
/// this one must have found that no row is left ([`without_rows`]).
///
/// The purge deletes a row and queues its path in one transaction. A statement that finds no row has
/// thus a snapshot with all of the drop's queue rows in it, and so has every later one, as this is:
/// the drop's undrained rows are all at or below the mark. Its drained ones, whether or not the server
/// still keeps them, need no mark, for their objects are gone; and if none is undrained, all are gone.
pub async fn note_purged(
    connection: &mut Session,
    drop_ids: &[Uuid],
    now: UtcInstant,
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"update tailrace.drop_history h
           set purged_seen_at = $2, last_removal_id = coalesce((
             select removal_id from hog_file_removal
             where catalog_id = h.catalog_id and drained_at is null
             order by removal_id desc limit 1), 0)
           where h.drop_id = any ($1) and h.purged_seen_at is null and h.undone_seen_at is null"#,
        drop_ids,
        now.to_chrono()
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Notes up to ten times [`DROPS`] drops of each catalog as gone: those whose mark is below every undrained
/// row of the catalog's queue, so that none of these is the drop's.
///
/// An id is taken before its transaction commits, and a gap may be filled late: a row that appears at
/// or below the mark afterwards is another drop's, for ours were all there when the mark was read. It
/// may delay what is noted, and can never hasten it.
pub async fn note_gone(
    connection: &mut Session,
    catalogs: &[OpenCatalog],
    now: UtcInstant,
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"update tailrace.drop_history h set gone_seen_at = $3
           from (
             select d.drop_id
             from pg_catalog.unnest($1::bigint[]) as g (catalog_id)
             cross join lateral (
               select coalesce((
                 select removal_id from hog_file_removal
                 where catalog_id = g.catalog_id and drained_at is null
                 order by removal_id limit 1), 9223372036854775807) as first_left offset 0) as q
             cross join lateral (
               select drop_id from tailrace.drop_history
               where catalog_id = g.catalog_id and purged_seen_at is not null
                 and gone_seen_at is null and undone_seen_at is null
                 and last_removal_id < q.first_left
               order by last_removal_id limit $2) as d) as gone
           where h.drop_id = gone.drop_id and h.gone_seen_at is null
             and h.undone_seen_at is null"#,
        &ids(catalogs),
        DROPS * 10,
        now.to_chrono()
    )
    .execute(connection)
    .await?;
    Ok(())
}
