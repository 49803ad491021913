//! Rows and tables that somebody else has locked.

use sqlx::{Execute, Executor};

use super::session::Session;

/// The table of which each commit writes the catalog's row.
pub const CATALOGS: &str = "hog_catalog";

/// Of the tuples, the indexes of those that have a live file whose row somebody else has locked
/// at this moment; the rows of all the others are ours until the transaction ends. Waits for
/// nothing.
///
/// The commit lock must be held. It costs a second write to each row, so it is for a commit
/// that met a locked row before.
pub async fn busy_tuples(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    planned: &[(i64, i32)],
) -> sqlx::Result<Vec<i32>> {
    run_or_prepare(connection, catalog_id, table_id, planned, false).await
}

/// Has the server parse the statement of [`busy_tuples`], as [`super::commit_tail::prepare_write`] does.
pub async fn prepare_busy(connection: &mut Session) -> sqlx::Result<()> {
    run_or_prepare(connection, 0, 0, &[], true).await.map(|_| ())
}

async fn run_or_prepare(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    planned: &[(i64, i32)],
    only_prepare: bool,
) -> sqlx::Result<Vec<i32>> {
    let (ids, tuple_numbers): (Vec<i64>, Vec<i32>) = planned.iter().copied().unzip();
    let statement = sqlx::query_scalar!(
        r#"with planned as materialized (
             select $1::bigint as catalog_id, $2::bigint as table_id, true as live,
                    data_file_id, tuple_no
             from unnest($3::bigint[], $4::int[]) as p (data_file_id, tuple_no)
           ),
           locked as materialized (
             select f.data_file_id from planned p
             join hog_data_file f
               on f.catalog_id = p.catalog_id and f.data_file_id = p.data_file_id
             where f.table_id + 0 = p.table_id and (f.end_snapshot is null) = p.live
             for no key update of f skip locked
           )
           select distinct p.tuple_no as "tuple_no!" from planned p
           cross join lateral (
             select table_id, end_snapshot from hog_data_file
             where catalog_id = $1 and data_file_id = p.data_file_id offset 0) as f
           where f.table_id = $2 and f.end_snapshot is null
             and p.data_file_id not in (select data_file_id from locked)
           order by 1"#,
        catalog_id,
        table_id,
        &ids,
        &tuple_numbers
    );
    if only_prepare {
        connection.prepare(statement.sql()).await?;
        return Ok(Vec::new());
    }
    statement.fetch_all(connection).await
}

/// A table of ours or of the catalog that another session has locked against writers, or waits to: DDL
/// that waits for a long reader holds up all who come after it, and an index that is being made lets nobody
/// write. One that has the lock comes first. `None` where there is none any more.
pub async fn locked_table(connection: &mut Session) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!(
        r#"select case n.nspname when 'tailrace' then 'tailrace.'::text else '' end
                  || c.relname::text as "name!"
           from pg_catalog.pg_locks l
           join pg_catalog.pg_class c on c.oid = l.relation
           join pg_catalog.pg_namespace n on n.oid = c.relnamespace
           join pg_catalog.pg_database d on d.oid = l.database
           where d.datname = pg_catalog.current_database() and l.locktype = 'relation'
             and l.mode in ('AccessExclusiveLock', 'ExclusiveLock', 'ShareRowExclusiveLock', 'ShareLock')
             and l.pid <> pg_catalog.pg_backend_pid()
             and (n.nspname = 'tailrace'
                  or n.oid = (select h.relnamespace from pg_catalog.pg_class h
                              where h.oid = pg_catalog.to_regclass('hog_catalog')::oid))
           order by l.granted desc, 1 limit 1"#
    )
    .fetch_optional(connection)
    .await
}
