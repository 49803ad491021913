//! Tests of the daemon's HTTP interface, with a client that sends bytes.

mod bounds;
mod changes;
pub mod client;
mod crowds;
mod errors;
mod ids;
mod in_flight;
mod passes;
mod plans;
mod policies;
mod probes;
pub mod tokens;
mod unfit;

use anyhow::{Context, Result};
use tailrace_kit::lake::{Catalog, Field, Table};

use crate::drop::races::file;
use crate::support::TestDatabase;
use crate::support::process::Running;
use client::Client;

/// A lake with the table `events.raw` by day, without a policy, and a daemon on it.
pub struct Scene {
    pub database: TestDatabase,
    pub catalog: Catalog,
    pub table: Table,
    pub daemon: Running,
    pub client: Client,
}

/// The path of the table.
pub const TABLE: &str = "/v1/catalogs/lake/namespaces/events/tables/raw";

impl Scene {
    /// Without tokens.
    pub async fn new() -> Result<Self> {
        Self::with(&[]).await
    }

    /// With these variables. The daemon's first pass is over, and its next one far away.
    pub async fn with(env: &[(&str, &str)]) -> Result<Self> {
        let database = TestDatabase::new().await?;
        let catalog = database.catalog("lake").await?;
        let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
        table.append(vec![file(9), file(8), file(0)]).await?;
        let folder = [("TAILRACE__SCHEDULE__EVERY", "1d")];
        let mut daemon = database.start(&["run"], &[&folder, env].concat())?;
        let address = address(&mut daemon).await?;
        daemon.event("pass_finished", 1).await?;
        let client = Client { address, headers: Vec::new() };
        Ok(Scene { database, catalog, table, daemon, client })
    }

    /// The path of the table's policy, with what follows it.
    pub fn policy(&self, rest: &str) -> String {
        format!("{TABLE}/partition-retention{rest}")
    }
}

/// Where a daemon listens.
pub async fn address(daemon: &mut Running) -> Result<std::net::SocketAddr> {
    let told = daemon.told("http_listening").await?;
    Ok(told["address"].as_str().context("an address")?.parse()?)
}
