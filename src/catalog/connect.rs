//! Sessions: how each session of tailrace is set up, whatever the defaults of the role or the server are.

use std::io;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgRow};

use super::session::{Patience, Session};
use super::{keepalive, pooler};

/// How often the server looks, in the middle of a statement, whether somebody is there.
pub(crate) const CONNECTION_CHECK: Duration = Duration::from_secs(5);

/// Where the catalogs are, and how long to try to get there.
#[derive(Debug, Clone)]
pub struct Database {
    /// Host, role, TLS and the rest.
    pub options: PgConnectOptions,
    /// The schema of the `hog_*` tables.
    pub schema: String,
    /// The longest that opening a session may take.
    pub connect_timeout: Duration,
    /// How long its answers are waited for.
    pub patience: Patience,
}

/// What a session may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read and write.
    ReadWrite,
    /// Only read: a statement that writes fails.
    ReadOnly,
}

impl Database {
    /// Opens a session for the catalog's schema, of which nobody has made sure that our own schema
    /// is the one that this program works with. It is for those who bring that about, report it or
    /// do no work: the migration, doctor and the probe. Everybody else works in a
    /// [`session`](Self::session), a [`read_only_session`](Self::read_only_session), or for one piece of
    /// work [`in_session`](Self::in_session), which are checked.
    ///
    /// It is made sure that the session is ours alone ([`pooler`]), in a round trip of its own, and in two
    /// connections the first time. What is set: search_path ([`search_path`]), UTC, statements of at
    /// most [`Patience::statement`] and idle transactions of at most 30 s as the server's own sessions
    /// have them, waits for locks
    /// of at most 10 s, no JIT (compiling costs more than our statements), no filter by row-level
    /// security (a table whose rows a policy would hide raises SQLSTATE 42501: half of a catalog looks
    /// like one in which nothing has expired), writes allowed, READ COMMITTED. Under a stricter default
    /// of the role, whoever waits for another writer of the same row of ours would fail instead of going
    /// on. And either end is to notice that nobody is at the other one ([`keepalive`]), the server also in
    /// the middle of a statement: a session that lingers keeps its lease.
    ///
    /// Rows are come to by index. Each statement leads from a list of keys to rows; with no or old
    /// statistics, or a short list of ended files, the planner may think that a table is read whole
    /// as quickly, and it may be that of ten million files. No statement takes a parallel worker: with them
    /// the planner prefers to sort a table whose index has it in order, and they are the server's for all.
    ///
    /// # Errors
    /// [`SharedSession`](super::pooler::SharedSession), or as the driver reports them
    /// ([`sqlx::Error`]; see [`super::errors::Failure`]).
    pub async fn unchecked(&self, access: Access) -> anyhow::Result<Session> {
        Ok(self.open(access, "").await?.0)
    }

    /// As [`Self::unchecked`], with the rows that a question gives which is put in the same round
    /// trip as the setting up.
    pub(crate) async fn open(
        &self,
        access: Access,
        question: &'static str,
    ) -> anyhow::Result<(Session, Vec<PgRow>)> {
        let read_only = match access {
            Access::ReadWrite => "off",
            Access::ReadOnly => "on",
        };
        let setup = format!(
            "set search_path = {}; set timezone = 'UTC'; \
             set statement_timeout = {}; set idle_in_transaction_session_timeout = '30s'; \
             set lock_timeout = '10s'; set jit = off; set row_security = off; \
             set enable_seqscan = off; set enable_bitmapscan = off; \
             set enable_hashjoin = off; set enable_mergejoin = off; \
             set max_parallel_workers_per_gather = 0; \
             set default_transaction_read_only = {read_only}; \
             set default_transaction_isolation = 'read committed'; \
             set tcp_keepalives_idle = {}; set tcp_keepalives_interval = {}; \
             set tcp_keepalives_count = {}; set tcp_user_timeout = {}; \
             set client_connection_check_interval = {}; \
             {question}",
            search_path(&self.schema),
            self.patience.statement.as_millis(),
            keepalive::IDLE.as_secs(),
            keepalive::INTERVAL.as_secs(),
            keepalive::COUNT,
            keepalive::USER_TIMEOUT.as_millis(),
            CONNECTION_CHECK.as_millis(),
        );
        let open = async {
            let mut session = pooler::open(&self.options, self.patience).await?;
            let rows = pooler::ask(&mut session, &setup).await?;
            Ok((session, rows))
        };
        let opened = tokio::time::timeout(self.connect_timeout, open).await;
        let opened = opened.unwrap_or_else(|_| {
            let waited = format!("no session within {:?}", self.connect_timeout);
            Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, waited)).into())
        });
        opened.map_err(|error: anyhow::Error| match error.downcast_ref::<sqlx::Error>() {
            Some(cause) => {
                let role = self.options.get_username();
                let place = self.place();
                let advice = what_to_do(cause);
                let context = format!("cannot connect to {place} as role {role:?}{advice}");
                error.context(context)
            }
            None => error,
        })
    }

    /// The database, its host or socket folder, and the port, for people.
    pub fn place(&self) -> String {
        let options = &self.options;
        let user = options.get_username();
        let database = options.get_database().unwrap_or(user);
        let host = match options.get_socket() {
            Some(socket) => socket.display().to_string(),
            None => options.get_host().to_owned(),
        };
        format!("database {database:?} at {host}:{}", options.get_port())
    }
}

/// What an operator looks at first, where a session is refused; empty where the error says it.
fn what_to_do(error: &sqlx::Error) -> &'static str {
    const OF_TLS: &str = " (see sslmode and sslrootcert of database.url)";
    match error {
        // What rustls refuses of the server's certificate.
        sqlx::Error::Io(refused) if refused.kind() == io::ErrorKind::InvalidData => OF_TLS,
        sqlx::Error::Io(_) => {
            " (is the server running, does it listen there, and does the network lead to it?)"
        }
        sqlx::Error::Tls(_) => OF_TLS,
        sqlx::Error::Database(refused) => match refused.code().as_deref() {
            Some("28P01" | "28000") => {
                " (see the role in database.url, its password in database.password_file, database.url, \
                 PGPASSWORD or ~/.pgpass, and the server's pg_hba.conf)"
            }
            Some("3D000") => " (see the database's name in database.url)",
            _ => "",
        },
        _ => "",
    }
}

/// Ends a session in good order, within [`Patience::slack`]; one that is lost already is simply let go.
pub async fn close(session: Session) {
    session.close().await;
}

/// The path of our sessions: `hog_*` is found in the catalog's schema, and nothing that anybody made
/// there takes the place of something of `pg_catalog`. What else that needs of our SQL, [`super`] says.
pub fn search_path(schema: &str) -> String {
    format!("pg_catalog, {}, pg_temp", quote_identifier(schema))
}

/// The path of migrations alone: some ask `current_schema()` where the catalog is. `pg_catalog` still
/// comes first, but as the schema that the server looks into by itself.
pub fn migrations_search_path(schema: &str) -> String {
    format!("{}, pg_temp", quote_identifier(schema))
}

/// An identifier as SQL takes it literally.
pub fn quote_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    #[test]
    fn identifiers_are_quoted() {
        assert_eq!(super::quote_identifier("public"), "\"public\"");
        assert_eq!(super::quote_identifier("a\"; drop"), "\"a\"\"; drop\"");
    }
}
