//! How long to wait before the database is tried again.

use std::time::Duration;

const SHORTEST: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(60);

/// The pause before retry number `attempt`, the first being 0: between half of and all of
/// 2s, 4s, 8s, ... 60s, by `random` in [0, 1), so that many daemons do not return at once.
pub fn pause(attempt: u32, random: f64) -> Duration {
    let longest = SHORTEST.saturating_mul(2_u32.saturating_pow(attempt)).min(LONGEST);
    longest / 2 + (longest / 2).mul_f64(random.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute() {
        let bounds = |attempt| (pause(attempt, 0.0).as_millis(), pause(attempt, 1.0).as_millis());
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
        assert_eq!(pause(1, 0.25).as_millis(), 2_500);
    }
}
