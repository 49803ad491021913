//! The settings of a pass: the part of the configuration that it uses, and its limits.

use std::time::Duration;

use super::waiting::Pauses;
use crate::config::{Config, CrossCheck, Oversize};
use crate::drop::Limits;
use crate::policy::grace::PolicyLimits;
use crate::rules::batches::BatchLimits;
use crate::rules::blast_radius::RadiusLimits;
use crate::rules::clock_guard::Reading;
use crate::rules::scan_limits::ScanLimits;

/// What a pass is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    /// All that is to be done.
    #[default]
    Regular,
    /// What has fallen due by now in tables that enforce, and nothing else: neither reading, counting and
    /// copying nor what a pass does beside its tables.
    Wake,
}

/// How a pass works.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// What it is for.
    pub kind: Kind,
    /// The longest distance of two regular passes.
    pub every: Duration,
    /// How long rows that are due wait for others, where a daemon wakes for them: `schedule.lag`. What is not
    /// due gives way to them then; else nothing does.
    pub wakes_within: Option<Duration>,
    /// The time of every decision, in place of the database's.
    #[cfg(feature = "testing")]
    pub as_of: Option<crate::rules::instant::UtcInstant>,
    /// What the clocks say, in place of asking them; `as_of` alone stands for clocks that agree on it.
    #[cfg(feature = "testing")]
    pub clock: Option<Reading>,
    /// The farthest that host and database may be apart.
    pub max_clock_skew: Duration,
    /// How tuples are grouped.
    pub batch: BatchLimits,
    /// What bounds a commit.
    pub limits: Limits,
    /// The share of the time for which the commit lock may be held, in (0, 1].
    pub lock_duty: f64,
    /// How long after a full pass over a table the next one is due.
    pub full_pass_every: Duration,
    /// Whether full passes of many tables are spread over time.
    pub spreads_full_passes: bool,
    /// Whether what waits is left alone until its next look; not by `tailrace sweep`.
    pub heeds_pauses: bool,
    /// How much one step of looking for files takes on.
    pub scan_limits: ScanLimits,
    /// No commit starts once a pass has run for so long.
    pub max_duration: Duration,
    /// A longer removal queue of the server's holds the drops of its catalog back.
    pub removal_queue_ceiling: Option<i64>,
    /// So many catalogs are worked on side by side; at least 1.
    pub parallel_catalogs: usize,
    /// The limit for counts that need a read of a whole table.
    pub count_timeout: Duration,
    /// Beyond this many distinct partition values at a key they are not listed.
    pub max_values: i64,
    /// What policies are held to.
    pub policy_limits: PolicyLimits,
    /// What becomes of partitions that hold newer rows by their column statistics.
    pub cross_check: CrossCheck,
    /// How much of a table goes at once otherwise than by time alone.
    pub radius: RadiusLimits,
    /// Whether a table's property is believed whatever it ends.
    pub trusts_properties: bool,
    /// Whether nobody may confirm what they set themselves.
    pub four_eyes: bool,
    /// How long a writer may go on with a partition spec that has ended.
    pub stale_writer_window: Duration,
    /// The longest distance of two looks at the specs of a catalog: passes copy them, and so do the
    /// renewals of claims, which run in every daemon whether or not anything is claimed.
    pub specs_looked_at_every: Duration,
    /// How long the drop history is kept, and what names a table that is gone.
    pub history_keep: Duration,
    /// How long receipts of explicit drops are kept.
    pub receipt_keep: Duration,
}

impl Settings {
    /// Whether the pass is for what fell due, and nothing else.
    pub fn is_wake(&self) -> bool {
        self.kind == Kind::Wake
    }

    /// What the clocks say, where a test says it in their place.
    pub fn rehearsed(&self) -> Option<Reading> {
        #[cfg(feature = "testing")]
        return self.clock.or_else(|| self.as_of.map(Reading::rehearsed));
        #[cfg(not(feature = "testing"))]
        None
    }

    /// How long what waits is left alone.
    pub fn pauses(&self) -> Pauses {
        Pauses {
            pass_every: self.every,
            full_pass_every: self.full_pass_every,
            are_heeded: self.heeds_pauses,
        }
    }

    /// The settings that the configuration has.
    pub fn from_config(config: &Config) -> Self {
        Settings {
            kind: Kind::Regular,
            every: config.distance_of_passes(),
            wakes_within: None,
            #[cfg(feature = "testing")]
            as_of: None,
            #[cfg(feature = "testing")]
            clock: None,
            max_clock_skew: config.guard.max_clock_skew.get(),
            batch: BatchLimits {
                files_per_commit: config.sweep.max_files_per_commit.get() as i64,
                files_per_tuple: config.sweep.max_files_per_tuple.get() as i64,
                split_oversize: config.sweep.oversize == Oversize::Split,
            },
            limits: Limits {
                lock_timeout: config.sweep.lock_timeout.get(),
                row_lock_timeout: config.drop.row_lock_timeout.get(),
                max_hold: config.drop.max_hold.get(),
            },
            lock_duty: config.sweep.lock_duty.get(),
            full_pass_every: config.sweep.full_pass_every.get(),
            spreads_full_passes: true,
            heeds_pauses: true,
            scan_limits: ScanLimits::default(),
            max_duration: config.sweep.max_duration.get(),
            removal_queue_ceiling: config
                .sweep
                .removal_queue_ceiling
                .map(|ceiling| ceiling.get() as i64),
            parallel_catalogs: config.sweep.parallel_catalogs.get() as usize,
            count_timeout: config.discovery.count_timeout.get(),
            max_values: config.discovery.max_values.get() as i64,
            policy_limits: PolicyLimits::from_config(config),
            cross_check: config.guard.cross_check,
            radius: RadiusLimits {
                min_drop_files: config.guard.min_drop_files.get() as i64,
                max_drop_fraction: config.guard.max_drop_fraction.get(),
            },
            trusts_properties: config.guard.trust_properties,
            four_eyes: config.guard.four_eyes,
            stale_writer_window: config.guard.stale_writer_window.get(),
            specs_looked_at_every: config
                .distance_of_passes()
                .min(config.compaction.renew_every.get()),
            history_keep: config.history.keep.get(),
            receipt_keep: config.drop.receipt_retention.get(),
        }
    }
}

/// What a pass or a plan is limited to; everything where nothing is named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// One catalog.
    pub catalog: Option<String>,
    /// One table: namespace and name.
    pub table: Option<(String, String)>,
}

impl Scope {
    /// Whether a catalog is in it.
    pub fn has_catalog(&self, name: &str) -> bool {
        self.catalog.as_deref().is_none_or(|catalog| catalog == name)
    }

    /// Whether a table is in it.
    pub fn has_table(&self, namespace: &str, table: &str) -> bool {
        self.table.as_ref().is_none_or(|(ns, name)| ns == namespace && name == table)
    }
}
