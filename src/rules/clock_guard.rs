//! Whether passes may act by the database's clock. Pure.
//!
//! What has expired is decided by the database's clock alone, so one that is ahead drops what must
//! stay. Before a pass acts, this host's clock is asked, and this host's clock and CLOCK_BOOTTIME since the last
//! accepted pass.

mod refusal;

use std::time::Duration;

use uuid::Uuid;

pub use refusal::{Refusal, Witness};

use crate::rules::instant::UtcInstant;

const NANOS_PER_MILLI: i128 = 1_000_000;

/// What the clocks said at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The database's.
    pub database: UtcInstant,
    /// This host's.
    pub host: UtcInstant,
    /// CLOCK_BOOTTIME, where the host has it.
    pub boot: Option<Boot>,
}

/// CLOCK_BOOTTIME as a process read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boot {
    /// Milliseconds since the host started, suspends included.
    pub millis: i64,
    /// The random id of the process.
    pub process: Uuid,
}

/// What this host's clocks said just before, or just after, the database answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostReading {
    /// By the clock that is set.
    pub time: UtcInstant,
    /// CLOCK_BOOTTIME in milliseconds.
    pub boot_millis: Option<i64>,
}

impl Reading {
    /// The reading of a database that answered between two readings of this host's clocks.
    ///
    /// It read its clock at some moment between them; the one that speaks best for it is taken, so
    /// that a slow answer is no skew.
    pub fn between(
        before: HostReading,
        database: UtcInstant,
        after: HostReading,
        process: Uuid,
    ) -> Self {
        // A host whose clock was set back in between has no order to rely on.
        let latest = before.time.max(after.time);
        let host = database.clamp(before.time.min(after.time), latest);
        let since_before = (host.nanos() - before.time.nanos()).max(0) / NANOS_PER_MILLI;
        let boot = before.boot_millis.zip(after.boot_millis).map(|(first, last)| Boot {
            millis: i64::try_from(i128::from(first) + since_before).unwrap_or(last).min(last),
            process,
        });
        Reading { database, host, boot }
    }

    /// A rehearsal: the host agrees, and CLOCK_BOOTTIME is not asked.
    pub fn rehearsed(at: UtcInstant) -> Self {
        Reading { database: at, host: at, boot: None }
    }

    /// How far database and host are apart.
    pub fn skew(&self) -> Duration {
        self.database.distance(self.host)
    }

    /// Why nothing may be done by this reading whatever was before: host and database are too far
    /// apart.
    pub fn apart(&self, max_skew: Duration) -> Option<Refusal> {
        let Reading { database, host, .. } = *self;
        (self.skew() > max_skew).then_some(Refusal::Apart { database, host, max_skew })
    }
}

/// What is remembered of a catalog's passes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// The last accepted pass.
    pub accepted: Option<Accepted>,
    /// That passes were refused since.
    pub refused: Option<RefusedSince>,
    /// A person has accepted the clock for the next pass, whatever it is.
    pub is_accepted_once: bool,
}

/// The clocks of an accepted pass. Host and CLOCK_BOOTTIME are `None` where they have nothing to say
/// for later passes: host and database disagreed, and a person accepted that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// The database's.
    pub now: UtcInstant,
    /// The host's.
    pub host: Option<UtcInstant>,
    pub boot: Option<Boot>,
}

/// The refused passes since the last accepted one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedSince {
    /// The database's time of the first of them; of those for CLOCK_BOOTTIME, if there were any.
    pub at: UtcInstant,
    /// Whether CLOCK_BOOTTIME was the reason for one.
    pub by_boot: bool,
}

impl Memory {
    /// The same without a person's acceptance: what the rules alone say.
    pub fn by_rule(self) -> Self {
        Memory { is_accepted_once: false, ..self }
    }
}

/// A pass that may act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acceptance {
    /// A person accepted the clock for it; that is used up by it.
    pub is_by_hand: bool,
    /// What was noted before is dated by a clock that was refused, or set back, since.
    pub starts_epoch: bool,
    /// What is to be remembered.
    pub remembered: Accepted,
}

