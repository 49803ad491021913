//! `tailrace health`

use chrono::Utc;

use super::{DONE, FAILED, OutputArgs, out};
use crate::config::Config;
use crate::health::{Place, check};
use crate::telemetry::{line, say};

pub fn run(config: &Config, args: &OutputArgs) -> anyhow::Result<u8> {
    match check(&Place::of(config), config.health.max_age.get(), Utc::now()) {
        Ok(report) => {
            out::show(args.output, &report, |report| format!("{}\n", line(&report.to_string())))?;
            Ok(DONE)
        }
        Err(unhealthy) => {
            say(&format!("tailrace: {}\n", line(&unhealthy.to_string())));
            Ok(FAILED)
        }
    }
}
