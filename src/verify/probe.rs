//! One running check: its savepoint, its budget, what it finds.

use std::time::{Duration, Instant};

use crate::catalog::errors::{Failure, describe};
use crate::catalog::session::Session;

/// What a statement may take at least, however little is left of the budget: the statement that
/// ends a check runs under the same limit.
const SHORTEST: Duration = Duration::from_millis(500);

/// Why a check did not come to its end.
#[derive(Debug)]
pub enum Stop {
    /// The budget is used up.
    OutOfBudget,
    /// The database refused, or is away.
    Database(sqlx::Error),
    /// Something that the check needs is not known, in words.
    Unknown(String),
}

impl From<sqlx::Error> for Stop {
    fn from(error: sqlx::Error) -> Self {
        match Failure::of(&error) {
            Failure::StatementCancelled => Self::OutOfBudget,
            _ => Self::Database(error),
        }
    }
}

/// A session for one check.
pub struct Probe<'a> {
    connection: &'a mut Session,
    until: Instant,
}

impl<'a> Probe<'a> {
    /// Begins a check in the session's transaction.
    pub async fn begin(connection: &'a mut Session, budget: Duration) -> sqlx::Result<Self> {
        sqlx::raw_sql("savepoint one_check").execute(&mut *connection).await?;
        Ok(Probe { connection, until: Instant::now() + budget })
    }

    /// The session for the next statement, which the server cancels when the budget is used up.
    /// Every piece of a check asks for it anew.
    ///
    /// # Errors
    /// [`Stop::OutOfBudget`].
    pub async fn turn(&mut self) -> Result<&mut Session, Stop> {
        let rest = self.until.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Err(Stop::OutOfBudget);
        }
        let limit = rest.max(SHORTEST);
        sqlx::query_scalar!(
            r#"select pg_catalog.set_config('statement_timeout', $1, true) as "set!""#,
            limit.as_millis().to_string()
        )
        .fetch_one(&mut *self.connection)
        .await?;
        // What comes between two checks takes less; what comes after the transaction is not bound by it.
        self.connection.statements_take(limit);
        Ok(self.connection)
    }

    /// Ends the check, whatever became of it; in words why it did not come to its end.
    ///
    /// # Errors
    /// The session is lost.
    pub async fn end(self, result: Result<(), Stop>) -> sqlx::Result<Option<String>> {
        let why = match result {
            Ok(()) => None,
            Err(Stop::OutOfBudget) => Some("it needs longer than verify.budget".to_owned()),
            Err(Stop::Unknown(why)) => Some(why),
            Err(Stop::Database(error)) if Failure::of(&error) == Failure::ConnectionLost => {
                return Err(error);
            }
            Err(Stop::Database(error)) => Some(describe(&error.into())),
        };
        // Also what the check set goes back with it.
        sqlx::raw_sql("rollback to savepoint one_check; release savepoint one_check")
            .execute(self.connection)
            .await?;
        Ok(why)
    }
}
