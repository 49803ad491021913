use proptest::prelude::*;

use super::*;

const MAX: Duration = Duration::from_secs(300);
const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;
const THIS: Uuid = Uuid::from_u128(1);
const OTHER: Uuid = Uuid::from_u128(2);

/// So many seconds after the last accepted pass, at which all clocks agreed.
fn at(seconds: i64) -> UtcInstant {
    let then: UtcInstant = "2026-09-17T00:00:00Z".parse().expect("a time");
    then.plus_nanos(i128::from(seconds) * 1_000_000_000)
}

fn boot(seconds: i64, process: Uuid) -> Option<Boot> {
    Some(Boot { millis: 1_000_000 + seconds * 1_000, process })
}

/// How far each clock went on since then: the database's, the host's, CLOCK_BOOTTIME of this process.
fn reading(database: i64, host: i64, booted: Option<i64>) -> Reading {
    let boot = booted.and_then(|seconds| boot(seconds, THIS));
    Reading { database: at(database), host: at(host), boot }
}

fn accepted() -> Option<Accepted> {
    Some(Accepted { now: at(0), host: Some(at(0)), boot: boot(0, THIS) })
}

fn memory() -> Memory {
    Memory { accepted: accepted(), ..Memory::default() }
}

fn refused(since: i64, by_boot: bool) -> Memory {
    Memory { refused: Some(RefusedSince { at: at(since), by_boot }), ..memory() }
}

fn name(decided: &Result<Acceptance, Refusal>) -> &'static str {
    match decided {
        Ok(Acceptance { starts_epoch: false, .. }) => "goes on",
        Ok(Acceptance { starts_epoch: true, .. }) => "new epoch",
        Err(Refusal::Apart { .. }) => "apart",
        Err(Refusal::Jumped { witness: Witness::Host, .. }) => "host",
        Err(Refusal::Jumped { witness: Witness::BootTime, .. }) => "boot",
        Err(Refusal::StillAhead { .. }) => "still",
    }
}

/// Without anything remembered only host and database are compared.
#[test]
fn host_and_database_may_be_five_minutes_apart() {
    for (database, host, expected) in [
        (0, 0, "goes on"),
        (300, 0, "goes on"),
        (301, 0, "apart"),
        (0, 300, "goes on"),
        (0, 301, "apart"),
        (YEAR, 0, "apart"),
        (0, YEAR, "apart"),
        (YEAR, YEAR, "goes on"),
    ] {
        let decided = decide(&reading(database, host, Some(0)), &Memory::default(), MAX);
        assert_eq!(name(&decided), expected, "{database} {host}");
    }
}

/// The database's clock, the host's and CLOCK_BOOTTIME since the last accepted pass.
#[test]
fn against_the_last_accepted_pass() {
    for (database, host, booted, expected) in [
        (HOUR, HOUR, Some(HOUR), "goes on"),
        // The machine slept: CLOCK_BOOTTIME knows.
        (DAY, DAY, Some(DAY), "goes on"),
        // The clock of a machine that is both was set: CLOCK_BOOTTIME knows that too.
        (HOUR + 600, HOUR + 600, Some(HOUR), "goes on"),
        (HOUR + 601, HOUR + 601, Some(HOUR), "boot"),
        (YEAR, YEAR, Some(HOUR), "boot"),
        // Two disagreements of five minutes each.
        (HOUR + 600, HOUR + 300, Some(HOUR), "goes on"),
        // Host and database come first: they need no memory.
        (YEAR, HOUR, Some(HOUR), "apart"),
        (HOUR + 301, HOUR, Some(HOUR), "apart"),
        // Without CLOCK_BOOTTIME only the host is a witness.
        (YEAR, YEAR, None, "goes on"),
        // A clock that is set back drops less; what was noted before is in doubt.
        (-600, -600, None, "goes on"),
        (-601, -601, None, "new epoch"),
        (0, 0, Some(600), "goes on"),
        (0, 0, Some(601), "new epoch"),
    ] {
        let decided = decide(&reading(database, host, booted), &memory(), MAX);
        assert_eq!(name(&decided), expected, "{database} {host} {booted:?}");
    }
}

