//! Why a pass is refused, and the words for it.

use std::fmt;
use std::time::Duration;

use crate::rules::instant::{UtcInstant, roughly};

/// Why a pass may not act; [`fmt::Display`] says it in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Host and database are too far apart.
    Apart {
        /// The database's time.
        database: UtcInstant,
        /// The host's.
        host: UtcInstant,
        /// How far they may be.
        max_skew: Duration,
    },
    /// The database's clock went on by more than a witness since the last accepted pass.
    Jumped {
        witness: Witness,
        /// By how many nanoseconds the database's clock went on.
        database_nanos: i128,
        /// By how many the witness did.
        witness_nanos: i128,
        /// Twice this may lie between them.
        max_skew: Duration,
    },
    /// CLOCK_BOOTTIME of another process was the reason before, and the database's clock has not gone
    /// back since.
    StillAhead {
        /// The database's time of the first refusal.
        since: UtcInstant,
    },
}

/// By what a movement of the database's clock is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Witness {
    /// This host's clock.
    Host,
    /// CLOCK_BOOTTIME.
    BootTime,
}

impl Refusal {
    /// Whether CLOCK_BOOTTIME of this process is the reason, which no other one can ask again.
    pub fn is_by_boot(&self) -> bool {
        matches!(self, Self::Jumped { witness: Witness::BootTime, .. })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apart { database, host, max_skew } => {
                let way = if database < host { "behind" } else { "ahead of" };
                write!(
                    f,
                    "the database's clock ({database}) is {} {way} this host's ({host}), and \
                     guard.max_clock_skew is {}",
                    roughly(seconds(database.nanos() - host.nanos())),
                    humantime::format_duration(*max_skew)
                )
            }
            Self::Jumped { witness, database_nanos, witness_nanos, max_skew } => {
                let witness = match witness {
                    Witness::Host => "this host's clock",
                    Witness::BootTime => "CLOCK_BOOTTIME",
                };
                write!(
                    f,
                    "since the last accepted pass the database's clock {}, and {witness} {}: more \
                     than twice guard.max_clock_skew ({}) lies between them",
                    moved(*database_nanos),
                    moved(*witness_nanos),
                    humantime::format_duration(*max_skew)
                )
            }
            Self::StillAhead { since } => write!(
                f,
                "another process found by CLOCK_BOOTTIME at {since} that the database's clock had \
                 jumped, and it has not gone back since"
            ),
        }
    }
}

fn seconds(nanos: i128) -> i64 {
    i64::try_from(nanos.abs() / 1_000_000_000).unwrap_or(i64::MAX)
}

fn moved(nanos: i128) -> String {
    let way = if nanos < 0 { "went back" } else { "went on" };
    format!("{way} by {}", roughly(seconds(nanos)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_SKEW: Duration = Duration::from_secs(30);

    fn jumped(witness: Witness, database_nanos: i128, witness_nanos: i128) -> Refusal {
        Refusal::Jumped { witness, database_nanos, witness_nanos, max_skew: MAX_SKEW }
    }

    #[test]
    fn only_the_boot_time_of_this_process_is_by_boot() {
        let since = UtcInstant::from_nanos(0);
        assert!(jumped(Witness::BootTime, 0, 0).is_by_boot());
        assert!(!jumped(Witness::Host, 0, 0).is_by_boot());
        assert!(!Refusal::StillAhead { since }.is_by_boot());
    }

    #[test]
    fn each_refusal_says_what_was_measured() {
        let (early, late) = (UtcInstant::from_nanos(0), UtcInstant::from_nanos(61_000_000_000));
        let apart = |database, host| Refusal::Apart { database, host, max_skew: MAX_SKEW };
        for (refusal, text) in [
            (
                apart(early, late),
                "the database's clock (1970-01-01T00:00:00Z) is 61 seconds behind this host's \
                 (1970-01-01T00:01:01Z), and guard.max_clock_skew is 30s",
            ),
            (
                apart(late, early),
                "the database's clock (1970-01-01T00:01:01Z) is 61 seconds ahead of this host's \
                 (1970-01-01T00:00:00Z), and guard.max_clock_skew is 30s",
            ),
            (
                jumped(Witness::Host, -90_000_000_000, 0),
                "since the last accepted pass the database's clock went back by 90 seconds, and \
                 this host's clock went on by 0 seconds: more than twice guard.max_clock_skew (30s) \
                 lies between them",
            ),
            (
                jumped(Witness::BootTime, 7_200_000_000_000, 1_000_000_000),
                "since the last accepted pass the database's clock went on by 2 hours, and \
                 CLOCK_BOOTTIME went on by 1 second: more than twice guard.max_clock_skew (30s) \
                 lies between them",
            ),
            (
                Refusal::StillAhead { since: early },
                "another process found by CLOCK_BOOTTIME at 1970-01-01T00:00:00Z that the \
                 database's clock had jumped, and it has not gone back since",
            ),
        ] {
            assert_eq!(refusal.to_string(), text);
        }
    }
}
