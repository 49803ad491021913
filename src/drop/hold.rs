//! Holds the commit lock: one transaction, from the request for the lock to COMMIT or rollback.
//!
//! The limits of a hold are set in the server before the lock is requested, or in the statement
//! that acquires it. So a client that is stopped or disconnected while it holds the lock loses it
//! within seconds.

use std::time::{Duration, Instant};

use sqlx::AssertSqlSafe;

use super::request::Limits;
use crate::catalog::commit_lock::{HoldBounds, acquire};
use crate::catalog::errors::Failure;
use crate::catalog::session::{Session, Transaction};

/// What holds have cost so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// From asking for the lock until it was granted or given up; the last try counts.
    pub wait: Duration,
    /// How long it was held, tries that were rolled back included.
    pub hold: Duration,
}

/// The commit lock of a catalog, held by an open READ COMMITTED transaction.
pub struct HeldLock<'a> {
    transaction: Transaction<'a>,
    granted: Instant,
}

impl<'a> HeldLock<'a> {
    /// Begins a transaction and acquires the lock; `None` if that took longer than
    /// `limits.lock_timeout`. The session must not be in a transaction.
    pub async fn acquire(
        session: &'a mut Session,
        catalog_id: i64,
        limits: &Limits,
        times: &mut Times,
    ) -> sqlx::Result<Option<Self>> {
        // Explicitly READ COMMITTED: under a stricter default the first statement's snapshot would
        // hide what is committed while we wait for the lock. Nested loops by index are right for
        // any size of table; a hash join would read all of it under the lock.
        let begin = format!(
            "begin isolation level read committed read write; \
             set local idle_in_transaction_session_timeout = '5s'; \
             set local lock_timeout = {}; set local statement_timeout = {}; \
             set local enable_seqscan = off; set local enable_hashjoin = off; \
             set local enable_mergejoin = off",
            millis(limits.lock_timeout),
            millis(limits.lock_timeout + limits.max_hold),
        );
        // Only numbers are put in.
        let mut transaction = session.begin_with(AssertSqlSafe(begin)).await?;
        transaction.statements_take(limits.lock_timeout);
        let asked = Instant::now();
        let bounds = HoldBounds {
            row_lock_ms: millis(limits.row_lock_timeout),
            hold_ms: millis(limits.max_hold),
        };
        let locked = acquire(&mut transaction, catalog_id, bounds).await;
        times.wait = asked.elapsed();
        match locked {
            Ok(()) => {
                transaction.statements_take(limits.max_hold);
                Ok(Some(HeldLock { transaction, granted: Instant::now() }))
            }
            Err(error) => {
                roll_back(transaction).await;
                match Failure::of(&error) {
                    Failure::LockNotAvailable => Ok(None),
                    _ => Err(error),
                }
            }
        }
    }

    /// The session, inside the transaction.
    pub fn session(&mut self) -> &mut Session {
        &mut self.transaction
    }

    /// How long it has been held.
    pub fn length(&self) -> Duration {
        self.granted.elapsed()
    }

    /// Commits, and releases the lock. After an error the outcome is unknown.
    pub async fn commit(mut self, times: &mut Times) -> sqlx::Result<()> {
        // Replicas that confirm it included; what became of it is looked up afterwards.
        self.transaction.statements_take_default();
        let committed = self.transaction.commit().await;
        times.hold += self.granted.elapsed();
        committed
    }

    /// Rolls back, and releases the lock.
    pub async fn release(self, times: &mut Times) {
        roll_back(self.transaction).await;
        times.hold += self.granted.elapsed();
    }
}

/// If the connection is broken, the server rolls back by itself.
async fn roll_back(transaction: Transaction<'_>) {
    if let Err(error) = transaction.rollback().await {
        tracing::debug!(%error, "a rollback was not answered");
    }
}

/// As the server takes a timeout; never 0, which would be none.
pub fn millis(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX).clamp(1, i32::MAX.into())
}
