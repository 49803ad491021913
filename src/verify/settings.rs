//! The settings of a verification.

use std::time::Duration;

use super::leases::renewal_grace;
use crate::config::Config;
use crate::sweep;

/// How to verify.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How long after its expiry a file may be live.
    pub grace: Duration,
    /// How long claims may outlive the policy that they were made for, as the check of leases says.
    pub renewal_grace: Duration,
    /// How long a check may take for a catalog.
    pub budget: Duration,
    /// As passes have them.
    pub sweep: sweep::Settings,
}

impl Settings {
    /// The settings that the configuration has.
    pub fn from_config(config: &Config) -> Self {
        let every = config.distance_of_passes();
        let grace = config.verify.grace.map_or(every.saturating_mul(2), |grace| grace.get());
        let renewal_grace = renewal_grace(config, grace);
        Settings {
            grace,
            renewal_grace,
            budget: config.verify.budget.get(),
            sweep: sweep::Settings::from_config(config),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::LoadOptions;

    #[test]
    fn claims_have_two_renewals_worth_and_no_less_than_files() {
        for (every, renew_every, graces) in [("1m", "5m", [2, 10]), ("10m", "1m", [20, 20])] {
            let env = [
                ("TAILRACE__SCHEDULE__EVERY", every),
                ("TAILRACE__COMPACTION__RENEW_EVERY", renew_every),
            ];
            let env = env.map(|(key, value)| (key.to_owned(), value.to_owned()));
            let options = LoadOptions { env: env.into_iter().collect(), ..LoadOptions::default() };
            let settings = Settings::from_config(&Config::load(&options).expect("valid"));
            let graces = graces.map(|minutes| Duration::from_secs(60 * minutes));
            assert_eq!([settings.grace, settings.renewal_grace], graces, "{every} {renew_every}");
        }
    }
}
