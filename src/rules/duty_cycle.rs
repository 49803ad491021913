//! How long a catalog's commit lock is left alone between our holds. Pure: times go in, a rest
//! comes out.
//!
//! Two rests are due, and the longer one counts. One in proportion to the last hold, which keeps
//! the share of tailrace at the duty cycle in the long run and spreads the holds out. And one that looks at the
//! minute that the next hold would complete: equal holds with proportional rests between them can
//! still crowd into one minute (one at its start, one at its end), and holds of different
//! lengths can more so. How long the next hold will be nobody knows, so it is taken to be as long
//! as the longest one of late. A hold that surprises is over the share by the surprise, and the
//! rest after it makes up for it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The stretch of time over which tailrace's share of the lock is looked at.
pub const WINDOW: Duration = Duration::from_secs(60);

/// What is known of our holds of one catalog's commit lock: those of the last minute and the last
/// one, however old.
#[derive(Debug, Clone, Default)]
pub struct Pacer {
    /// Oldest first.
    holds: VecDeque<Hold>,
}

#[derive(Debug, Clone, Copy)]
struct Hold {
    end: Instant,
    length: Duration,
}

impl Pacer {
    /// Notes a hold that ended at `end`, whether it was committed or rolled back. Holds are noted
    /// in the order in which they ended.
    pub fn held(&mut self, end: Instant, length: Duration) {
        while self.holds.front().is_some_and(|hold| hold.age(end) > WINDOW) {
            self.holds.pop_front();
        }
        if !length.is_zero() {
            self.holds.push_back(Hold { end, length });
        }
    }

    /// How long the lock has to be left alone from `now` on, for tailrace's share of it to be at most
    /// `duty`, in (0, 1], in every minute.
    pub fn rest(&self, now: Instant, duty: f64) -> Duration {
        self.proportional(now, duty).max(self.window(now, duty))
    }

    /// After a hold of 1 s, a duty cycle of 0.2 rests for 4 s.
    fn proportional(&self, now: Instant, duty: f64) -> Duration {
        let Some(last) = self.holds.back() else { return Duration::ZERO };
        let rest = last.length.as_secs_f64() * (1.0 - duty) / duty;
        Duration::try_from_secs_f64(rest).unwrap_or(Duration::MAX).saturating_sub(last.age(now))
    }

    /// Until what was held in the minute that ends with the next hold leaves room for it.
    fn window(&self, now: Instant, duty: f64) -> Duration {
        let share = WINDOW.mul_f64(duty.clamp(0.0, 1.0));
        let next = self.expected(now).min(share);
        let mut room = share - next;
        for hold in self.holds.iter().rev() {
            if hold.length > room {
                // The newest part of this hold, as long as the room, may still be in that minute.
                return (WINDOW - next).saturating_sub(room).saturating_sub(hold.age(now));
            }
            room -= hold.length;
        }
        Duration::ZERO
    }

    /// How long the next hold is taken to be.
    fn expected(&self, now: Instant) -> Duration {
        let of_late = self.holds.iter().filter(|hold| hold.age(now) <= WINDOW);
        let longest = of_late.map(|hold| hold.length).max();
        longest.or(self.holds.back().map(|hold| hold.length)).unwrap_or_default()
    }
}

impl Hold {
    /// How long ago it ended.
    fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.end)
    }
}

#[cfg(test)]
mod tests;