/// The host's clock since the last accepted pass counts whatever it said then, to the second.
#[test]
fn against_what_the_host_said_then() {
    for (then, expected) in [(0, "goes on"), (600, "goes on"), (601, "host"), (YEAR, "host")] {
        let host = Some(at(then));
        let memory = Memory {
            accepted: Some(Accepted { now: at(0), host, boot: None }),
            ..Memory::default()
        };
        let decided = decide(&reading(HOUR, HOUR, None), &memory, MAX);
        assert_eq!(name(&decided), expected, "{then}");
    }
}

#[test]
fn another_process_falls_back_to_the_hosts_clock() {
    let other = |database, host| Reading { boot: boot(0, OTHER), ..reading(database, host, None) };
    for (database, host, expected) in
        [(HOUR, HOUR, "goes on"), (YEAR, YEAR, "goes on"), (YEAR, HOUR, "apart")]
    {
        let decided = decide(&other(database, host), &memory(), MAX);
        assert_eq!(name(&decided), expected, "{database} {host}");
    }
    // Unless the first one has told that the clock jumped, until it goes back behind that.
    let memory = refused(YEAR, true);
    for (database, expected) in [
        (YEAR, "still"),
        (YEAR + HOUR, "still"),
        (YEAR - 600, "still"),
        (YEAR - 601, "new epoch"),
        (HOUR, "new epoch"),
    ] {
        assert_eq!(name(&decide(&other(database, database), &memory, MAX)), expected, "{database}");
    }
}

#[test]
fn a_refusal_ends_when_the_clocks_agree_again() {
    for (database, host, by_boot, expected) in [
        (HOUR, HOUR, false, "new epoch"),
        (HOUR, HOUR, true, "new epoch"),
        (YEAR, YEAR, true, "boot"),
        (YEAR, HOUR, false, "apart"),
    ] {
        let decided = decide(&reading(database, host, Some(HOUR)), &refused(60, by_boot), MAX);
        assert_eq!(name(&decided), expected, "{database} {host} {by_boot}");
    }
}

#[test]
fn a_person_accepts_once() {
    for memory in [memory(), refused(60, false), refused(60, true), Memory::default()] {
        let memory = Memory { is_accepted_once: true, ..memory };
        for (database, host) in [(YEAR, HOUR), (HOUR, YEAR), (YEAR, YEAR), (HOUR, HOUR)] {
            let reading = reading(database, host, Some(HOUR));
            let decided = decide(&reading, &memory, MAX).expect("accepted");
            assert!(decided.is_by_hand && decided.starts_epoch, "{decided:?}");
            // Where the clocks disagree nobody knows which is right: neither is a witness later.
            let agrees = database == host;
            let Accepted { now, host, boot } = decided.remembered;
            assert_eq!(now, reading.database);
            assert_eq!(host, agrees.then_some(reading.host));
            assert_eq!(boot, reading.boot.filter(|_| agrees));
            let next = Memory { accepted: Some(decided.remembered), ..Memory::default() };
            let expected = if agrees { "goes on" } else { "apart" };
            assert_eq!(name(&decide(&reading, &next, MAX)), expected);
            // Once they agree, whichever of them was mended, passes go on.
            if !agrees {
                for mended in [HOUR, YEAR] {
                    let reading = self::reading(mended, mended, Some(HOUR + 60));
                    assert_eq!(name(&decide(&reading, &next, MAX)), "new epoch", "{mended}");
                }
            }
        }
        assert_eq!(memory.by_rule().accepted, memory.accepted);
        assert!(!memory.by_rule().is_accepted_once);
    }
}

#[test]
fn a_slow_answer_is_no_skew() {
    let host = |seconds| HostReading { time: at(seconds), boot_millis: Some(seconds * 1_000) };
    for (database, skew, boot_seconds) in
        [(0, 0, 0), (30, 0, 30), (60, 0, 60), (-1, 1, 0), (61, 1, 60), (YEAR, YEAR - 60, 60)]
    {
        let read = Reading::between(host(0), at(database), host(60), THIS);
        assert_eq!(read.skew(), Duration::from_secs(skew as u64), "{database}");
        let expected = Boot { millis: boot_seconds * 1_000, process: THIS };
        assert_eq!(read.boot, Some(expected), "{database}");
    }
    // The host's clock was set while the database answered, back or ahead: nothing panics, and
    // CLOCK_BOOTTIME is one that was read in between.
    for set_to in [-YEAR, YEAR] {
        let after = HostReading { time: at(set_to), boot_millis: Some(60_000) };
        let read = Reading::between(host(0), at(set_to / 2), after, THIS);
        let millis = read.boot.expect("it was read").millis;
        assert!((0..=60_000).contains(&millis), "{millis}");
    }
    let none = HostReading { boot_millis: None, ..host(0) };
    assert_eq!(Reading::between(none, at(0), host(60), THIS).boot, None);
}

