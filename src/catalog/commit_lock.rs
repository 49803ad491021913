//! The commit lock, and the lease that keeps two daemons off one catalog.

use chrono::{DateTime, Utc};

use super::session::Session;

/// The server's advisory lock class for commits; 4740872 to 4740874 are its other ones.
const COMMIT_CLASS: i64 = 4_740_871;
/// Our own class for the lease, far from the server's.
const LEASE_CLASS: i64 = 7_232_481;

/// The key of the catalog's commit lock, exactly as the contract computes it ("The commit
/// tail"): another key would serialise with nobody.
pub fn commit_key(catalog_id: i64) -> i64 {
    key(COMMIT_CLASS, catalog_id)
}

/// The key of our lease on the catalog.
pub fn lease_key(catalog_id: i64) -> i64 {
    key(LEASE_CLASS, catalog_id)
}

fn key(class: i64, catalog_id: i64) -> i64 {
    (class << 32) | (catalog_id & 0xffff_ffff)
}

/// What the server bounds once it has granted the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldBounds {
    /// `drop.row_lock_timeout`: no lock of a row or a table is waited for longer.
    pub row_lock_ms: i64,
    /// `drop.max_hold`: no statement runs longer, nor for much longer the rest of the transaction where the
    /// server can bound that (from Postgres 17 on; SQLSTATE 25P04 then, and the session is over).
    pub hold_ms: i64,
}

/// What the server grants a transaction beyond `hold_ms`. Statements that are too long are cancelled by
/// then, which costs no session and no lease; this is for a client from which nothing more is heard.
const BEYOND_HOLD_MS: i64 = 500;

/// Takes the commit lock until the transaction ends; waits as long as the transaction's
/// `lock_timeout` allows (SQLSTATE 55P03 then). From the grant on the bounds hold: the results of a
/// row are worked out from left to right, so they are set when the lock is there, and a wait that has
/// begun keeps the limit with which it began. So does a transaction: the limit that it may have got at its
/// beginning, from the database or the role, is taken off first.
///
/// A statement of its own, so that no snapshot is taken before the wait: whoever reads after
/// it under READ COMMITTED sees all that was committed before the lock was granted.
pub async fn acquire(
    connection: &mut Session,
    catalog_id: i64,
    bounds: HoldBounds,
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"select pg_catalog.pg_advisory_xact_lock($1) as "locked!: ()",
                  pg_catalog.set_config('lock_timeout', $2::bigint::text, true) as "row_lock",
                  pg_catalog.set_config('statement_timeout', $3::bigint::text, true) as "statement",
                  case when pg_catalog.current_setting('server_version_num')::int >= 170000
                       then pg_catalog.set_config('transaction_timeout', '0', true)
                            || pg_catalog.set_config('transaction_timeout', $4::bigint::text, true)
                  end as "transaction""#,
        commit_key(catalog_id),
        bounds.row_lock_ms,
        bounds.hold_ms,
        bounds.hold_ms.saturating_add(BEYOND_HOLD_MS).min(i32::MAX.into())
    )
    .fetch_one(connection)
    .await?;
    Ok(())
}

/// Which session has a lease: its process on the server. The id of one that is gone is given out again, so
/// the time at which it began is part of it; `None` where the role may not see that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// `pg_backend_pid()`.
    pub pid: i32,
    /// `pg_stat_activity.backend_start`.
    pub began: Option<DateTime<Utc>>,
}

/// Tries to take the lease on a catalog for the life of this session; never waits. Which session that is,
/// where it got it.
///
/// It costs one session per catalog in work: the lock ends with the session, so the session
/// must not go back to a pool where it would keep the catalog from every other daemon.
pub async fn try_lease(connection: &mut Session, catalog_id: i64) -> sqlx::Result<Option<Holder>> {
    let row = sqlx::query!(
        r#"select case when pg_catalog.pg_try_advisory_lock($1)
                       then pg_catalog.pg_backend_pid() end as "pid?",
                  (select a.backend_start from pg_catalog.pg_stat_activity a
                   where a.pid = pg_catalog.pg_backend_pid()) as "began?""#,
        lease_key(catalog_id)
    )
    .fetch_one(connection)
    .await?;
    Ok(row.pid.map(|pid| Holder { pid, began: row.began }))
}

/// Ends this session, if it is the one that has the lease on the catalog: one of
/// ours that was lost, and of which the server does not know that. Another one that holds the lease is
/// left alone.
///
/// # Errors
/// As the driver reports them. The session must be of the same role, or this role may not end it.
pub async fn end_lost_holder(
    connection: &mut Session,
    catalog_id: i64,
    holder: Holder,
) -> sqlx::Result<()> {
    sqlx::query_scalar!(
        r#"select pg_catalog.pg_terminate_backend(l.pid)
           from pg_catalog.pg_locks l
           join pg_catalog.pg_stat_activity a on a.pid = l.pid and a.backend_start = $3
           where l.locktype = 'advisory' and l.granted and l.objsubid = 1 and l.pid = $2
             and l.database = (select d.oid from pg_catalog.pg_database d
                               where d.datname = pg_catalog.current_database())
             and (l.classid::bigint << 32) | l.objid::bigint = $1"#,
        lease_key(catalog_id),
        holder.pid,
        holder.began
    )
    .fetch_all(connection)
    .await?;
    Ok(())
}

/// Gives the lease back. Without it the lease ends with the session too, but only once the
/// server has noticed that the session is over, and whoever asks before is told that it is held.
pub async fn release_lease(connection: &mut Session, catalog_id: i64) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select pg_catalog.pg_advisory_unlock($1) as "released!""#,
        lease_key(catalog_id)
    )
    .fetch_one(connection)
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_contracts() {
        assert_eq!(commit_key(1), 20_361_885_899_554_817);
        assert_eq!(commit_key(1), 4_740_871 * 4_294_967_296 + 1);
        assert_eq!(commit_key((1 << 32) + 5), commit_key(5));
        assert_ne!(commit_key(1), lease_key(1));
    }
}
