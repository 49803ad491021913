//! The one way in which we talk to the database: a session whose every wait has a limit.
//!
//! The server bounds its own statements. What it cannot bound is a network that falls silent, where
//! the driver would wait as long as the kernel does. So each answer is waited for as long as the
//! server may take for it, and [`Patience::slack`] on top. A wait that ran out, or that its caller gave
//! up in the middle, leaves nobody knows what on its way: the session is lost then, and whatever is
//! asked of it later fails at once, as on a broken connection.

use std::io;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{TryFutureExt, TryStreamExt};
use sqlx::postgres::{PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{
    Connection, Describe, Either, Execute, Executor, PgConnection, Postgres, SqlSafeStr, SqlStr,
};

/// How long the answers of a session are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// The longest that the server may take for a statement, where nothing else is said.
    pub statement: Duration,
    /// What an answer may take beyond the server's own bound.
    pub slack: Duration,
}

impl Default for Patience {
    /// Statements of at most 60 s, as the server's own sessions have them, and 15 s.
    fn default() -> Self {
        Patience { statement: Duration::from_secs(60), slack: Duration::from_secs(15) }
    }
}

/// A session.
///
/// It takes statements as a connection of the driver does (`&mut Session` is an
/// [`Executor`]); of a stream each row is waited for so long.
#[derive(Debug)]
pub struct Session {
    connection: PgConnection,
    state: State,
}

#[derive(Debug)]
struct State {
    patience: Patience,
    /// How long the next answers are waited for.
    limit: Duration,
    /// A wait goes on, or one was given up.
    is_waiting: bool,
    is_in_transaction: bool,
    /// A transaction was begun and dropped without an end.
    is_left_open: bool,
    /// What the session of the server is tagged with, where it is.
    tag: Option<String>,
}

impl State {
    /// The answer, or an error where it did not come in time, or an earlier one never did.
    async fn with_statement_timeout<T>(
        &mut self,
        asked: impl Future<Output = sqlx::Result<T>>,
    ) -> sqlx::Result<T> {
        if self.is_waiting {
            let lost = "the session was lost: an earlier answer was not waited for to its end";
            return Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::NotConnected, lost)));
        }
        self.is_waiting = true;
        let answered = tokio::time::timeout(self.limit, asked).await;
        let Ok(answer) = answered else {
            let waited = format!("no answer of the database within {:?}", self.limit);
            return Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, waited)));
        };
        self.is_waiting = false;
        answer
    }

    /// Ends the transaction that somebody left open.
    async fn settle(&mut self, connection: &mut PgConnection) -> sqlx::Result<()> {
        if self.is_left_open {
            self.with_statement_timeout(sqlx::raw_sql("ROLLBACK").execute(connection)).await?;
            self.is_left_open = false;
        }
        Ok(())
    }
}

impl Session {
    /// Bounds a connection that is open; how ours are set up,
    /// [`Database`](super::connect::Database) says.
    pub fn of(connection: PgConnection, patience: Patience) -> Self {
        let limit = patience.statement + patience.slack;
        Session {
            connection,
            state: State {
                patience,
                limit,
                is_waiting: false,
                is_in_transaction: false,
                is_left_open: false,
                tag: None,
            },
        }
    }

    /// From here on a statement may take so long on the server, which was told so; its answer is
    /// waited for that long and the slack.
    pub fn statements_take(&mut self, longest: Duration) {
        self.state.limit = longest.saturating_add(self.state.patience.slack);
    }

    /// Statements take no longer than [`Patience::statement`] again.
    pub fn statements_take_default(&mut self) {
        self.statements_take(self.state.patience.statement);
    }

