mod spinning;

use super::*;

const EVERY: Duration = Duration::from_secs(600);
const LAG: Duration = Duration::from_secs(30);
const RULES: Rules = Rules { every: EVERY, lag: LAG };

/// The longest jitter at that lag.
const JITTER: u64 = 15;

fn table(catalog_id: i64, number: u128) -> (i64, Uuid) {
    (catalog_id, Uuid::from_u128(number))
}

/// A daemon, at so many seconds since it began, by both clocks.
struct Daemon {
    wakes: Wakes,
    began: Instant,
    epoch: UtcInstant,
}

impl Daemon {
    fn new(random: u64) -> Self {
        let epoch = "2026-09-17T05:00:00Z".parse().expect("a time");
        Daemon { wakes: Wakes::new(random), began: Instant::now(), epoch }
    }

    fn at(&self, seconds: u64) -> Moment {
        let since = Duration::from_secs(seconds);
        Moment { database: self.epoch.plus(since), process: self.began + since }
    }

    /// Of tables that fall due at these seconds, as they are told after a pass as of `since`.
    fn due(&self, since: u64, tables: &[((i64, Uuid), u64)]) -> Vec<Due> {
        let told = tables.iter().map(|((catalog_id, table_uuid), at)| Due {
            catalog_id: *catalog_id,
            table_uuid: *table_uuid,
            at: self.at((*at).max(since)).database,
            was_due: *at <= since,
        });
        told.collect()
    }

    /// In how many milliseconds it wakes, after a pass that took no time.
    fn after(&mut self, is_wake: bool, at: u64, tables: &[((i64, Uuid), u64)]) -> Option<u128> {
        let (now, due) = (self.at(at), self.due(at, tables));
        let pass = Ended { is_wake, as_of: now.database, began: now.process };
        self.wakes.after(&pass, &due, now, RULES).map(|length| length.as_millis())
    }

    /// The jitter of a catalog, in milliseconds.
    fn jitter(&self, catalog_id: i64) -> u128 {
        u128::try_from(self.wakes.jitter(catalog_id, LAG) / 1_000_000).expect("not negative")
    }
}

#[test]
fn a_table_not_looked_at_is_left_alone_for_longer_each_time() {
    let minutes = |unlooked, every: u64| {
        quiet_after(unlooked, Duration::from_secs(60 * every)).as_secs_f64() / 60.0
    };
    let expected =
        [(0, 0.0), (1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 10.0), (6, 10.0), (u32::MAX, 10.0)];
    for (unlooked, length) in expected {
        assert_eq!(minutes(unlooked, 10), length, "{unlooked}");
    }
    assert_eq!(quiet_after(1, LAG), LAG, "never longer than the distance of two passes");
    assert_eq!(quiet_after(0, LAG), Duration::ZERO);
}

#[test]
fn nothing_due_asks_for_nothing() {
    assert_eq!(Daemon::new(1).after(false, 0, &[]), None);
}

#[test]
fn the_first_due_counts_and_those_in_its_lag_wait_for_the_last() {
    let (a, b, c) = (table(1, 1), table(1, 2), table(1, 3));
    for (tables, expected) in [
        (&[(a, 100)][..], 100),
        (&[(a, 100), (b, 100), (c, 100)], 100),
        (&[(a, 100), (b, 110), (c, 130)], 130),
        (&[(c, 130), (b, 100), (a, 131)], 130),
        (&[(a, 100), (b, 131), (c, 160)], 100),
        // None waits for the next of a long row of them.
        (&[(a, 100), (b, 125), (c, 150)], 125),
    ] {
        let mut daemon = Daemon::new(1);
        let jitter = daemon.jitter(1);
        assert_eq!(daemon.after(false, 10, tables), Some((expected - 10) * 1000 + jitter));
    }
}

#[test]
fn what_fell_due_during_a_pass_is_not_waited_for() {
    let mut daemon = Daemon::new(1);
    let due = daemon.due(10, &[(table(1, 1), 11)]);
    let (then, now) = (daemon.at(10), daemon.at(100));
    let pass = Ended { is_wake: false, as_of: then.database, began: then.process };
    assert_eq!(daemon.wakes.after(&pass, &due, now, RULES), Some(Duration::ZERO));
}

