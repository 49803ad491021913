//! Computes the time of the next tick. The current time is an argument.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use crate::config::{Config, Cron};

/// The rule by which ticks follow each other.
#[derive(Debug, Clone, PartialEq)]
pub enum Schedule {
    /// Ticks at a fixed distance, counted by a clock that nobody can set.
    Every(Duration),
    /// Ticks at instants of the calendar, in UTC.
    Cron(Box<Cron>),
}

impl Schedule {
    /// `schedule.cron`, else `schedule.every`, else its default.
    pub fn from_config(config: &Config) -> Self {
        match &config.schedule.cron {
            Some(cron) => Self::Cron(Box::new(cron.clone())),
            None => Self::Every(config.every()),
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every(every) => write!(f, "every {}", humantime::format_duration(*every)),
            Self::Cron(cron) => write!(f, "cron {cron}"),
        }
    }
}

/// The ticks of `schedule.every`, as they are used.
///
/// Ticks that fall into a regular pass are left out, and the next pass begins at the tick after them. A
/// tick that falls into a wake is still due, because wakes could otherwise delay regular passes for
/// ever.
pub struct Ticks {
    /// The last one that was used, without its delay.
    used: Instant,
    /// The next one without and with its delay, once somebody has asked for it.
    next: Option<(Instant, Instant)>,
}

impl Ticks {
    /// The first one is now, and is used.
    pub fn since(now: Instant) -> Self {
        Ticks { used: now, next: None }
    }

    /// When the next one is, with a delay that is drawn once.
    pub fn next(
        &mut self,
        now: Instant,
        every: Duration,
        delay: impl FnOnce() -> Duration,
    ) -> Instant {
        let used = self.used;
        let (_, with_delay) = *self.next.get_or_insert_with(|| {
            let next = used + missed(now.saturating_duration_since(used), every) + every;
            (next, next + delay())
        });
        with_delay
    }

    /// A regular pass begins at the next one.
    pub fn use_next(&mut self) {
        self.used = self.next.take().map_or(self.used, |(next, _)| next);
    }

    /// A regular pass begins, but not at a tick. Ticks that fall into this pass are left out as
    /// well.
    pub fn reckon_anew(&mut self) {
        self.next = None;
    }
}

/// The length of the whole ticks of `every` within `elapsed`, the time since the last tick that was
/// used. These ticks are left out: the next one is a tick later.
pub fn missed(elapsed: Duration, every: Duration) -> Duration {
    let ticks = elapsed.as_nanos() / every.as_nanos().max(1);
    every.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};

    use super::*;

    #[test]
    fn whole_ticks_are_missed_and_parts_are_not() {
        let table = [(0, 0), (9_999, 0), (10_000, 10_000), (10_001, 10_000), (35_000, 30_000)];
        for (elapsed, expected) in table {
            let missed = missed(Duration::from_millis(elapsed), Duration::from_secs(10));
            assert_eq!(missed.as_millis(), expected, "after {elapsed} ms");
        }
    }

    #[test]
    fn cron_is_in_utc_and_strictly_later() {
        let cron: Cron = "0 30 4 * * Mon-Fri".parse().expect("valid");
        let next = |now: &str| cron.next_after(now.parse::<DateTime<Utc>>().expect("a time"));
        let at = |text: &str| Some(text.parse::<DateTime<Utc>>().expect("a time"));
        assert_eq!(next("2026-09-17T04:29:59.999999Z"), at("2026-09-17T04:30:00Z"));
        assert_eq!(next("2026-09-17T04:30:00Z"), at("2026-09-18T04:30:00Z"));
        // From Friday over the weekend to Monday.
        assert_eq!(next("2026-09-18T04:30:00Z"), at("2026-09-21T04:30:00Z"));
        assert_eq!(next("2026-09-17T06:00:00+02:00"), at("2026-09-17T04:30:00Z"));
    }
}
