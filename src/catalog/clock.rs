//! What time it is. Only the database is asked: no host's clock, TZ or session setting counts.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::instant::UtcInstant;

/// The database's `clock_timestamp()`.
pub async fn now(connection: &mut PgConnection) -> sqlx::Result<UtcInstant> {
    let now: DateTime<Utc> =
        sqlx::query_scalar!(r#"select clock_timestamp() as "now!""#).fetch_one(connection).await?;
    Ok(now.into())
}

/// The newest `snapshot_time` among the catalog's last 1,000 snapshots; `None` without any.
///
/// Not the head's alone: where the clock went back, the head is older than what came before
/// it, and it is the newest time that the present must not lie behind.
pub async fn newest_snapshot_time(
    connection: &mut PgConnection,
    catalog_id: i64,
) -> sqlx::Result<Option<UtcInstant>> {
    let newest = sqlx::query_scalar!(
        r#"select max(snapshot_time) from (
             select snapshot_time from hog_snapshot where catalog_id = $1
             order by snapshot_id desc limit 1000) as recent"#,
        catalog_id
    )
    .fetch_one(connection)
    .await?;
    Ok(newest.map(UtcInstant::from))
}
