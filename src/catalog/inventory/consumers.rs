//! Who reads the server's feed (`hog_consumer_offset`), which only the server writes.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::catalog::session::Session;

/// An offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    /// As the consumer calls itself.
    pub consumer_id: String,
    /// The table that it reads.
    pub table_uuid: Uuid,
    /// Up to where it has read.
    pub committed_snapshot: i64,
    /// When it last said so.
    pub updated_at: DateTime<Utc>,
    /// The time of the oldest snapshot, at or after its offset, that is still there.
    pub committed_time: Option<DateTime<Utc>>,
}

/// The consumer that has read least of a table that is still in `hog_table`: where consumers are
/// heeded, the floor cannot pass it.
///
/// By hog_consumer_offset_retention_floor, from its lower end.
pub async fn slowest(connection: &mut Session, catalog_id: i64) -> sqlx::Result<Option<Consumer>> {
    sqlx::query_as!(
        Consumer,
        r#"select o.consumer_id, o.table_uuid, o.committed_snapshot, o.updated_at,
                  (select s.snapshot_time from hog_snapshot s
                   where s.catalog_id = $1 and s.snapshot_id >= o.committed_snapshot
                   order by s.snapshot_id limit 1) as committed_time
           from hog_consumer_offset o
           join hog_table t on t.catalog_id = o.catalog_id and t.table_uuid = o.table_uuid
           where o.catalog_id = $1
           order by o.committed_snapshot, o.consumer_id limit 1"#,
        catalog_id
    )
    .fetch_optional(connection)
    .await
}

/// The names of the consumers that have an offset for a table, by name, at most `most`.
pub async fn of_table(
    connection: &mut Session,
    catalog_id: i64,
    table_uuid: Uuid,
    most: i64,
) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar!(
        r#"select consumer_id from hog_consumer_offset
           where catalog_id = $1 and table_uuid = $2 order by consumer_id limit $3"#,
        catalog_id,
        table_uuid,
        most
    )
    .fetch_all(connection)
    .await
}
