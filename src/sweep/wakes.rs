//! When the daemon wakes between two regular passes, for rows of the calendar that fall due. Pure.
//!
//! A table wakes it once a lag at most. Those that fall due within a lag of one another wait for the last
//! of them, so that one pass does for all.
//!
//! Wakes do not follow each other without end. A pass may leave something of a table that was due when the
//! pass began, for whatever reason. The table then causes no wake for a pause ([`quiet_after`]), which grows
//! with each such pass up to the time between two regular passes. A pass notes the pause with the table, for
//! all daemons. The pause is kept here too, because a pass cannot note it where the clock is refused, another
//! daemon has the lease, or the database accepts no writes.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::catalog::wakes::Due;
use crate::rules::instant::UtcInstant;

/// The first pause of a table of which what was due was not looked at.
const FIRST_PAUSE: Duration = Duration::from_secs(60);

/// How long a table wakes nobody after so many passes in a row that did not look at what was due of it:
/// a minute, doubled with each of them, up to `every`.
pub fn quiet_after(unlooked: u32, every: Duration) -> Duration {
    match unlooked.checked_sub(1) {
        None => Duration::ZERO,
        Some(more) => FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(more)).min(every),
    }
}

/// What of the configuration wakes go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The distance of two regular passes.
    pub every: Duration,
    /// How long rows that are due wait for others (`schedule.lag`).
    pub lag: Duration,
}

/// A pass that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Whether it was a wake.
    pub is_wake: bool,
    /// The time of its decisions, by the database's clock.
    pub as_of: UtcInstant,
    /// When it began, by the clock of the process.
    pub began: Instant,
}

/// A moment by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The database's, by which rows fall due.
    pub database: UtcInstant,
    /// That of the process, which nobody can set, by which pauses end.
    pub process: Instant,
}

/// What a daemon knows of the tables that something falls due of before the next regular pass.
#[derive(Debug)]
pub struct Wakes {
    random: u64,
    tables: HashMap<(i64, Uuid), Table>,
}

#[derive(Debug, Clone, Copy)]
struct Table {
    /// From when on it may wake somebody, as it was told after the last pass, if it was.
    at: Option<UtcInstant>,
    /// When the last wake for it began.
    woken: Option<Instant>,
    /// How many passes in a row did not look at what was due.
    unlooked: u32,
    /// For that.
    quiet_until: Option<Instant>,
}

impl Wakes {
    /// Those of a daemon that begins. Daemons with other `random` numbers do not all wake at once.
    pub fn new(random: u64) -> Self {
        Wakes { random, tables: HashMap::new() }
    }

    /// How long after `now` the next wake is; `due` is what was asked at the end of a pass, from its
    /// time on ([`first_due`](crate::catalog::wakes::first_due)).
    ///
    /// That is when the first table may wake somebody, or a later one that does so within a lag of it.
    pub fn after(
        &mut self,
        pass: &Ended,
        due: &[Due],
        now: Moment,
        rules: Rules,
    ) -> Option<Duration> {
        let mut before = std::mem::take(&mut self.tables);
        if pass.is_wake {
            let is_for = |table: &&mut Table| table.at.is_some_and(|at| at <= pass.as_of);
            before.values_mut().filter(is_for).for_each(|table| table.woken = Some(pass.began));
        }
        let mut instants = Vec::with_capacity(due.len());
        for due in due {
            let key = (due.catalog_id, due.table_uuid);
            let table = next_of(before.remove(&key), due, now, rules);
            instants.push(
                table.nanos_from(due.at, now, rules) + self.jitter(due.catalog_id, rules.lag),
            );
            self.tables.insert(key, table);
        }
        // A table that something new falls due of is still woken for once a lag at most.
        for (key, Table { woken, .. }) in before {
            let table = Table { at: None, woken, unlooked: 0, quiet_until: None };
            if table.lag_over(rules).is_some_and(|then| then > now.process) {
                self.tables.insert(key, table);
            }
        }

        let together = instants.iter().min()? + nanos(rules.lag);
        let latest = instants.into_iter().filter(|at| *at <= together).max()?;
        Some(Duration::from_nanos(u64::try_from(latest.max(0)).unwrap_or(u64::MAX)))
    }

    /// Between a sixteenth and a half of the lag, always the same of a daemon and catalog. It is never none:
    /// the database's clock and ours do not run at quite the same speed, and a wake that came a moment too
    /// early would be for nothing.
    fn jitter(&self, catalog_id: i64, lag: Duration) -> i128 {
        let mut hasher = DefaultHasher::new();
        (self.random, catalog_id).hash(&mut hasher);
        let share = hasher.finish() as f64 / u64::MAX as f64;
        nanos(lag.mul_f64((1.0 + 7.0 * share) / 16.0))
    }
}

/// What is known of a table after a pass, from what was known before it.
fn next_of(before: Option<Table>, due: &Due, now: Moment, rules: Rules) -> Table {
    let woken = before.and_then(|table| table.woken);
    let (unlooked, quiet_until) = match due.was_due {
        true => {
            let unlooked = before.map_or(0, |table| table.unlooked).saturating_add(1);
            (unlooked, now.process.checked_add(quiet_after(unlooked, rules.every)))
        }
        false => (0, None),
    };
    Table { at: Some(due.at), woken, unlooked, quiet_until }
}

impl Table {
    /// When it may be woken for again, for it was.
    fn lag_over(&self, rules: Rules) -> Option<Instant> {
        self.woken?.checked_add(rules.lag)
    }

    /// When it may wake somebody of which something falls due at `at`, from `now` on; negative where that is over.
    fn nanos_from(&self, at: UtcInstant, now: Moment, rules: Rules) -> i128 {
        let by_database = at.nanos() - now.database.nanos();
        let by_process = [self.lag_over(rules), self.quiet_until].into_iter().flatten();
        let from_now = |then: Instant| {
            nanos(then.saturating_duration_since(now.process))
                - nanos(now.process.saturating_duration_since(then))
        };
        by_process.map(from_now).fold(by_database, i128::max)
    }
}

fn nanos(length: Duration) -> i128 {
    length.as_nanos() as i128
}