/// Whether a pass may act by this reading. Three witnesses are asked:
/// - **This host's clock.** More than `guard.max_clock_skew` from the database's, either way, and one
///   of them is wrong.
/// - **This host's clock since the last accepted pass.** Whatever each of them said then, the database's
///   must not have gone on by more than the host's, beyond twice that skew: each of the two
///   readings may be off by one, of whichever host.
/// - **CLOCK_BOOTTIME since then**, which counts suspends and which nobody sets, so it also
///   notices where one machine's clock is both. It is only compared within one process. Where it was
///   the reason for a refusal, another process cannot ask it again, and refuses as long as the
///   database's clock has not gone back to before that refusal.
///
/// What a refused pass saw is not remembered: the comparison goes on from the last accepted one, so a
/// clock that comes back is accepted again.
///
/// # Errors
/// Why it may not.
pub fn decide(
    reading: &Reading,
    memory: &Memory,
    max_skew: Duration,
) -> Result<Acceptance, Refusal> {
    let apart = reading.apart(max_skew);
    let tolerance = max_skew.as_nanos() as i128 * 2;
    let since = memory.accepted.as_ref().map(|accepted| Since::of(accepted, reading));
    if !memory.is_accepted_once {
        if let Some(refusal) = apart {
            return Err(refusal);
        }
        if let Some((witness, database_nanos, witness_nanos)) =
            since.as_ref().and_then(|since| since.outrun(tolerance))
        {
            return Err(Refusal::Jumped { witness, database_nanos, witness_nanos, max_skew });
        }
        let asked_again = since.as_ref().is_some_and(|since| since.boot.is_some());
        if let Some(RefusedSince { at, by_boot: true }) = memory.refused
            && !asked_again
            && reading.database.nanos() >= at.nanos() - tolerance
        {
            return Err(Refusal::StillAhead { since: at });
        }
    }
    let was_set_back = since.as_ref().is_some_and(|since| since.was_set_back(tolerance));
    let was_in_doubt = memory.accepted.is_some_and(|accepted| accepted.host.is_none());
    let agrees = apart.is_none();
    Ok(Acceptance {
        is_by_hand: memory.is_accepted_once,
        starts_epoch: memory.refused.is_some()
            || memory.is_accepted_once
            || was_set_back
            || was_in_doubt,
        remembered: Accepted {
            now: reading.database,
            host: agrees.then_some(reading.host),
            boot: reading.boot.filter(|_| agrees),
        },
    })
}

/// By how many nanoseconds each clock moved since the last accepted pass, where that is known.
struct Since {
    database: i128,
    host: Option<i128>,
    boot: Option<i128>,
}

impl Since {
    fn of(accepted: &Accepted, reading: &Reading) -> Self {
        let moved = |from: UtcInstant, to: UtcInstant| to.nanos() - from.nanos();
        let of_process = |(then, now): (Boot, Boot)| {
            (then.process == now.process)
                .then(|| (i128::from(now.millis) - i128::from(then.millis)) * NANOS_PER_MILLI)
        };
        Since {
            database: moved(accepted.now, reading.database),
            host: accepted.host.map(|host| moved(host, reading.host)),
            boot: accepted.boot.zip(reading.boot).and_then(of_process),
        }
    }

    /// The first witness that the database's clock left behind, and both movements.
    fn outrun(&self, tolerance: i128) -> Option<(Witness, i128, i128)> {
        let witnesses = [(Witness::BootTime, self.boot), (Witness::Host, self.host)];
        witnesses.into_iter().find_map(|(witness, moved)| {
            let moved = moved.filter(|moved| self.database - moved > tolerance)?;
            Some((witness, self.database, moved))
        })
    }

    /// Whether the clock was set back, to before the last accepted pass or by what CLOCK_BOOTTIME says:
    /// it is wrong now, or was then.
    fn was_set_back(&self, tolerance: i128) -> bool {
        self.database < -tolerance || self.boot.is_some_and(|boot| boot - self.database > tolerance)
    }
}

#[cfg(test)]
mod tests;
