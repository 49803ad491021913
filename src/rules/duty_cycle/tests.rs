use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
/// Sums of lengths that went through floating point.
const HAIR: Duration = Duration::from_micros(10);

/// The holds so far, as (start, end) since the beginning.
struct Bench {
    origin: Instant,
    now: Duration,
    pacer: Pacer,
    holds: Vec<(Duration, Duration)>,
}

impl Bench {
    fn new() -> Self {
        Bench {
            origin: Instant::now(),
            now: Duration::ZERO,
            pacer: Pacer::default(),
            holds: Vec::new(),
        }
    }

    /// Rests as it has to, then holds; returns the rest.
    fn hold(&mut self, length: Duration, duty: f64) -> Duration {
        let rest = self.pacer.rest(self.origin + self.now, duty);
        self.now += rest;
        self.holds.push((self.now, self.now + length));
        self.now += length;
        self.pacer.held(self.origin + self.now, length);
        rest
    }

    /// What was held between two instants.
    fn held(&self, from: Duration, to: Duration) -> Duration {
        let within =
            |(start, end): &(Duration, Duration)| (*end).min(to).saturating_sub((*start).max(from));
        self.holds.iter().map(within).sum()
    }

    /// The largest sum of holds in any minute. A minute that has the most ends where a hold ends,
    /// or begins where one begins.
    fn worst_minute(&self) -> Duration {
        let ends = self.holds.iter().map(|(_, end)| self.held(end.saturating_sub(WINDOW), *end));
        let starts = self.holds.iter().map(|(start, _)| self.held(*start, *start + WINDOW));
        ends.chain(starts).max().unwrap_or_default()
    }
}

#[test]
fn the_rest_is_in_proportion() {
    for (hold, duty, rest) in [
        (SECOND, 0.2, 4 * SECOND),
        (SECOND, 0.5, SECOND),
        (SECOND, 1.0, Duration::ZERO),
        (Duration::ZERO, 0.2, Duration::ZERO),
        // With the next one all of the share of a minute, and no more.
        (6 * SECOND, 0.2, 24 * SECOND),
        // Longer than the share of a minute.
        (20 * SECOND, 0.2, 80 * SECOND),
    ] {
        let mut bench = Bench::new();
        assert_eq!(bench.hold(hold, duty), Duration::ZERO, "nothing was held before");
        assert_eq!(bench.hold(hold, duty), rest, "{hold:?} at {duty}");
    }
}

#[test]
fn what_has_passed_since_counts_as_rest() {
    let mut bench = Bench::new();
    bench.hold(SECOND, 0.2);
    bench.now += 3 * SECOND;
    assert_eq!(bench.hold(SECOND, 0.2), SECOND);
    bench.now += 300 * SECOND;
    assert_eq!(bench.hold(SECOND, 0.2), Duration::ZERO);
}

/// Two holds of 10 s with 40 s between them lie in one minute.
#[test]
fn long_holds_do_not_meet_in_one_minute() {
    let mut bench = Bench::new();
    bench.hold(10 * SECOND, 0.2);
    assert_eq!(bench.hold(10 * SECOND, 0.2), 48 * SECOND);
    assert_eq!(bench.worst_minute(), 12 * SECOND);
}

#[test]
fn only_a_minute_is_remembered() {
    let mut bench = Bench::new();
    for _ in 0..1_000 {
        bench.hold(SECOND, 0.2);
    }
    assert!(bench.pacer.holds.len() <= 14, "{}", bench.pacer.holds.len());
}

fn length() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (0_u64..50).prop_map(Duration::from_millis),
        (0_u64..3_000).prop_map(Duration::from_millis),
        (0_u64..40_000).prop_map(Duration::from_millis),
    ]
}

proptest! {
    /// Whatever the holds and the pauses of other reasons between them, as long as a hold is
    /// no longer than the longest of the minute before it.
    #[test]
    fn no_minute_has_more_than_the_share(
        holds in prop::collection::vec((length(), 0.0_f64..=1.0, 0_u64..30_000), 1..60),
        duty in 0.01_f64..=1.0,
    ) {
        let mut bench = Bench::new();
        let share = WINDOW.mul_f64(duty);
        for (longest, fraction, idle) in holds {
            let mut length = longest.min(share);
            let now = bench.origin + bench.now + bench.pacer.rest(bench.origin + bench.now, duty);
            if !bench.holds.is_empty() {
                length = bench.pacer.expected(now).min(share).mul_f64(fraction);
            }
            bench.hold(length, duty);
            bench.now += Duration::from_millis(idle);
        }
        let worst = bench.worst_minute();
        prop_assert!(worst <= share + HAIR, "{worst:?} of {share:?}");
    }

    /// A hold that is longer than expected takes what it takes, and is over by no more than that.
    #[test]
    fn a_surprise_costs_itself(
        holds in prop::collection::vec((length(), 0_u64..30_000), 1..60),
        duty in 0.01_f64..=1.0,
    ) {
        let mut bench = Bench::new();
        let share = WINDOW.mul_f64(duty);
        for (length, idle) in holds {
            let now = bench.origin + bench.now + bench.pacer.rest(bench.origin + bench.now, duty);
            let surprise = length.saturating_sub(bench.pacer.expected(now).min(share));
            bench.hold(length, duty);
            let (_, end) = bench.holds[bench.holds.len() - 1];
            let minute = bench.held(end.saturating_sub(WINDOW), end);
            prop_assert!(minute <= share + surprise + HAIR, "{minute:?} of {share:?}, {surprise:?}");
            bench.now += Duration::from_millis(idle);
        }
    }

    /// In the long run the share holds, surprises or not.
    #[test]
    fn in_the_long_run_the_share_is_the_duty(
        holds in prop::collection::vec(length(), 1..60),
        duty in 0.01_f64..=1.0,
    ) {
        let mut bench = Bench::new();
        for length in &holds {
            bench.hold(*length, duty);
        }
        bench.hold(Duration::ZERO, duty);
        let held: Duration = holds.iter().sum();
        prop_assert!(held <= bench.now.mul_f64(duty) + HAIR, "{held:?} of {:?}", bench.now);
    }
}
