//! `tailrace migrate`

use std::io::Write;

use super::{DONE, database};
use crate::config::Config;
use crate::installation::{Migrated, migrate};

pub async fn run(config: &Config) -> anyhow::Result<u8> {
    let Migrated { applied, version } = migrate(&database(config)?).await?;
    let mut out = std::io::stdout();
    match applied {
        0 => writeln!(out, "The schema tailrace is up to date (version {version})")?,
        1 => writeln!(out, "Applied 1 migration; the schema tailrace is at version {version}")?,
        _ => writeln!(
            out,
            "Applied {applied} migrations; the schema tailrace is at version {version}"
        )?,
    }
    Ok(DONE)
}
