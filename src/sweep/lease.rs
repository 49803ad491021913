//! The session that a catalog is worked on with.
//!
//! It holds the lease, a session advisory lock, and does all the work of the pass on that
//! catalog: whoever loses the session has lost the lease too, and cannot go on writing beside
//! the one who got it next. It is closed at the end, never pooled.

use std::time::{Duration, Instant};

use crate::catalog::commit_lock::{release_lease, try_lease};
use crate::catalog::connect::{Database, close};
use crate::catalog::deadline::within;
use crate::catalog::session::Session;
use crate::installation::{Unfit, check};

/// How long the lease of a session that broke may outlive it: the server needs a moment to see
/// that nobody is there any more, and up to 5 s where the session was in a drop's transaction.
const LINGERS: Duration = Duration::from_secs(7);
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// A session that has not answered by then is as good as broken.
const ANSWER: Duration = Duration::from_secs(5);

/// A session with the lease on one catalog.
pub struct LeasedSession<'a> {
    database: &'a Database,
    catalog_id: i64,
    connection: Session,
}

impl<'a> LeasedSession<'a> {
    /// Opens a session and takes the lease; `None` if another daemon has it.
    ///
    /// # Errors
    /// As those of [`Database::session`].
    pub async fn open(database: &'a Database, catalog_id: i64) -> anyhow::Result<Option<Self>> {
        let mut connection = database.session().await?;
        if try_lease(&mut connection, catalog_id).await? {
            return Ok(Some(LeasedSession { database, catalog_id, connection }));
        }
        close(connection).await;
        Ok(None)
    }

    /// The session.
    pub fn connection(&mut self) -> &mut Session {
        &mut self.connection
    }

    /// Makes sure that there is a session with the lease, after something broke it, and that our
    /// schema is still the one that this program works with: another one may have brought it up to
    /// date since. Waits a few seconds for a lease that is still held, for that is most likely our
    /// own broken session's; once it is ours, whatever that session had in hand is committed or
    /// rolled back.
    ///
    /// # Errors
    /// The database is away, another daemon took the lease in between, or [`Unfit`].
    pub async fn reestablish(&mut self) -> anyhow::Result<()> {
        match within(ANSWER, check(&mut self.connection, &self.database.schema)).await {
            Ok(()) => return Ok(()),
            Err(error) if error.is::<Unfit>() => return Err(error),
            Err(_) => {}
        }
        let mut connection = self.database.session().await?;
        let since = Instant::now();
        while !try_lease(&mut connection, self.catalog_id).await? {
            if since.elapsed() > LINGERS {
                close(connection).await;
                anyhow::bail!(
                    "the session was lost, and another daemon has taken over the catalog"
                );
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        self.connection = connection;
        Ok(())
    }

    /// Gives the lease back, so that it is free when this returns, and ends the session.
    pub async fn close(mut self) {
        if let Err(error) = release_lease(&mut self.connection, self.catalog_id).await {
            // A broken session; its lease goes with it.
            tracing::debug!(%error, "the lease could not be given back");
        }
        close(self.connection).await;
    }
}
