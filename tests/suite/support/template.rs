//! What every test's database holds beside the server's tables.

use anyhow::Result;
use sqlx::PgPool;

/// Runs once, in the database that the tests' databases are copied from, after the lake is
/// installed. The pool is closed afterwards; no other session may stay.
pub async fn prepare(_pool: &PgPool) -> Result<()> {
    Ok(())
}
