//! What a verification is told.

use std::time::Duration;

use crate::config::Config;
use crate::sweep;

/// How to verify.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How long after its expiry a file may be live.
    pub grace: Duration,
    /// How long a check may take for a catalog.
    pub budget: Duration,
    /// The settings of passes.
    pub sweep: sweep::Settings,
}

impl Settings {
    /// The settings that the configuration has.
    pub fn from_config(config: &Config) -> Self {
        let every = config.distance_of_passes();
        Settings {
            grace: config.verify.grace.map_or(every.saturating_mul(2), |grace| grace.get()),
            budget: config.verify.budget.get(),
            sweep: sweep::Settings::from_config(config),
        }
    }
}