#[test]
fn a_table_is_woken_for_once_a_lag() {
    let mut daemon = Daemon::new(1);
    let (a, b) = (table(1, 1), table(1, 2));
    let jitter = daemon.jitter(1);
    assert_eq!(daemon.after(false, 0, &[(a, 100), (b, 200)]), Some(100_000 + jitter));
    // The wake for `a`; more of it falls due in five seconds, as of a table that was not woken for.
    assert_eq!(daemon.after(true, 116, &[(a, 121), (b, 200)]), Some(30_000 + jitter));
    let mut daemon = Daemon::new(1);
    daemon.after(false, 0, &[(a, 100), (b, 200)]);
    assert_eq!(daemon.after(true, 116, &[(a, 300), (b, 121)]), Some(5_000 + jitter));
    // A regular pass is no wake.
    let mut daemon = Daemon::new(1);
    daemon.after(false, 0, &[(a, 100)]);
    assert_eq!(daemon.after(false, 116, &[(a, 121)]), Some(5_000 + jitter));
    // The lag counts where nothing of the table was due in between.
    let mut daemon = Daemon::new(1);
    daemon.after(false, 0, &[(a, 100)]);
    assert_eq!(daemon.after(true, 116, &[]), None);
    assert_eq!(daemon.after(true, 120, &[(a, 121)]), Some(26_000 + jitter));
}

#[test]
fn a_wake_that_was_too_early_for_a_table_was_not_for_it() {
    let mut daemon = Daemon::new(1);
    let a = table(1, 1);
    let jitter = daemon.jitter(1);
    daemon.after(false, 0, &[(a, 100)]);
    assert_eq!(daemon.after(true, 99, &[(a, 100)]), Some(1_000 + jitter));
}

#[test]
fn pauses_of_wakes_grow_until_a_pass_looks_at_what_is_due() {
    let mut daemon = Daemon::new(1);
    let (a, jitter) = (table(1, 1), daemon.jitter(1));
    let mut now = 0;
    for minutes in [1, 2, 4, 8, 10, 10] {
        let pause = daemon.after(now > 0, now, &[(a, 0)]).expect("a wake");
        assert_eq!(pause, minutes * 60_000 + jitter);
        now += 60 * u64::try_from(minutes).expect("short") + JITTER;
    }
    // A regular pass counts as well, and another table has its own pauses.
    let b = table(2, 1);
    let of_b = daemon.jitter(2);
    assert_eq!(daemon.after(false, now, &[(a, 0), (b, now)]), Some(60_000 + of_b));
    // It was looked at, and more falls due.
    assert_eq!(daemon.after(false, now + 1, &[(a, now + 5)]), Some(4_000 + jitter));
    assert_eq!(daemon.after(true, now + 20, &[(a, now + 20)]), Some(60_000 + jitter));
}

#[test]
fn daemons_and_catalogs_differ_and_one_daemon_is_steady() {
    let shares = |random: u64| (0..100).map(move |catalog_id| (random, catalog_id));
    let mut seen: Vec<i128> = shares(1)
        .chain(shares(2))
        .map(|(random, catalog_id)| Wakes::new(random).jitter(catalog_id, LAG))
        .collect();
    assert!(seen.iter().all(|jitter| (nanos(LAG) / 16..=nanos(LAG) / 2).contains(jitter)));
    assert!(seen.iter().min() < Some(&(nanos(LAG) / 8)), "{seen:?}");
    assert!(seen.iter().max() > Some(&(nanos(LAG) * 7 / 16)), "{seen:?}");
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 200);
    let daemon = Wakes::new(1);
    assert_eq!(daemon.jitter(7, LAG), daemon.jitter(7, LAG));
}

#[test]
fn a_hundred_tables_due_at_one_instant_get_one_wake_soon() {
    for random in 0..20 {
        let mut daemon = Daemon::new(random);
        let tables: Vec<_> = (0..100).map(|no| (table(no % 10, no as u128), 3_00)).collect();
        let wake = daemon.after(false, 0, &tables).expect("a wake");
        assert!((300_000..=300_000 + u128::from(JITTER) * 1000).contains(&wake), "{wake}");
        // All of them were looked at then.
        assert_eq!(daemon.after(true, 316, &[]), None);
    }
}
