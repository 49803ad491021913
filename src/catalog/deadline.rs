//! How long a whole piece of work with the database may take. Each single answer is bounded by the session
//! ([`super::session`]).

use std::io;
use std::time::Duration;

/// The result of the work, or a timeout that counts as a lost connection. The session that the work waits
/// for is lost then, so this is for work that brings its own, or is the last that is done in one.
pub async fn within<T, E: From<sqlx::Error>>(
    limit: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
        let waited = format!("no answer within {limit:?}");
        Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, waited)).into())
    })
}
