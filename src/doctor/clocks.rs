//! Whether the clocks agree: this host's, the database's, and the times of snapshots.

use std::time::Duration;

use super::{Finding, Level, roughly};
use crate::catalog::clock::Behind;
use crate::instant::UtcInstant;
use crate::sweep::CLOCK_TOLERANCE;

const CHECK: &str = "clocks";

/// Readings of two clocks: the host's before and after the database was asked.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    /// The host's, before.
    pub host_before: UtcInstant,
    /// The database's.
    pub database: UtcInstant,
    /// The host's, after.
    pub host_after: UtcInstant,
}

impl Clocks {
    /// By how much they differ at least: nothing where the database's time lies between the two.
    pub fn skew(&self) -> Duration {
        match self.database {
            database if database < self.host_before => self.host_before.distance(database),
            database if database > self.host_after => database.distance(self.host_after),
            _ => Duration::ZERO,
        }
    }
}

/// The host against the database.
pub fn of_host(clocks: &Clocks) -> Finding {
    let skew = clocks.skew();
    let seconds = i64::try_from(skew.as_secs()).unwrap_or(i64::MAX);
    if skew <= CLOCK_TOLERANCE {
        return Finding::ok(CHECK, "this host's clock and the database's agree");
    }
    let way = if clocks.database < clocks.host_before { "behind" } else { "ahead of" };
    Finding::new(
        Level::Warning,
        CHECK,
        format!("the database's clock is {} {way} this host's", roughly(seconds)),
        "what has expired is decided by the database's clock alone, so a wrong one drops too early \
         or too late",
        "find out which of them is wrong, and set it by NTP",
    )
}

/// The database against what it has written itself.
pub fn of_snapshots(catalog: &str, behind: Option<&Behind>) -> Finding {
    let Some(behind) = behind else {
        let what = "no snapshot is younger than the database's clock says it is now";
        return Finding::ok(CHECK, what).of_catalog(catalog);
    };
    let seconds = i64::try_from(behind.by.as_secs()).unwrap_or(i64::MAX);
    let (level, why) = match behind.by > CLOCK_TOLERANCE {
        true => (
            Level::Problem,
            "the clock is wrong or was, and passes drop nothing until it has \
                                  caught up",
        ),
        false => (Level::Note, "the clock went back a little; passes go on"),
    };
    Finding::new(
        level,
        CHECK,
        format!(
            "the database's clock is {} behind the newest snapshot ({})",
            roughly(seconds),
            behind.newest_snapshot
        ),
        why,
        "set the database host's clock by NTP",
    )
    .of_catalog(catalog)
}
