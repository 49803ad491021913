//! Prepares the database that every test's database is copied from: the server's tables and the
//! schema `tailrace`.

use std::time::Duration;

use anyhow::Result;
use sqlx::PgPool;
use tailrace::catalog::connect::Database;
use tailrace::catalog::session::Patience;
use tailrace::installation::migrate;

/// Runs once, in the database that the tests' databases are copied from, after the lake is
/// installed. The pool is closed afterwards; no other session may stay.
pub async fn prepare(pool: &PgPool) -> Result<()> {
    let options = pool.connect_options().as_ref().clone();
    let database = Database {
        options,
        schema: "public".to_owned(),
        connect_timeout: Duration::from_secs(10),
        patience: Patience::default(),
    };
    migrate(&database).await?;
    Ok(())
}
