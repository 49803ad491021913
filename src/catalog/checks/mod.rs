//! What `verify` asks of the catalog. Only reads, takes no lock, and each statement is bounded by
//! what it is given: a piece of an index, or a list of keys.

pub mod drops;
pub mod leases;
pub mod property;
pub mod receipts;
pub mod replaced;
pub mod snapshots;
pub mod there;
pub mod vectors;

use chrono::{DateTime, Utc};

use crate::catalog::session::Session;

/// A catalog at the moment that a verification sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogState {
    /// `hog_catalog.last_snapshot_id`.
    pub head: i64,
    /// `hog_catalog.earliest_snapshot_id`: file rows that ended at or below it may be purged.
    pub floor: i64,
    /// When the snapshot at the floor was made; `None` where the floor has never moved.
    pub floor_time: Option<DateTime<Utc>>,
    /// The database's time.
    pub now: DateTime<Utc>,
}

/// Reads the catalog's counters; `None` if it is gone. As the first statement of a REPEATABLE READ
/// transaction it is also what fixes the moment.
pub async fn catalog_state(
    connection: &mut Session,
    catalog_id: i64,
) -> sqlx::Result<Option<CatalogState>> {
    sqlx::query_as!(
        CatalogState,
        r#"select last_snapshot_id as head, earliest_snapshot_id as floor,
                  case when earliest_snapshot_time between '0001-01-01' and '9999-12-31'
                    then earliest_snapshot_time end as floor_time,
                  pg_catalog.clock_timestamp() as "now!"
           from hog_catalog where catalog_id = $1"#,
        catalog_id
    )
    .fetch_optional(connection)
    .await
}

/// When a data file began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begin {
    pub data_file_id: i64,
    /// The first snapshot that it is visible at.
    pub begin_snapshot: i64,
    /// When that was made; `None` where expiry has deleted it, and the floor is past it then.
    pub at: Option<DateTime<Utc>>,
}

/// When these files began, each by its primary key, and its snapshot by its own.
pub async fn begins(
    connection: &mut Session,
    catalog_id: i64,
    file_ids: &[i64],
) -> sqlx::Result<Vec<Begin>> {
    sqlx::query_as!(
        Begin,
        r#"select f.data_file_id as "data_file_id!", f.begin_snapshot as "begin_snapshot!",
                  s.snapshot_time as "at?"
           from pg_catalog.unnest($2::bigint[]) as wanted (data_file_id)
           cross join lateral (
             select data_file_id, begin_snapshot from hog_data_file
             where catalog_id = $1 and data_file_id = wanted.data_file_id offset 0) as f
           left join lateral (
             select snapshot_time from hog_snapshot
             where catalog_id = $1 and snapshot_id = f.begin_snapshot
               and snapshot_time between '0001-01-01' and '9999-12-31') as s on true"#,
        catalog_id,
        file_ids
    )
    .fetch_all(connection)
    .await
}