    /// Begins a transaction; `begin` is the statement, or several that begin with it. It is rolled
    /// back before the next statement where it is dropped without an end.
    ///
    /// # Errors
    /// As the driver reports them; and where a transaction is open: the end of one within it would be
    /// its own end.
    pub async fn begin_with(&mut self, begin: impl SqlSafeStr) -> sqlx::Result<Transaction<'_>> {
        if self.state.is_in_transaction {
            return Err(sqlx::Error::InvalidSavePointStatement);
        }
        self.state.is_in_transaction = true;
        // From before the statement, for where it fails half way something may be open.
        let limit_before = self.state.limit;
        let mut transaction = Transaction { session: self, limit_before, is_open: true };
        sqlx::raw_sql(begin).execute(&mut *transaction).await?;
        Ok(transaction)
    }

    /// Begins a transaction that reads and writes.
    ///
    /// # Errors
    /// As there.
    pub async fn begin(&mut self) -> sqlx::Result<Transaction<'_>> {
        self.begin_with("BEGIN").await
    }

    /// What the session of the server is tagged with, where it is; see [`super::pooler`].
    pub(super) fn tag(&mut self) -> &mut Option<String> {
        &mut self.state.tag
    }

    /// What takes a connection of the driver, and no statement; the limit holds for all of it.
    ///
    /// # Errors
    /// As on a broken connection where it takes too long.
    pub async fn whole<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut PgConnection) -> T,
    ) -> sqlx::Result<T> {
        let Session { connection, state } = self;
        state.settle(connection).await?;
        state.with_statement_timeout(async { Ok(work(connection).await) }).await
    }

    /// Ends the session in good order; one that is lost already is simply let go.
    pub(super) async fn close(self) {
        let Session { connection, mut state } = self;
        state.limit = state.patience.slack;
        if let Err(error) = state.with_statement_timeout(connection.close()).await {
            tracing::debug!(%error, "a database session did not end in good order");
        }
    }
}

/// An open transaction of a session. What [`Session::statements_take`] is told in it holds until its
/// end.
#[derive(Debug)]
pub struct Transaction<'a> {
    session: &'a mut Session,
    limit_before: Duration,
    is_open: bool,
}

impl Transaction<'_> {
    /// Commits. After an error that is no answer of the server the outcome is unknown.
    ///
    /// # Errors
    /// As the driver reports them.
    pub async fn commit(mut self) -> sqlx::Result<()> {
        sqlx::raw_sql("COMMIT").execute(&mut *self).await?;
        self.is_open = false;
        Ok(())
    }

    /// Rolls back.
    ///
    /// # Errors
    /// As the driver reports them; the server rolls back by itself where the session is lost.
    pub async fn rollback(mut self) -> sqlx::Result<()> {
        sqlx::raw_sql("ROLLBACK").execute(&mut *self).await?;
        self.is_open = false;
        Ok(())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        let state = &mut self.session.state;
        state.limit = self.limit_before;
        state.is_in_transaction = false;
        state.is_left_open |= self.is_open;
    }
}

impl Deref for Transaction<'_> {
    type Target = Session;

    fn deref(&self) -> &Session {
        self.session
    }
}

impl DerefMut for Transaction<'_> {
    fn deref_mut(&mut self) -> &mut Session {
        self.session
    }
}

impl<'c> Executor<'c> for &'c mut Session {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, sqlx::Result<Either<PgQueryResult, PgRow>>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let Session { connection, state } = self;
        let begun = async move {
            state.settle(connection).await?;
            Ok(stream::try_unfold((connection.fetch_many(query), state), next_of))
        };
        Box::pin(begun.try_flatten_stream())
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<Option<PgRow>>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let Session { connection, state } = self;
        Box::pin(async move {
            state.settle(connection).await?;
            state.with_statement_timeout(connection.fetch_optional(query)).await
        })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, sqlx::Result<PgStatement>>
    where
        'c: 'e,
    {
        let Session { connection, state } = self;
        Box::pin(async move {
            state.settle(connection).await?;
            state.with_statement_timeout(connection.prepare_with(sql, parameters)).await
        })
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, sqlx::Result<Describe<Postgres>>>
    where
        'c: 'e,
    {
        let Session { connection, state } = self;
        Box::pin(async move { state.with_statement_timeout(connection.describe(sql)).await })
    }
}

/// The next answer of a stream, with what the one after it is waited for.
async fn next_of<'e, T>(
    (mut answers, state): (BoxStream<'e, sqlx::Result<T>>, &'e mut State),
) -> sqlx::Result<Option<(T, (BoxStream<'e, sqlx::Result<T>>, &'e mut State))>> {
    let next = state.with_statement_timeout(answers.try_next()).await?;
    Ok(next.map(|next| (next, (answers, state))))
}

/// The result of a whole piece of work with the database, or a timeout that counts as a lost connection. The
/// session that the work waits for is lost then, so this is for work that brings its own, or is the last that is
/// done in one.
pub async fn within<T, E: From<sqlx::Error>>(
    limit: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
        let waited = format!("no answer within {limit:?}");
        Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, waited)).into())
    })
}
