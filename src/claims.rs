//! Compaction claims: the files that policies are about to drop, leased so that the server's compaction
//! does not rewrite them first.
//!
//! What is claimed: the live files that have expired, or will have within `compaction.lead`, of
//! tables with a policy that enforces; the soonest first, where they are too many. By the same
//! judge as a pass, with a `now` that is `compaction.lead` later. [`renew()`] claims and renews for all
//! catalogs, on a timer of its own beside the passes; [`policy_changed`] releases at once what a
//! changed policy no longer covers. A claim is a lease and never an authorisation: a pass drops
//! claimed files like any others.

mod find;
mod intake;
mod learn;
mod lease;
mod log;
mod release;
mod renew;
mod renewed;
pub mod rows;
mod timer;
mod triage;

use std::time::Duration;

pub use release::{policy_changed, release};
pub use renew::renew;
pub use renewed::{Failed, Renewed};
pub use timer::Timer;

use crate::config::{Config, CrossCheck};
use crate::policy::grace::PolicyLimits;
use crate::rules::clock_guard::Reading;
use crate::rules::scan_limits::ScanLimits;

/// How long a claim holds unless it is renewed: several renewals may fail before a planner sees
/// the files again, and a tailrace that is gone is in nobody's way for longer.
///
/// A compaction that was planned before a claim may still win or lose by the commit lock alone. The ids of
/// files that a pass has dropped are dead, and go with the next renewal.
pub const LEASE: Duration = Duration::from_secs(30 * 60);

/// The part of the configuration that claims go by.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Whether anything is claimed. Where it is not, what was claimed is let go.
    pub claims: bool,
    /// How long before its expiry a file is claimed.
    pub lead: Duration,
    /// At most so many files of a table are claimed.
    pub max_claimed_files: usize,
    /// What policies are held to.
    pub policy_limits: PolicyLimits,
    /// What the clocks say, in place of asking them.
    pub clock: Option<Reading>,
    /// The farthest that host and database may be apart.
    pub max_clock_skew: Duration,
    /// Beyond this many distinct partition values at a key they are not listed.
    pub max_values: i64,
    /// What becomes of partitions that hold newer rows by their column statistics.
    pub cross_check: CrossCheck,
    /// How much one step of looking for files takes on.
    pub scan_limits: ScanLimits,
}

impl Settings {
    /// The settings that the configuration has.
    pub fn from_config(config: &Config) -> Self {
        Settings {
            claims: config.compaction.claims,
            lead: config.compaction.lead.get(),
            max_claimed_files: config.compaction.max_claimed_files.get() as usize,
            policy_limits: PolicyLimits::from_config(config),
            clock: None,
            max_clock_skew: config.guard.max_clock_skew.get(),
            max_values: config.discovery.max_values.get() as i64,
            cross_check: config.guard.cross_check,
            scan_limits: ScanLimits::default(),
        }
    }
}
