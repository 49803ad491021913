use super::*;

const LIMITS: RadiusLimits = RadiusLimits { min_drop_files: 100, max_drop_fraction: 0.5 };

fn day(day: i128) -> UtcInstant {
    UtcInstant::from_days(day)
}

fn change() -> RuleChange {
    RuleChange {
        rule: "rule".to_owned(),
        policy_revision: 1,
        at: day(17),
        cutoff: day(10),
        files_below: 1_000,
        held: None,
        late: LateCount::default(),
    }
}

#[test]
fn more_than_the_number_and_more_than_the_share_are_too_many() {
    for (files, live_files, allowed) in [
        (0, 0, true),
        (100, 0, true),
        (100, 100, true),
        (101, 201, false),
        (101, 202, true),
        (101, 101, false),
        (5_000, 10_000, true),
        (5_001, 10_000, false),
        (i64::MAX, i64::MAX, false),
    ] {
        assert_eq!(LIMITS.allow(files, live_files), allowed, "{files} of {live_files}");
    }
    let all = RadiusLimits { min_drop_files: 0, max_drop_fraction: 1.0 };
    assert!(all.allow(7, 7));
    let none = RadiusLimits { min_drop_files: 0, max_drop_fraction: 0.001 };
    assert!(!none.allow(1, 999) && none.allow(1, 1_000));
}

#[test]
fn live_files_are_counted_as_far_as_they_matter() {
    for (files, enough) in [(101, 202), (1, 2), (0, 0)] {
        assert_eq!(LIMITS.enough_live(files), enough);
        assert!(LIMITS.allow(files, LIMITS.enough_live(files)));
    }
    let thirds = RadiusLimits { min_drop_files: 0, max_drop_fraction: 0.3 };
    assert_eq!(thirds.enough_live(10), 34);
    assert!(thirds.allow(10, 34) && !thirds.allow(10, 33));
}

#[test]
fn what_had_expired_is_of_the_change_whatever_its_files() {
    for (range_end, expected) in
        [(day(10), true), (day(9), true), (day(10).plus_nanos(1), false), (day(11), false)]
    {
        assert_eq!(change().came_with(range_end), expected, "{range_end}");
    }
    assert!(change().may_be_late(1_000) && !change().may_be_late(999));
}

#[test]
fn late_files_of_one_day_are_counted_together() {
    let mut change = change();
    change.late.counted_below = 1_500;
    change.count_late(60, day(20));
    assert_eq!((change.late.since, change.late.files), (Some(day(20)), 60));
    change.count_late(50, day(21).plus_nanos(-1));
    assert_eq!((change.late.since, change.late.files), (Some(day(20)), 110));
    change.count_late(7, day(21));
    assert_eq!((change.late.since, change.late.files), (Some(day(21)), 7));
    change.count_late(1, day(20));
    assert_eq!(
        (change.late.since, change.late.files),
        (Some(day(20)), 1),
        "a clock that went back"
    );
    change.count_late(i64::MAX, day(20));
    assert_eq!(change.late.files, i64::MAX);
    assert_eq!(change.late.counted_below, 1_500, "what was counted stays so");
}

#[test]
fn late_files_that_are_kept_stay_counted() {
    let mut change = change();
    change.count_late(300, day(20));
    let excess = Excess { files: 300, live_files: 400, at: day(20) };
    change.late.held = Some(excess);
    change.count_late(1, day(30));
    assert_eq!((change.late.since, change.late.files), (Some(day(20)), 301));
    assert_eq!(change.late.held, Some(excess));
    assert!(change.holds_any());
    change.late.counted_below = 1_500;
    change.let_go();
    assert_eq!(change.late, LateCount { counted_below: 1_500, ..LateCount::default() });
    assert!(!change.holds_any());
}

#[test]
fn what_an_earlier_program_stored_is_read() {
    let stored = r#"{"rule":"r","policy_revision":4,"at":"1970-01-18T00:00:00Z",
        "cutoff":"1970-01-11T00:00:00Z","files_below":9,"held":null}"#;
    let read: RuleChange = serde_json::from_str(stored).expect("it is read");
    let expected =
        RuleChange { rule: "r".to_owned(), policy_revision: 4, files_below: 9, ..change() };
    assert_eq!(read, expected);
}
