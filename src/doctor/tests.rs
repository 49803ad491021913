use std::collections::BTreeSet;
use std::time::Duration;

use super::clocks::{of_host, of_snapshots};
use super::queue::{of_queue, of_snapshots as of_churn};
use super::{Level, indexes, listed, roughly};
use crate::catalog::clock::Behind;
use crate::catalog::inventory::maintenance_state::{Churn, Drained};
use crate::rules::clock_guard::Reading;
use crate::rules::instant::UtcInstant;
use tailrace_kit::lake::SCHEMA;

#[test]
fn lengths_of_time_in_words() {
    for (seconds, words) in [
        (-1, "0 seconds"),
        (1, "1 second"),
        (119, "119 seconds"),
        (120, "2 minutes"),
        (7_199, "119 minutes"),
        (7_200, "2 hours"),
        (172_799, "47 hours"),
        (172_800, "2 days"),
        (9_000_000, "104 days"),
    ] {
        assert_eq!(roughly(seconds), words);
    }
}

#[test]
fn long_lists_are_cut() {
    let names = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
    assert_eq!(listed(&names(5)), "0, 1, 2, 3, 4");
    assert_eq!(listed(&names(7)), "0, 1, 2, 3, 4 and 2 more");
}

/// The statements that doctor prints build what the server itself would have built.
#[test]
fn each_index_is_that_of_the_server() {
    let schema = SCHEMA.split_whitespace().collect::<Vec<_>>().join(" ");
    for (name, table, rest) in indexes::USED {
        let statement = format!("create index {name} on {table} {rest};");
        assert!(schema.contains(&statement), "{statement}");
    }
    let names: BTreeSet<_> = indexes::USED.iter().map(|(name, ..)| name).collect();
    assert_eq!(names.len(), indexes::USED.len());
}

fn second(seconds: i128) -> UtcInstant {
    UtcInstant::from_nanos(seconds * 1_000_000_000)
}

#[test]
fn host_and_database() {
    let max_skew = Duration::from_secs(300);
    for (database, level, what) in [
        (1_060, Level::Ok, "this host's clock and the database's agree"),
        (1_061, Level::Warning, "the database's clock is 61 seconds ahead of this host's"),
        (1_300, Level::Warning, "the database's clock is 5 minutes ahead of this host's"),
        (1_301, Level::Problem, "the database's clock is 5 minutes ahead of this host's"),
        (940, Level::Ok, "this host's clock and the database's agree"),
        (939, Level::Warning, "the database's clock is 61 seconds behind this host's"),
        (699, Level::Problem, "the database's clock is 5 minutes behind this host's"),
    ] {
        let reading = Reading { database: second(database), host: second(1_000), boot: None };
        let found = of_host(&reading, max_skew);
        assert_eq!((found.level, found.what.as_str()), (level, what));
    }
    // Who allows for less than a minute hears of less.
    let reading = Reading { database: second(1_002), host: second(1_000), boot: None };
    assert_eq!(of_host(&reading, Duration::from_secs(1)).level, Level::Problem);
}

#[test]
fn a_clock_behind_its_own_snapshots() {
    for (by, level) in [(60, Level::Note), (61, Level::Problem)] {
        let behind = Behind {
            now: second(0),
            newest_snapshot: second(by),
            by: Duration::from_secs(by as u64),
        };
        assert_eq!(of_snapshots("lake", Some(&behind)).level, level);
    }
    assert_eq!(of_snapshots("lake", None).level, Level::Ok);
}

#[test]
fn how_long_the_queue_takes() {
    for (undrained, rows, seconds, level, what) in [
        (0, 0, 0.0, Level::Ok, "no object waits to be deleted"),
        (
            1,
            99,
            60.0,
            Level::Ok,
            "1 object waits to be deleted: about 1 second at 4000 an hour, the server's default, for too few were drained of late",
        ),
        (
            96_000,
            0,
            0.0,
            Level::Ok,
            "96000 objects wait to be deleted: about 24 hours at 4000 an hour, the server's default, for too few were drained of late",
        ),
        (
            96_001,
            0,
            0.0,
            Level::Warning,
            "96001 objects wait to be deleted: about 24 hours at 4000 an hour, the server's default, for too few were drained of late",
        ),
        (
            100_000,
            100,
            3_600.0,
            Level::Warning,
            "100000 objects or more wait to be deleted: about 41 days at 100 an hour, as of late",
        ),
        (
            100_000,
            20_000,
            120.0,
            Level::Ok,
            "100000 objects or more wait to be deleted: about 10 minutes at 600000 an hour, as of \
             late",
        ),
    ] {
        let found = of_queue("lake", undrained, 0, &Drained { rows, seconds });
        assert_eq!((found.level, found.what.as_str()), (level, what));
    }
}

#[test]
fn what_is_stuck_takes_no_time() {
    let drained = Drained { rows: 400, seconds: 3_600.0 };
    for (undrained, stuck, level, what) in [
        (1, 1, Level::Ok, "no object waits to be deleted, but what is stuck"),
        (
            401,
            1,
            Level::Ok,
            "400 objects wait to be deleted: about 60 minutes at 400 an hour, as of late",
        ),
    ] {
        let found = of_queue("lake", undrained, stuck, &drained);
        assert_eq!((found.level, found.what.as_str()), (level, what));
    }
}

#[test]
fn whose_snapshots() {
    for (snapshots, ours, seconds, level, what) in [
        (0, 0, 3_600.0, Level::Ok, "0 snapshots in the last hour, 0 of them by tailrace"),
        (4, 2, 3_600.0, Level::Ok, "4 snapshots in the last hour, 2 of them by tailrace"),
        (4, 3, 3_600.0, Level::Note, "4 snapshots in the last hour, 3 of them by tailrace"),
        (
            5_000,
            50,
            1_800.0,
            Level::Ok,
            "10000 snapshots in the last hour, 100 of them by tailrace",
        ),
    ] {
        let found = of_churn("lake", &Churn { snapshots, ours, seconds });
        assert_eq!((found.level, found.what.as_str()), (level, what));
    }
}

/// Names are anybody's: a line to copy does what it says and nothing else.
#[test]
fn words_for_a_shell() {
    for (word, quoted) in [
        ("events.raw", "events.raw"),
        ("day(at)", "'day(at)'"),
        ("", "''"),
        ("a b", "'a b'"),
        ("x;rm -rf ~", "'x;rm -rf ~'"),
        ("$(id)`id`", "'$(id)`id`'"),
        ("it's", r"'it'\''s'"),
        ("é", "'é'"),
    ] {
        assert_eq!(super::shell_word(word), quoted);
    }
}
