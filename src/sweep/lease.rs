//! The session that a catalog is worked on with.
//!
//! It holds the lease, a session advisory lock, and does all the work of the pass on that
//! catalog: whoever loses the session has lost the lease too, and cannot go on writing beside
//! the one who got it next. It is closed at the end, never pooled.

use sqlx::{Connection, PgConnection};

use crate::catalog::commit_lock::{release_lease, try_lease};
use crate::catalog::connect::{Database, close};

/// A session with the lease on one catalog.
pub struct LeasedSession<'a> {
    database: &'a Database,
    catalog_id: i64,
    connection: PgConnection,
}

impl<'a> LeasedSession<'a> {
    /// Opens a session and takes the lease; `None` if another daemon has it.
    pub async fn open(database: &'a Database, catalog_id: i64) -> sqlx::Result<Option<Self>> {
        let mut connection = database.session().await?;
        if try_lease(&mut connection, catalog_id).await? {
            return Ok(Some(LeasedSession { database, catalog_id, connection }));
        }
        close(connection).await;
        Ok(None)
    }

    /// The session.
    pub fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    /// Makes sure that there is a session with the lease, after something broke it.
    ///
    /// # Errors
    /// The database is away, or another daemon took the lease in between.
    pub async fn reestablish(&mut self) -> anyhow::Result<()> {
        if self.connection.ping().await.is_ok() {
            return Ok(());
        }
        match Self::open(self.database, self.catalog_id).await? {
            Some(session) => {
                *self = session;
                Ok(())
            }
            None => {
                anyhow::bail!("the session was lost, and another daemon has taken over the catalog")
            }
        }
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
