//! `tailrace migrate`

use super::{DONE, database, out};
use crate::config::Config;
use crate::installation::{Migrated, migrate};

pub async fn run(config: &Config) -> anyhow::Result<u8> {
    let Migrated { applied, version } = migrate(&database(config)?).await?;
    out::line(&match applied {
        0 => format!("The schema tailrace is up to date (version {version})"),
        1 => format!("Applied 1 migration; the schema tailrace is at version {version}"),
        _ => format!("Applied {applied} migrations; the schema tailrace is at version {version}"),
    })?;
    Ok(DONE)
}
