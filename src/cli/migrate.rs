//! `tailrace migrate`

use super::{DONE, OutputArgs, database, out};
use crate::config::Config;
use crate::installation::{Migrated, migrate};

pub async fn run(config: &Config, args: &OutputArgs) -> anyhow::Result<u8> {
    let migrated = migrate(&database(config)?).await?;
    out::show(args.output, &migrated, text)?;
    Ok(DONE)
}

fn text(migrated: &Migrated) -> String {
    let Migrated { applied, version } = migrated;
    match applied {
        0 => format!("The schema tailrace is up to date (version {version})\n"),
        1 => format!("Applied 1 migration; the schema tailrace is at version {version}\n"),
        _ => format!("Applied {applied} migrations; the schema tailrace is at version {version}\n"),
    }
}
