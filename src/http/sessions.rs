//! The database sessions of requests. Each is opened for one request and closed after it. Sessions
//! are not pooled, so no request gets a session that is inside a transaction, that has settings of
//! another request, or that was opened with a password which was rotated since.
//!
//! The number of sessions is bounded. Requests that only read may use fewer of them than requests
//! that change something, so that readers never keep an operator from dropping a partition or from
//! stopping a policy. The number of reading requests that wait for a session is bounded too,
//! because each of them occupies a connection, and the number of connections is bounded.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::failure::Failure;
use crate::catalog::connect::{Access, Database, close};
use crate::catalog::session::Session;
use std::time::Instant;
use tokio::sync::Mutex;

/// An answer of the database counts for so long: nobody who asks more often makes it work more.
const FRESH: Duration = Duration::from_secs(1);

/// The database answers within this, or is not healthy.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Asks the database whether it answers, one at a time, with a session beside those of requests.
pub struct Probe {
    database: OpenDatabase,
    last: Mutex<Option<(Instant, bool)>>,
}

impl Probe {
    pub(super) fn new(database: OpenDatabase) -> Self {
        Probe { database, last: Mutex::new(None) }
    }

    pub(super) async fn answers(&self) -> bool {
        let mut last = self.last.lock().await;
        match *last {
            Some((at, answers)) if at.elapsed() < FRESH => answers,
            _ => {
                let asked = tokio::time::timeout(ANSWERS_WITHIN, self.ask()).await;
                let answers = matches!(asked, Ok(Ok(())));
                *last = Some((Instant::now(), answers));
                answers
            }
        }
    }

    async fn ask(&self) -> anyhow::Result<()> {
        // That it answers is all that is asked: who may work on it is another question.
        close((self.database)()?.unchecked(Access::ReadOnly).await?).await;
        Ok(())
    }
}

/// How to reach the database, as the configuration has it at the moment.
pub type OpenDatabase = Arc<dyn Fn() -> anyhow::Result<Database> + Send + Sync>;

/// The sessions of requests.
pub struct Sessions {
    database: OpenDatabase,
    permits: Arc<Semaphore>,
    /// How many of them may be had to look.
    looking: Arc<Semaphore>,
    /// How many may wait for one of those.
    waiting: Semaphore,
    patience: Duration,
}

/// The limits of the sessions of requests.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    pub sessions: usize,
    /// How many of them requests that only read may have.
    pub looking: usize,
    /// How many requests that only read may wait for a session.
    pub waiting: usize,
}

/// What a session is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// To read.
    Look,
    /// To change something, or to start work that does.
    Change,
}

/// A session of one request. It counts until it is closed or dropped.
pub struct RequestSession {
    pub connection: Session,
    _permit: OwnedSemaphorePermit,
    _looking: Option<OwnedSemaphorePermit>,
}

impl Sessions {
    /// At most `most` sessions at once. A request waits for a session for at most `patience`.
    pub fn new(database: OpenDatabase, most: Numbers, patience: Duration) -> Self {
        Sessions {
            database,
            permits: Arc::new(Semaphore::new(most.sessions)),
            looking: Arc::new(Semaphore::new(most.looking)),
            waiting: Semaphore::new(most.waiting),
            patience,
        }
    }

    /// Opens a session, once one may be opened.
    ///
    /// # Errors
    /// [`Failure::Unavailable`] where no session is free in time, too many requests wait for one,
    /// or the database cannot be reached;
    /// [`Problem::Unfit`](crate::explicit::problem::Problem::Unfit) where the schema `tailrace` is
    /// not the one that this program works with.
    pub async fn open(&self, to: Use) -> Result<RequestSession, Failure> {
        let permits = async {
            // First this one: whoever waits for it must hold none that others could use.
            let looking = match to {
                Use::Look => {
                    let _place = self.waiting.try_acquire().ok()?;
                    Some(self.looking.clone().acquire_owned().await.ok()?)
                }
                Use::Change => None,
            };
            Some((self.permits.clone().acquire_owned().await.ok()?, looking))
        };
        let Ok(Some((permit, looking))) = tokio::time::timeout(self.patience, permits).await else {
            return Err(Failure::Unavailable);
        };
        let database = (self.database)().map_err(|error| Failure::of_configuration(&error))?;
        let opened = database.session().await;
        let connection = opened.map_err(|error| Failure::of_session(&error))?;
        Ok(RequestSession { connection, _permit: permit, _looking: looking })
    }
}

impl Deref for RequestSession {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.connection
    }
}

impl DerefMut for RequestSession {
    fn deref_mut(&mut self) -> &mut Session {
        &mut self.connection
    }
}

impl RequestSession {
    /// Closes the session in an orderly way.
    pub async fn close(self) {
        close(self.connection).await;
    }
}
