//! How long the pause of a tuple that waits is. Pure.

use std::time::Duration;

use super::WaitReason;
use crate::rules::backoff::Backoff;

/// The longest pause, unless full passes come more often.
const LONGEST: Duration = Duration::from_secs(6 * 3600);

/// The first pause of a poisoned tuple.
const POISONED_FIRST: Duration = Duration::from_secs(15 * 60);

/// What the pauses go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pauses {
    /// The distance of two passes.
    pub pass_every: Duration,
    /// The distance of two full passes.
    pub full_pass_every: Duration,
    /// Whether a pass leaves alone what pauses: a full one does not, nor `tailrace sweep`.
    pub are_heeded: bool,
}

impl Pauses {
    /// The longest pause.
    pub fn longest(&self) -> Duration {
        LONGEST.min(self.full_pass_every)
    }

    /// The pause after so many looks in a row that found it so for the same reason. After the first one
    /// there is none: the next pass looks again, for what is busy is so for a moment most of the time.
    pub fn after(&self, looks: u32, reason: WaitReason) -> Option<Duration> {
        match (reason, looks) {
            // The whole of it: passes of one daemon do not get in each other's way.
            (WaitReason::Poisoned, _) => {
                let longest = self.longest();
                let poisoned = Backoff { shortest: POISONED_FIRST.min(longest), longest };
                Some(poisoned.pause(looks.saturating_sub(1), 1.0))
            }
            (_, 0 | 1) => None,
            (_, looks) => {
                let grown = self.pass_every.saturating_mul(2_u32.saturating_pow(looks - 2));
                Some(grown.min(self.longest()))
            }
        }
    }
}
