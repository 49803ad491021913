//! Nothing spins, whatever comes of the passes: an hour of virtual time with a row that is due and never
//! looked at.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const HOUR: u64 = 3_600;

/// What came of a pass that did not look at what was due.
#[derive(Debug, Clone, Copy)]
enum Outcome {
    /// It noted so with the table.
    Noted,
    /// It could not: the clock was refused, or somebody else had the lease.
    NotNoted,
    /// It did not go through at all, so that nobody asked when to wake.
    Failed,
}

fn outcomes() -> impl Strategy<Value = Vec<(Outcome, u64)>> {
    let outcome = prop_oneof![Just(Outcome::Noted), Just(Outcome::NotNoted), Just(Outcome::Failed)];
    vec((outcome, prop_oneof![Just(0), 0..120_u64]), 1..40)
}

/// How many passes there are in an hour, these outcomes and lengths over and over: one at start, one at each
/// tick, and those that the table asked for, as the scheduler runs them.
fn passes_in_an_hour(outcomes: &[(Outcome, u64)], rules: Rules) -> u64 {
    let every = rules.every.as_secs();
    let (row, mut daemon) = (table(1, 1), Daemon::new(7));
    let (mut unlooked, mut noted) = (0, 0);
    let (mut now, mut tick, mut is_wake, mut passes) = (0, 0, false, 0);
    for (outcome, length) in outcomes.iter().cycle() {
        passes += 1;
        let began = daemon.at(now);
        now += length;
        if let Outcome::Noted = outcome {
            unlooked += 1;
            noted = now + quiet_after(unlooked, rules.every).as_secs();
        }
        let pass = Ended { is_wake, as_of: began.database, began: began.process };
        let due = Due {
            catalog_id: row.0,
            table_uuid: row.1,
            at: daemon.at(noted).database.max(began.database),
            was_due: true,
        };
        let moment = daemon.at(now);
        let wake_in = match outcome {
            Outcome::Failed => None,
            _ => daemon.wakes.after(&pass, &[due], moment, rules),
        };
        if !is_wake {
            tick += (now - tick) / every * every + every;
        }
        // By the length itself: in whole seconds, one of more than a second would fall on the tick.
        let room = Duration::from_secs(tick.saturating_sub(now));
        let wake = wake_in.filter(|length| *length + rules.lag / 2 <= room);
        let wake = wake.map(|length| now + length.as_secs_f64().ceil() as u64);
        is_wake = wake.is_some();
        now = wake.unwrap_or(tick).max(now);
        if now >= HOUR {
            break;
        }
    }
    passes
}

proptest! {
    #[test]
    fn nothing_spins(
        outcomes in outcomes(),
        every in prop_oneof![1..120_u64, 60..HOUR],
        lag in 1..600_u64,
    ) {
        let rules = Rules {
            every: Duration::from_secs(every),
            lag: Duration::from_secs(lag),
        };
        let most = HOUR / every + 10;
        let passes = passes_in_an_hour(&outcomes, rules);
        prop_assert!(passes <= most, "{passes} passes, not {most}");
    }
}

#[test]
fn each_outcome_alone_is_asked_for_less_and_less() {
    for (outcome, expected) in [
        // After 0, 1, 3 and 7 minutes, and at each tick.
        (Outcome::Noted, 9),
        (Outcome::NotNoted, 9),
        (Outcome::Failed, 6),
    ] {
        assert_eq!(passes_in_an_hour(&[(outcome, 0)], RULES), expected, "{outcome:?}");
    }
}
