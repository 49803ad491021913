//! `tailrace health`

use std::io::Write;

use chrono::Utc;

use super::{DONE, FAILED};
use crate::config::Config;
use crate::health::{Place, check};
use crate::telemetry::say;

pub fn run(config: &Config) -> anyhow::Result<u8> {
    match check(&Place::of(config), config.health.max_age.get(), Utc::now()) {
        Ok(report) => {
            writeln!(std::io::stdout(), "{report}")?;
            Ok(DONE)
        }
        Err(unhealthy) => {
            say(&format!("tailrace: {unhealthy}\n"));
            Ok(FAILED)
        }
    }
}
