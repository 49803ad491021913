//! The versions of the programs involved: tailrace, the operating system, Postgres, the hoglake server, and
//! the schema `tailrace`.

use serde::Serialize;

use super::server;
use crate::catalog::connect::{Access, Database, close};
use crate::catalog::inventory::objects;
use crate::catalog::server::postgres_version;
use crate::catalog::session::Session;
use crate::installation::{applied_version, version};

/// What can be said without the database.
#[derive(Debug, Serialize)]
pub struct Program {
    /// tailrace's version.
    pub tailrace: &'static str,
    /// The newest migration of the schema `tailrace` that this program knows.
    pub migration: i64,
    /// The operating system, the processor, and the name of the distribution where it has one.
    pub system: String,
}

impl Program {
    /// Of this process.
    pub fn of_this() -> Self {
        Program {
            tailrace: env!("CARGO_PKG_VERSION"),
            migration: version(),
            system: format!(
                "{} {}{}",
                std::env::consts::OS,
                std::env::consts::ARCH,
                distribution().map(|name| format!(", {name}")).unwrap_or_default()
            ),
        }
    }
}

fn distribution() -> Option<String> {
    let text = std::fs::read_to_string("/etc/os-release").ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

/// What the database says.
#[derive(Debug, Serialize)]
pub struct Versions {
    /// As Postgres says it.
    pub postgres: String,
    /// The version of the hoglake catalog, by what its migrations left; null where it has none that is known.
    pub hoglake: Option<u32>,
    /// The newest migration of the schema `tailrace` that was applied; null where none was.
    pub migration: Option<i64>,
}

/// Asks the database.
///
/// # Errors
/// It cannot be reached, or the role may not read what tells the versions.
pub async fn versions(database: &Database) -> anyhow::Result<Versions> {
    let mut connection = database.unchecked(Access::ReadOnly).await?;
    let versions = versions_in(&mut connection, &database.schema).await;
    close(connection).await;
    versions
}

async fn versions_in(connection: &mut Session, schema: &str) -> anyhow::Result<Versions> {
    Ok(Versions {
        postgres: postgres_version(connection).await?,
        hoglake: server::version(&objects(connection, schema).await?),
        migration: applied_version(connection).await?,
    })
}
