//! The time by which everything is decided: the database's clock, whatever TZ or the session's settings are.
//! This host's clock is read beside it, and serves only to find out whether the database's clock can be
//! trusted ([`clock_guard`](crate::rules::clock_guard)).

use std::sync::OnceLock;
use std::time::Duration;

use chrono::{DateTime, SubsecRound, Utc};
use uuid::Uuid;

use super::session::Session;
use crate::rules::clock_guard::{HostReading, Reading};
use crate::rules::instant::UtcInstant;

/// Clocks that differ by more than this are reported, and a database that is behind its own
/// snapshots by more than this drops nothing.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

/// Reads the database's clock and this host's at one moment.
pub async fn read(connection: &mut Session) -> sqlx::Result<Reading> {
    let before = host();
    let database = now(connection).await?;
    Ok(Reading::between(before, database, host(), process()))
}

/// This host's clocks; the time to the microsecond, as the database has it.
pub fn host() -> HostReading {
    HostReading { time: Utc::now().trunc_subsecs(6).into(), boot_millis: boot_millis() }
}

/// The random id of this process, within which CLOCK_BOOTTIME is compared.
pub fn process() -> Uuid {
    static PROCESS: OnceLock<Uuid> = OnceLock::new();
    *PROCESS.get_or_init(Uuid::new_v4)
}

#[cfg(target_os = "linux")]
fn boot_millis() -> Option<i64> {
    let read = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    read.tv_sec.checked_mul(1_000)?.checked_add(read.tv_nsec / 1_000_000)
}

#[cfg(not(target_os = "linux"))]
fn boot_millis() -> Option<i64> {
    None
}

/// The database's `clock_timestamp()`.
pub async fn now(connection: &mut Session) -> sqlx::Result<UtcInstant> {
    let now: DateTime<Utc> =
        sqlx::query_scalar!(r#"select pg_catalog.clock_timestamp() as "now!""#)
            .fetch_one(connection)
            .await?;
    Ok(now.into())
}

/// How far the database's clock is behind the newest `snapshot_time` among the catalog's last 1,000
/// snapshots, both read at one moment; `None` where it is not, or there is no snapshot. Those up to
/// `trusted_head` do not count: a person has accepted the clock since.
///
/// Not the head's time alone: where the clock went back, the head is older than what came before
/// it, and it is the newest time that the present must not lie behind.
pub async fn behind_newest_snapshot(
    connection: &mut Session,
    catalog_id: i64,
    trusted_head: Option<i64>,
) -> sqlx::Result<Option<Behind>> {
    let row = sqlx::query!(
        r#"select pg_catalog.clock_timestamp() as "now!",
                  pg_catalog.max(snapshot_time) as newest from (
             select snapshot_time from hog_snapshot where catalog_id = $1 and snapshot_id > $2
             order by snapshot_id desc limit 1000) as recent"#,
        catalog_id,
        trusted_head.unwrap_or(i64::MIN)
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

/// [`behind_newest_snapshot`], where it is by more than [`CLOCK_TOLERANCE`]: by such a clock nothing
/// is dropped.
pub async fn too_far_behind(
    connection: &mut Session,
    catalog_id: i64,
    trusted_head: Option<i64>,
) -> sqlx::Result<Option<Behind>> {
    let behind = behind_newest_snapshot(connection, catalog_id, trusted_head).await?;
    Ok(behind.filter(|behind| behind.by > CLOCK_TOLERANCE))
}

/// A clock that is behind what it has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behind {
    /// The database's time.
    pub now: UtcInstant,
    /// The newest `snapshot_time`.
    pub newest_snapshot: UtcInstant,
    pub by: Duration,
}
