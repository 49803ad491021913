//! Receipts of explicit drops, compared with the history and with the snapshots that they name.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::catalog::session::Session;

/// A receipt, and what agrees with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedReceipt {
    pub idempotency_key: Uuid,
    /// Its drop; `None` where it has none.
    pub drop_id: Option<Uuid>,
    /// The snapshot that it names.
    pub snapshot_id: i64,
    /// Whether it says that the drop made that snapshot.
    pub committed: bool,
    /// When it was written.
    pub created_at: DateTime<Utc>,
    /// Whether it says that nothing ended.
    pub is_empty: bool,
    /// The schema version that it says.
    pub schema_version: i64,
    /// The schema version of its snapshot; `None` where that is not there.
    pub snapshot_schema_version: Option<i64>,
    /// The table of its drop, by the drop history; `None` where that has no such drop.
    pub drop_table_id: Option<i64>,
    /// Whether that drop's counts and partitions are the receipt's.
    pub agrees: bool,
}

/// The next `most` receipts of a catalog after a key, in the order of the keys, by the primary key.
pub async fn compared_receipts(
    connection: &mut Session,
    catalog_id: i64,
    after: Uuid,
    most: i64,
) -> sqlx::Result<Vec<ComparedReceipt>> {
    sqlx::query_as!(
        ComparedReceipt,
        r#"select r.idempotency_key as "idempotency_key!", r.drop_id, r.snapshot_id as "snapshot_id!",
                  r.committed as "committed!", r.created_at as "created_at!",
                  (r.files_ended = 0 and r.delete_files_ended = 0 and r.records = 0
                   and r.bytes = 0 and r.ended = '[]') as "is_empty!",
                  r.schema_version as "schema_version!",
                  s.schema_version as "snapshot_schema_version?",
                  h.table_id as "drop_table_id?",
                  coalesce(r.files_ended = h.files_ended
                           and r.delete_files_ended = h.delete_files_ended
                           and r.records = h.records and r.bytes = h.bytes
                           and r.ended = h.partitions, false) as "agrees!"
           from (select * from tailrace.drop_receipt
                 where catalog_id = $1 and idempotency_key > $2
                 order by idempotency_key limit $3) as r
           left join lateral (
             select * from tailrace.drop_history
             where drop_id = r.drop_id offset 0) as h on true
           left join lateral (
             select schema_version from hog_snapshot
             where catalog_id = $1 and snapshot_id = r.snapshot_id offset 0) as s on true
           order by r.idempotency_key"#,
        catalog_id,
        after,
        most
    )
    .fetch_all(connection)
    .await
}

/// When the oldest drop of the drop history was made, over all catalogs: whatever was made after it has
/// not been purged for its age.
pub async fn oldest_drop(connection: &mut Session) -> sqlx::Result<Option<DateTime<Utc>>> {
    sqlx::query_scalar!("select pg_catalog.min(dropped_at) from tailrace.drop_history")
        .fetch_one(connection)
        .await
}
