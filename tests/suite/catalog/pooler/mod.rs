//! Tests with a pooler between the program and Postgres. A pooler that shares sessions is refused.
//! A pooler in session mode changes nothing.

mod session_mode;
mod shared;

use anyhow::{Context, Result};
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use tailrace_kit::pooler::{PoolMode, Pooler};

use crate::drop::races::Scene;
use crate::support::process::{Ended, start};

const SHARED: &str = "a pooler shares the database's sessions among its clients, and tailrace keeps a lock \
                      and settings in its own: connect to Postgres directly, or through a pool in session \
                      mode (pgbouncer: pool_mode = session, with a server_reset_query)";

/// A lake with a table that keeps 7 days and has a file of today and one that is 8 days old, and a pooler
/// before it; nothing where there is to be none.
async fn behind(mode: PoolMode) -> Result<Option<(Scene, Pooler)>> {
    let scene = Scene::new(&[0, 8]).await?;
    let pooler = Pooler::start(&scene.database.tailrace().options, mode).await?;
    Ok(pooler.map(|pooler| (scene, pooler)))
}

/// The program through the pooler, to its end.
async fn ran(pooler: &Pooler, args: &[&str]) -> Result<Ended> {
    start(&pooler.url(), args, &[])?.end().await
}

/// Another client of the pooler.
async fn client(pooler: &Pooler) -> Result<sqlx::PgConnection> {
    let options = pooler.url().parse::<PgConnectOptions>()?.extra_float_digits(None);
    options.connect().await.context("a client of the pooler")
}