#[test]
fn reasons_in_words() {
    let of = |reading: Reading, memory: Memory| {
        decide(&reading, &memory, MAX).expect_err("refused").to_string()
    };
    assert_eq!(
        of(reading(2 * DAY, 0, None), memory()),
        "the database's clock (2026-09-19T00:00:00Z) is 2 days ahead of this host's \
         (2026-09-17T00:00:00Z), and guard.max_clock_skew is 5m"
    );
    assert_eq!(
        of(reading(0, 301, None), memory()),
        "the database's clock (2026-09-17T00:00:00Z) is 5 minutes behind this host's \
         (2026-09-17T00:05:01Z), and guard.max_clock_skew is 5m"
    );
    assert_eq!(
        of(reading(YEAR, YEAR, Some(HOUR)), memory()),
        "since the last accepted pass the database's clock went on by 365 days, and \
         CLOCK_BOOTTIME went on by 60 minutes: more than twice guard.max_clock_skew (5m) lies \
         between them"
    );
    let host = Some(at(2 * DAY));
    let of_host = Accepted { now: at(0), host, boot: None };
    assert_eq!(
        of(reading(HOUR, HOUR, None), Memory { accepted: Some(of_host), ..Memory::default() }),
        "since the last accepted pass the database's clock went on by 60 minutes, and this host's \
         clock went back by 47 hours: more than twice guard.max_clock_skew (5m) lies between them"
    );
    assert_eq!(
        of(reading(DAY, DAY, None), refused(DAY, true)),
        "another process found by CLOCK_BOOTTIME at 2026-09-18T00:00:00Z that the database's clock had \
         jumped, and it has not gone back since"
    );
}

proptest! {
    /// Whatever the clocks do, and whoever reads them: from one pass that was accepted by the rules to
    /// the next, the database's clock does not go on by more than any witness and twice the skew.
    #[test]
    fn no_accepted_pass_outruns_a_witness(
        steps in prop::collection::vec(
            (-2_000_i64..2_000, -2_000_i64..2_000, 0_i64..2_000, any::<bool>()), 1..40),
    ) {
        let (mut database, mut host, mut booted) = (0, 0, 0);
        let (mut memory, mut last) = (Memory::default(), None::<(Reading, Uuid)>);
        for (by_database, by_host, by_boot, is_this) in steps {
            database += by_database;
            host += by_host;
            booted += by_boot;
            let process = if is_this { THIS } else { OTHER };
            let reading = Reading { boot: boot(booted, process), ..reading(database, host, None) };
            match decide(&reading, &memory, MAX) {
                Err(refusal) => {
                    let by_boot = memory.refused.is_some_and(|before| before.by_boot);
                    let is_first = refusal.is_by_boot() && !by_boot;
                    let before = memory.refused.filter(|_| !is_first).map(|before| before.at);
                    memory.refused = Some(RefusedSince {
                        at: before.unwrap_or(reading.database),
                        by_boot: by_boot || refusal.is_by_boot(),
                    });
                }
                Ok(acceptance) => {
                    prop_assert!(reading.skew() <= MAX);
                    prop_assert_eq!(acceptance.remembered.host, Some(reading.host));
                    if let Some((before, by)) = last {
                        let moved = reading.database.nanos() - before.database.nanos();
                        let twice = 600_000_000_000;
                        let by_host = reading.host.nanos() - before.host.nanos();
                        prop_assert!(moved - by_host <= twice);
                        if by == process {
                            let then = before.boot.map_or(0, |boot| boot.millis);
                            let now = reading.boot.map_or(0, |boot| boot.millis);
                            prop_assert!(moved - i128::from(now - then) * 1_000_000 <= twice);
                        }
                    }
                    last = Some((reading, process));
                    memory = Memory { accepted: Some(acceptance.remembered), ..Memory::default() };
                }
            }
        }
    }
}
