//! How long an answer of the database is waited for.
//!
//! The server bounds its own statements; what it cannot bound is a network that falls silent, where
//! the driver would wait as long as the kernel does. So whoever waits says how long that may be:
//! the server's own bound, and something on top.

use std::io;
use std::time::Duration;

/// What an answer may take beyond the server's own bound.
pub const SLACK: Duration = Duration::from_secs(15);

/// The result of the work, or a timeout that counts as a lost connection.
pub async fn within<T, E: From<sqlx::Error>>(
    limit: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
        let waited = format!("no answer within {limit:?}");
        Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, waited)).into())
    })
}
