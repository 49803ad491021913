//! What time it is. Only the database is asked: no host's clock, TZ or session setting counts.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::instant::UtcInstant;

/// The database's `clock_timestamp()`.
pub async fn now(connection: &mut PgConnection) -> sqlx::Result<UtcInstant> {
    let now: DateTime<Utc> =
        sqlx::query_scalar!(r#"select pg_catalog.clock_timestamp() as "now!""#)
            .fetch_one(connection)
            .await?;
    Ok(now.into())
}

/// How far the database's clock is behind the newest `snapshot_time` among the catalog's last 1,000
/// snapshots, both read at one moment; `None` where it is not, or there is no snapshot.
///
/// Not the head's time alone: where the clock went back, the head is older than what came before
/// it, and it is the newest time that the present must not lie behind.
pub async fn behind_newest_snapshot(
    connection: &mut PgConnection,
    catalog_id: i64,
) -> sqlx::Result<Option<Behind>> {
    let row = sqlx::query!(
        r#"select pg_catalog.clock_timestamp() as "now!",
                  pg_catalog.max(snapshot_time) as newest from (
             select snapshot_time from hog_snapshot where catalog_id = $1
             order by snapshot_id desc limit 1000) as recent"#,
        catalog_id
    )
    .fetch_one(connection)
    .await?;
    let now = UtcInstant::from(row.now);
    Ok(row.newest.map(UtcInstant::from).filter(|newest| *newest > now).map(|newest| Behind {
        now,
        newest_snapshot: newest,
        by: newest.distance(now),
    }))
}

/// A clock that is behind what it has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behind {
    /// The database's time.
    pub now: UtcInstant,
    /// The newest `snapshot_time`.
    pub newest_snapshot: UtcInstant,
    /// The distance.
    pub by: std::time::Duration,
}
