//! How long to wait before something is tried again. Pure.

use std::time::Duration;

/// Pauses that double from `shortest` up to `longest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The longest that the first pause can be.
    pub shortest: Duration,
    /// The longest that any pause can be.
    pub longest: Duration,
}

impl Backoff {
    /// The pause before retry number `attempt`, the first being 0: between half of and all of
    /// what it has doubled to, by `random` in [0, 1), so that many do not return at once.
    pub fn pause(&self, attempt: u32, random: f64) -> Duration {
        let most = self.shortest.saturating_mul(2_u32.saturating_pow(attempt)).min(self.longest);
        most / 2 + (most / 2).mul_f64(random.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let backoff =
            Backoff { shortest: Duration::from_secs(2), longest: Duration::from_secs(60) };
        let bounds = |attempt| {
            (backoff.pause(attempt, 0.0).as_millis(), backoff.pause(attempt, 1.0).as_millis())
        };
        let expected = [
            (0, (1_000, 2_000)),
            (1, (2_000, 4_000)),
            (2, (4_000, 8_000)),
            (3, (8_000, 16_000)),
            (4, (16_000, 32_000)),
            (5, (30_000, 60_000)),
            (6, (30_000, 60_000)),
            (u32::MAX, (30_000, 60_000)),
        ];
        for (attempt, between) in expected {
            assert_eq!(bounds(attempt), between, "attempt {attempt}");
        }
        assert_eq!(backoff.pause(1, 0.25).as_millis(), 2_500);
    }
}
