//! The session in which a pass works on a catalog.
//!
//! It holds the lease, which is a session advisory lock, and does all the work of the pass on that catalog. A
//! pass that loses the session loses the lease too, so it cannot write beside the daemon that gets the lease
//! next. The session is closed at the end, whatever the server answers about the lease, and is never pooled.

use std::time::{Duration, Instant};

use crate::catalog::commit_lock::{Holder, end_lost_holder, release_lease, try_lease};
use crate::catalog::connect::{Database, close};
use crate::catalog::session::Session;
use crate::events;
use crate::installation::{Unfit, check};

/// How long the lease of a session that broke, or that was ended, may outlive it: the server needs a
/// moment to see that, and up to 5 s where the session was in a drop's transaction.
const LINGERS: Duration = Duration::from_secs(7);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A session with the lease on one catalog.
pub struct LeasedSession<'a> {
    database: &'a Database,
    catalog_id: i64,
    connection: Session,
    /// Which one it is to the server.
    holder: Holder,
    /// Grows with each session that had to be opened anew.
    number: u64,
}

impl<'a> LeasedSession<'a> {
    /// Opens a session and takes the lease; `None` if another daemon has it.
    ///
    /// # Errors
    /// As those of [`Database::session`].
    pub async fn open(database: &'a Database, catalog_id: i64) -> anyhow::Result<Option<Self>> {
        let mut connection = database.session().await?;
        if let Some(holder) = try_lease(&mut connection, catalog_id).await? {
            return Ok(Some(LeasedSession { database, catalog_id, connection, holder, number: 0 }));
        }
        close(connection).await;
        Ok(None)
    }

    /// Which of its sessions this is. What was looked up in an earlier one may not be true any more: another
    /// daemon may have had the lease in between.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The session.
    pub fn connection(&mut self) -> &mut Session {
        &mut self.connection
    }

    /// Makes sure that there is a session with the lease, after something broke it, and that our
    /// schema is still the one that this program works with: another one may have brought it up to
    /// date since.
    ///
    /// Where the network fell silent the server may know nothing of that for minutes, and keeps the
    /// lost session with its lease: that one is ended. Then waits a few seconds for a lease that is
    /// still held. Once it is ours, whatever the lost session had in hand is committed or rolled back.
    ///
    /// # Errors
    /// The database is away, another daemon took the lease in between, or [`Unfit`].
    pub async fn reestablish(&mut self) -> anyhow::Result<()> {
        match check(&mut self.connection, &self.database.schema).await {
            Ok(()) => return Ok(()),
            Err(error) if error.is::<Unfit>() => return Err(error),
            Err(_) => {}
        }
        let mut connection = self.database.session().await?;
        // A right that was taken away is no reason to give up: most servers notice by themselves.
        if let Err(error) = end_lost_holder(&mut connection, self.catalog_id, self.holder).await {
            tracing::debug!(%error, "a lost session was not ended");
        }
        let since = Instant::now();
        loop {
            if let Some(holder) = try_lease(&mut connection, self.catalog_id).await? {
                (self.connection, self.holder) = (connection, holder);
                self.number += 1;
                return Ok(());
            }
            if since.elapsed() > LINGERS {
                close(connection).await;
                anyhow::bail!(
                    "the session was lost, and another daemon has taken over the catalog"
                );
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Gives the lease back, so that it is free when this returns, and ends the session.
    pub async fn close(mut self) {
        match release_lease(&mut self.connection, self.catalog_id).await {
            Ok(true) => {}
            // Somebody else worked on the catalog beside us, or could have.
            Ok(false) => tracing::warn!(
                event = events::LEASE_LOST,
                catalog_id = self.catalog_id,
                "A session did not have its lease any more when it was to give it back"
            ),
            // A broken session; its lease goes with it.
            Err(error) => tracing::debug!(%error, "the lease could not be given back"),
        }
        close(self.connection).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::connect::CONNECTION_CHECK;
    use crate::catalog::keepalive::{COUNT, IDLE, INTERVAL, USER_TIMEOUT};
    use crate::catalog::session::Patience;
    use crate::config::{Config, LoadOptions};

    /// What a network that fell silent has left behind is over within two minutes, with the limits that
    /// nobody has changed: whoever begins then meets nothing of it.
    #[test]
    fn all_is_over_within_two_minutes() {
        let two_minutes = Duration::from_secs(120);
        let config = Config::load(&LoadOptions::default()).expect("the built-in configuration");
        let Patience { statement, slack } = Patience::default();

        // Our side: an answer that does not come, another session, and its lease.
        let connect = config.connect_timeout();
        assert!(statement + slack + connect + LINGERS <= two_minutes);

        // The server's: a session that rests or works, then one whose last answer goes nowhere.
        let unanswered = (IDLE + INTERVAL * COUNT).max(USER_TIMEOUT);
        assert!(unanswered + CONNECTION_CHECK <= two_minutes);
        assert!(statement + USER_TIMEOUT <= two_minutes);
        // A session that rests or works is gone before its owner gives it up.
        assert!(unanswered + CONNECTION_CHECK < statement + slack);

        // The commit lock: the longest wait for it, a statement under it, and 5 s in which nobody ends
        // the transaction.
        let wait = config.drop.lock_timeout.get().max(config.sweep.lock_timeout.get());
        let hold = config.drop.max_hold.get() + Duration::from_secs(5);
        assert!(wait + hold <= two_minutes);
    }
}
