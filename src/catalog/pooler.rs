//! Poolers that share sessions: they hand one session of the server to several clients in turn, after
//! each transaction or statement. A lease, which is a lock of the session, would stay on somebody else's,
//! and what we set would change what others do.
//!
//! So every session of ours is tagged: a setting of the server's session, which no other program knows,
//! holds an id that is made for it. Whoever finds a tag in a session that has just been opened has got
//! one that another client has tagged; whoever does not find its own in the next round trip is in
//! another session than before. A direct connection begins without a tag, and a pool that hands out
//! whole sessions resets one before the next client has it.

use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::postgres::{PgConnectOptions, PgRow};
use sqlx::{AssertSqlSafe, ConnectOptions, Row};
use uuid::Uuid;

use super::keepalive::keep_alive;
use super::session::{Patience, Session};

/// The session of the server is not ours alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a pooler shares the database's sessions among its clients, and tailrace keeps a lock and settings in \
     its own: connect to Postgres directly, or through a pool in session mode (pgbouncer: pool_mode = \
     session, with a server_reset_query)"
)]
pub struct SharedSession;

/// The first session of this process was opened twice.
static OPENED_TWICE: AtomicBool = AtomicBool::new(false);

/// Opens a session that is ours alone, as far as that can be found out, and tags it.
///
/// Nothing tells the first client of a pool that is idle from one of a direct connection: it gets the same
/// session each time. So the first session of a process is opened twice, for the second one to find what
/// the first one left. That is not enough where the pool is in use and each of our statements happens
/// upon a session that we had before, or upon one that never was ours: then it shows later, when
/// [`ask`] is used again, or in the next session.
///
/// # Errors
/// [`SharedSession`], or as the driver reports them.
pub async fn open(options: &PgConnectOptions, patience: Patience) -> anyhow::Result<Session> {
    if !OPENED_TWICE.load(Ordering::Relaxed) {
        tagged(options, patience).await?.close().await;
        OPENED_TWICE.store(true, Ordering::Relaxed);
    }
    tagged(options, patience).await
}

/// The tag is looked at before anything else is set, so that a session that is refused is as others know it.
async fn tagged(options: &PgConnectOptions, patience: Patience) -> anyhow::Result<Session> {
    let connection = options.connect().await?;
    keep_alive(options);
    let mut session = Session::of(connection, patience);
    let tag = Uuid::new_v4().to_string();
    // From left to right.
    let statement = format!(
        "select pg_catalog.current_setting('tailrace.session', true), \
                pg_catalog.set_config('tailrace.session', '{tag}', false)"
    );
    let row = sqlx::raw_sql(AssertSqlSafe(statement)).fetch_one(&mut session).await?;
    let found: Option<String> = row.try_get(0)?;
    // Empty where it was reset.
    if found.is_some_and(|tag| !tag.is_empty()) {
        session.close().await;
        return Err(SharedSession.into());
    }
    *session.tag() = Some(tag);
    Ok(session)
}

/// What statements give that are sent in one round trip, if the session is the one that was tagged; where it
/// is another one they are not carried out.
///
/// # Errors
/// As those of [`open`].
pub async fn ask(session: &mut Session, statements: &str) -> anyhow::Result<Vec<PgRow>> {
    let is_ours = match session.tag() {
        // An error ends the whole query, and this one is no other's.
        Some(tag) => format!(
            "select 1 / (coalesce(pg_catalog.current_setting('tailrace.session', true), '') \
                         = '{tag}')::int;"
        ),
        None => "select 1;".to_owned(),
    };
    // The tag is ours; the caller's statements are constant but for quoted identifiers.
    let asked = AssertSqlSafe(format!("{is_ours} {statements}"));
    let rows = sqlx::raw_sql(asked).fetch_all(session).await.map_err(|error| match &error {
        sqlx::Error::Database(said) if said.code().as_deref() == Some("22012") => {
            SharedSession.into()
        }
        _ => anyhow::Error::new(error),
    })?;
    Ok(rows.into_iter().skip(1).collect())
}
