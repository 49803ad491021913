//! How long several statements are waited for together.
//!
//! Each answer is waited for with a limit of its own ([`super::session`]), so this is for what shall not
//! take too long in all. Whoever gives up here may do so in the middle of a wait: the session is lost then.

use std::io;
use std::time::Duration;

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
