//! The maintenance state of a catalog: its retention and floor, the queue of objects to delete, its snapshots.

use chrono::{DateTime, Utc};

use crate::catalog::session::Session;

/// What bounds the life of ended files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// The database's time of this reading.
    pub now: DateTime<Utc>,
    /// How long snapshots stay; `None` for ever.
    pub seconds: Option<i64>,
    /// Whether slow consumers hold the floor.
    pub consumer_floor: bool,
    /// The oldest snapshot that can be read.
    pub floor: i64,
    /// The newest snapshot.
    pub head: i64,
    /// The time of the oldest snapshot that is there.
    pub oldest_time: Option<DateTime<Utc>>,
}

/// Reads it, by primary keys alone; `None` if the catalog is gone.
pub async fn retention(
    connection: &mut Session,
    catalog_id: i64,
) -> sqlx::Result<Option<Retention>> {
    sqlx::query_as!(
        Retention,
        r#"select pg_catalog.clock_timestamp() as "now!", c.snapshot_retention_seconds as seconds,
                  c.consumer_floor, c.earliest_snapshot_id as floor, c.last_snapshot_id as head,
                  (select s.snapshot_time from hog_snapshot s
                   where s.catalog_id = $1 and s.snapshot_id >= c.earliest_snapshot_id
                   order by s.snapshot_id limit 1) as oldest_time
           from hog_catalog c where c.catalog_id = $1"#,
        catalog_id
    )
    .fetch_optional(connection)
    .await
}

/// How many of the newest drained rows are looked at for the pace of cleanup.
const DRAINED_LOOKED_AT: i64 = 20_000;

/// What cleanup drained within the last hour, as far as it is seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Drained {
    pub rows: i64,
    /// From the oldest of them until now.
    pub seconds: f64,
}

/// What of the catalog's queue was drained within the last hour.
///
/// Nothing indexes `drained_at`. The queue is drained from its lower end, so the newest drained
/// rows lie right below the first undrained one: the primary key is read from there downwards,
/// for a bounded number of rows, those of other catalogs among them. What was tried in vain stays at the
/// lower end while the others go, so the first one counts that was not tried yet, of the first thousand
/// undrained ones. They come
/// from hog_file_removal_drain: with `catalog_id = $1` the order by `removal_id` alone would do, and
/// the planner would take the primary key, past every row that was ever drained.
pub async fn drained_of_late(connection: &mut Session, catalog_id: i64) -> sqlx::Result<Drained> {
    sqlx::query_as!(
        Drained,
        r#"select pg_catalog.count(*) as "rows!",
                  coalesce(extract(epoch from
                    pg_catalog.clock_timestamp() - pg_catalog.min(drained_at)), 0)::float8
                    as "seconds!"
           from (select catalog_id, drained_at from hog_file_removal
                 where removal_id < coalesce(
                   (select removal_id from (
                      select catalog_id, removal_id, attempts from hog_file_removal
                      where catalog_id between $1 and $1 and drained_at is null
                      order by catalog_id, removal_id limit 1000) as first_rows
                    where attempts = 0 order by catalog_id, removal_id limit 1),
                   (select removal_id from hog_file_removal
                    where catalog_id between $1 and $1 and drained_at is null
                    order by catalog_id, removal_id limit 1), 9223372036854775807)
                 order by removal_id desc limit $2) as below
           where catalog_id = $1
             and drained_at > pg_catalog.clock_timestamp() - interval '1 hour'"#,
        catalog_id,
        DRAINED_LOOKED_AT
    )
    .fetch_one(connection)
    .await
}

/// How many of the newest snapshots are looked at.
const SNAPSHOTS_LOOKED_AT: i64 = 5_000;

/// The snapshots of the last hour, as far as they are seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Churn {
    pub snapshots: i64,
    /// Those with the given author.
    pub ours: i64,
    /// The time that they cover: an hour, or less where there were more than were looked at.
    pub seconds: f64,
}

/// Counts them, by the primary key from its upper end.
pub async fn churn(connection: &mut Session, catalog_id: i64, author: &str) -> sqlx::Result<Churn> {
    sqlx::query_as!(
        Churn,
        r#"select pg_catalog.count(*) as "snapshots!",
                  pg_catalog.count(*) filter (where author = $2) as "ours!",
                  case when pg_catalog.count(*) < $3 then 3600 else
                    greatest(extract(epoch from
                      pg_catalog.clock_timestamp() - pg_catalog.min(snapshot_time)), 1)
                  end::float8 as "seconds!"
           from (select snapshot_time, author from hog_snapshot where catalog_id = $1
                 order by snapshot_id desc limit $3) as newest
           where snapshot_time > pg_catalog.clock_timestamp() - interval '1 hour'"#,
        catalog_id,
        author,
        SNAPSHOTS_LOOKED_AT
    )
    .fetch_one(connection)
    .await
}
