//! The receipts of explicit drops (`tailrace.drop_receipt`), and whether the server has used a key.

use sqlx::types::Json;
use sqlx::{AssertSqlSafe, Execute, Executor};
use uuid::Uuid;

use super::drop_history::PartitionRow;
use super::inventory::owners::server_has_table;
use super::live_file::Counts;
use super::restore::{compared_after, restored, undone};
use super::session::Session;
use super::tuples::TupleOfSpec;

/// A tuple as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RequestedTuple {
    /// The spec, whether named or the live one of that time.
    pub spec_id: i64,
    /// The texts by key index.
    pub partition_values: Vec<Option<String>>,
}

/// A receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptRow {
    /// What the request said, hashed.
    pub fingerprint: Vec<u8>,
    /// The live spec of that time: what a request without `spec_id` meant.
    pub default_spec_id: Option<i64>,
    /// The requested tuples in order; `None` for a truncate.
    pub request: Option<Vec<RequestedTuple>>,
    /// The snapshot made, or the head where nothing matched.
    pub snapshot_id: i64,
    /// The schema version at it.
    pub schema_version: i64,
    /// Whether a snapshot was made.
    pub committed: bool,
    /// Over all of its tuples.
    pub counts: Counts,
    /// What each tuple gave; those that gave nothing are left out.
    pub ended: Vec<(TupleOfSpec, Counts)>,
    /// A restore of the catalog took the drop back, noted or not.
    pub is_undone: bool,
}

/// What a receipt says about its request.
#[derive(Debug, Clone, Copy)]
pub struct NewReceipt<'a> {
    pub idempotency_key: Uuid,
    /// What the request said, hashed.
    pub fingerprint: &'a [u8],
    /// The live spec.
    pub default_spec_id: Option<i64>,
    /// The requested tuples in order; `None` for a truncate.
    pub request: Option<&'a [RequestedTuple]>,
}

/// What a receipt says about the result of its request.
#[derive(Debug, Clone, Copy)]
pub struct CameOfIt {
    pub catalog_id: i64,
    /// The head under the lock, which is the answer where nothing matched.
    pub head: i64,
    /// The schema version after it.
    pub schema_version: i64,
    /// The drop that was written in the same transaction, if anything matched.
    pub drop_id: Option<Uuid>,
}

