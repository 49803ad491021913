//! `tailrace health`

use std::io::Write;

use chrono::Utc;

use super::{DONE, FAILED};
use crate::config::Config;
use crate::health::check;

pub fn run(config: &Config) -> anyhow::Result<u8> {
    match check(&config.health_file(), config.health.max_age.get(), Utc::now()) {
        Ok(report) => {
            writeln!(std::io::stdout(), "{report}")?;
            Ok(DONE)
        }
        Err(unhealthy) => {
            eprintln!("tailrace: {unhealthy}");
            Ok(FAILED)
        }
    }
}
