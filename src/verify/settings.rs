//! What a verification is told.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::config::{Config, Cron};
use crate::sweep;

/// How many ticks of a cron expression are looked at for the longest distance of two.
const TICKS: usize = 1_000;

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
        let every = match &config.schedule.cron {
            Some(cron) => longest_distance(cron, Utc::now()).unwrap_or_else(|| config.every()),
            None => config.every(),
        };
        Settings {
            grace: config.verify.grace.map_or(every.saturating_mul(2), |grace| grace.get()),
            budget: config.verify.budget.get(),
            sweep: sweep::Settings::from_config(config),
        }
    }
}

/// The longest distance of two ticks in a row, among the next ones.
fn longest_distance(cron: &Cron, now: DateTime<Utc>) -> Option<Duration> {
    let ticks: Vec<_> = std::iter::successors(cron.next_after(now), |tick| cron.next_after(*tick))
        .take(TICKS)
        .collect();
    ticks.windows(2).filter_map(|two| (two[1] - two[0]).to_std().ok()).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cron_waits_as_long_as_its_longest_pause() {
        let now = "2026-09-17T00:00:00Z".parse().expect("a time");
        for (cron, hours) in [("0 0 * * * *", 1), ("0 30 4 * * Mon-Fri", 72)] {
            let cron: Cron = cron.parse().expect("valid");
            let expected = Some(Duration::from_secs(hours * 3600));
            assert_eq!(longest_distance(&cron, now), expected, "{cron}");
        }
    }
}