/// Finds a receipt, and what became of its drop by the catalog of this moment: a replay does not wait
/// for a pass to note that.
///
/// A committed receipt without a drop is of one that was purged from the history before receipts kept
/// them: its only trace then is its snapshot, and where the catalog was restored to before that, it
/// is undone.
pub async fn find(
    connection: &mut Session,
    catalog_id: i64,
    idempotency_key: Uuid,
) -> sqlx::Result<Option<ReceiptRow>> {
    let row = sqlx::query!(
        r#"select fingerprint, default_spec_id, request as "request: Json<Vec<RequestedTuple>>",
                  snapshot_id, schema_version, committed, files_ended, delete_files_ended,
                  records, bytes, ended as "ended: Json<Vec<PartitionRow>>", drop_id
           from tailrace.drop_receipt where catalog_id = $1 and idempotency_key = $2"#,
        catalog_id,
        idempotency_key
    )
    .fetch_optional(&mut *connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let is_undone = match row.committed {
        true => is_undone(connection, catalog_id, row.drop_id, row.snapshot_id).await?,
        false => false,
    };
    Ok(Some(ReceiptRow {
        fingerprint: row.fingerprint,
        default_spec_id: row.default_spec_id,
        request: row.request.map(|request| request.0),
        snapshot_id: row.snapshot_id,
        schema_version: row.schema_version,
        committed: row.committed,
        counts: Counts {
            files: row.files_ended,
            delete_files: row.delete_files_ended,
            records: row.records,
            bytes: row.bytes,
        },
        ended: row.ended.0.into_iter().filter_map(PartitionRow::into_tuple).collect(),
        is_undone,
    }))
}

async fn is_undone(
    connection: &mut Session,
    catalog_id: i64,
    drop_id: Option<Uuid>,
    snapshot_id: i64,
) -> sqlx::Result<bool> {
    let restored = restored(connection, catalog_id).await?;
    match drop_id {
        Some(drop_id) => {
            let undone = undone(connection, catalog_id, restored.as_ref(), &[drop_id]).await?;
            Ok(undone.contains(&drop_id))
        }
        None => Ok(snapshot_id > compared_after(restored.as_ref())),
    }
}

/// Writes a receipt, in the transaction of its drop and under the commit lock. What the drop gave
/// is taken from its history row by the database: however many tuples, nothing large passes
/// through the client while it holds the lock.
pub async fn write(
    connection: &mut Session,
    new: &NewReceipt<'_>,
    came_of_it: CameOfIt,
) -> sqlx::Result<()> {
    write_or_prepare(connection, new, came_of_it, false).await
}

/// Has the server parse the statement of [`write()`], as [`super::commit_tail::prepare_write`] does.
pub async fn prepare_write(connection: &mut Session) -> sqlx::Result<()> {
    let nothing = NewReceipt {
        idempotency_key: Uuid::nil(),
        fingerprint: &[],
        default_spec_id: None,
        request: None,
    };
    let nowhere = CameOfIt { catalog_id: 0, head: 0, schema_version: 0, drop_id: None };
    write_or_prepare(connection, &nothing, nowhere, true).await
}

async fn write_or_prepare(
    connection: &mut Session,
    new: &NewReceipt<'_>,
    came_of_it: CameOfIt,
    only_prepare: bool,
) -> sqlx::Result<()> {
    let statement = sqlx::query!(
        r#"insert into tailrace.drop_receipt (catalog_id, idempotency_key, fingerprint,
               default_spec_id, request, snapshot_id, schema_version, committed, files_ended,
               delete_files_ended, records, bytes, ended, drop_id)
           select $1, $2, $3, $4, $5, coalesce(h.snapshot_id, $6), $7, h.snapshot_id is not null,
                  coalesce(h.files_ended, 0), coalesce(h.delete_files_ended, 0),
                  coalesce(h.records, 0), coalesce(h.bytes, 0), coalesce(h.partitions, '[]'),
                  h.drop_id
           from (select) as always
           left join tailrace.drop_history h on h.drop_id = $8"#,
        came_of_it.catalog_id,
        new.idempotency_key,
        new.fingerprint,
        new.default_spec_id,
        new.request.map(Json) as _,
        came_of_it.head,
        came_of_it.schema_version,
        came_of_it.drop_id
    );
    if only_prepare {
        connection.prepare(statement.sql()).await?;
    } else {
        statement.execute(connection).await?;
    }
    Ok(())
}

/// Whether a commit of the server's own has used the key. Such receipts are purged after the larger of 7 days
/// and twice the catalog's snapshot retention, or never, so that "no" proves nothing; and servers before V7
/// have none.
pub async fn used_by_server(
    connection: &mut Session,
    catalog_id: i64,
    idempotency_key: Uuid,
) -> sqlx::Result<bool> {
    if !server_has_table(connection, "hog_commit_receipt").await? {
        return Ok(false);
    }
    // Not checked at compile time: older servers lack the table.
    let statement = "select exists (select from hog_commit_receipt \
                     where catalog_id = $1 and idempotency_key = $2)";
    sqlx::query_scalar(AssertSqlSafe(statement))
        .bind(catalog_id)
        .bind(idempotency_key)
        .fetch_one(connection)
        .await
}

/// Purges, of all catalogs but these, receipts older than `keep`, at most `limit` of them; returns how many.
/// Those of a catalog that is gone are no exception: while it is being restored a drop may be asked for
/// again. After a refused clock the age counts from when it was accepted again: a receipt of a clock that
/// was behind looks older than it is, and its key must still be answered.
pub async fn purge(
    connection: &mut Session,
    keep: std::time::Duration,
    but: &[i64],
    limit: i64,
) -> sqlx::Result<u64> {
    let purged = sqlx::query!(
        r#"delete from tailrace.drop_receipt r using (
             select catalog_id, idempotency_key from tailrace.drop_receipt o
             where o.catalog_id <> all ($3::bigint[])
               and o.created_at
                     < pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $1)
               and not exists (
                 select from tailrace.clock_memory m
                 where m.catalog_id = o.catalog_id and m.epoch > 0::bigint
                   and m.epoch_began >= pg_catalog.clock_timestamp()
                                        - pg_catalog.make_interval(secs => $1))
             limit $2) as old
           where r.catalog_id = old.catalog_id and r.idempotency_key = old.idempotency_key"#,
        keep.as_secs_f64(),
        limit,
        but
    )
    .execute(connection)
    .await?;
    Ok(purged.rows_affected())
}
