use super::*;

fn at(text: &str) -> UtcInstant {
    text.parse().expect("an instant")
}

const DAY: Duration = Duration::from_secs(86_400);
const NOW: &str = "2026-11-30T12:00:00Z";
const CUTOFF: &str = "2026-11-23T12:00:00Z";

fn marks(files_below: i64, through_snapshot: i64) -> Marks {
    Marks { files_below, through_snapshot }
}

fn cursor(marks: Marks, through: &str) -> Cursor {
    Cursor { marks, expired_through: at(through), skipped: Texts::new() }
}

fn reading(marks: Marks, cutoff: &str) -> Reading {
    Reading {
        after: Place::START,
        marks,
        cutoff: at(cutoff),
        began_at: None,
        is_listing: false,
        census: Census::default(),
        stayed: Stayed::default(),
    }
}

#[test]
fn nothing_that_lies_in_the_future_is_relied_on() {
    let now_marks = marks(100, 10);
    for (remembered, through, is_kept) in [
        (marks(100, 10), CUTOFF, true),
        (marks(1, 0), "2026-11-23T11:59:59.999999Z", true),
        (marks(101, 10), CUTOFF, false),
        (marks(100, 11), CUTOFF, false),
        (marks(100, 10), "2026-11-23T12:00:00.000001Z", false),
    ] {
        let memory = Memory {
            cursor: Some(cursor(remembered, through)),
            reading: Some(reading(remembered, through)),
            ..Memory::default()
        };
        let checked = memory.checked(now_marks, at(CUTOFF), at(NOW));
        assert_eq!((checked.cursor.is_some(), checked.reading.is_some()), (is_kept, is_kept));
    }
    for (when, is_kept) in [(NOW, true), ("2026-11-30T12:00:00.000001Z", false)] {
        let memory = Memory {
            full_pass_at: Some(at(when)),
            census: Some((Census::default(), at(when))),
            ..Memory::default()
        };
        let checked = memory.checked(now_marks, at(CUTOFF), at(NOW));
        assert_eq!((checked.full_pass_at.is_some(), checked.census.is_some()), (is_kept, is_kept));
    }
}

#[test]
fn a_full_pass_without_a_cursor_and_when_it_is_due() {
    let some = cursor(marks(5, 5), CUTOFF);
    let fresh = Some(at("2026-11-29T12:00:00.000001Z"));
    let stale = Some(at("2026-11-29T12:00:00Z"));
    for (has_cursor, full_pass_at, has_reading, is_full) in [
        (false, fresh, false, true),
        (false, None, true, true),
        (true, fresh, false, false),
        (true, stale, false, true),
        (true, None, false, true),
        // A full pass that is under way has looked everywhere; what is left is the reading.
        (true, stale, true, false),
        (true, None, true, false),
    ] {
        let memory = Memory {
            cursor: has_cursor.then(|| some.clone()),
            full_pass_at,
            reading: has_reading.then(|| reading(marks(5, 5), CUTOFF)),
            census: None,
            ..Memory::default()
        };
        let expected = if is_full { Way::Full } else { Way::Incremental(some.clone()) };
        assert_eq!(
            memory.way(at(NOW), DAY),
            expected,
            "{has_cursor} {full_pass_at:?} {has_reading}"
        );
    }
}

#[test]
fn a_claim_stops_before_what_was_not_looked_at() {
    let claim = |unseen: Option<&str>| Claim {
        marks: marks(7, 3),
        cutoff: at(CUTOFF),
        unseen_from: unseen.map(at),
    };
    let mut stayed = Stayed::default();
    stayed.note(0, "20700".to_owned(), at("2026-09-05T00:00:00Z"));
    let skipped = Texts::from([(0, BTreeSet::from(["20700".to_owned()]))]);
    for (unseen, through) in [
        (None, at(CUTOFF)),
        (Some("2026-11-20T00:00:00Z"), at("2026-11-20T00:00:00Z").plus_nanos(-1)),
        // A tuple that was put off may have expired by another reading than its own.
        (Some("2026-12-20T00:00:00Z"), at(CUTOFF)),
    ] {
        let cursor = claim(unseen).cursor(&stayed);
        let skipped = skipped.clone();
        assert_eq!(cursor, Cursor { marks: marks(7, 3), expired_through: through, skipped });
    }
}

#[test]
fn too_much_to_be_named_is_what_the_cursor_stops_before() {
    let mut stayed = Stayed::default();
    for number in 0..=MOST_SKIPPED {
        let end = at("2026-09-05T00:00:00Z").plus(DAY * u32::try_from(number % 50).unwrap_or(0));
        stayed.note(0, number.to_string(), end);
    }
    let claim = Claim { marks: marks(7, 3), cutoff: at(CUTOFF), unseen_from: None };
    let cursor = claim.cursor(&stayed);
    assert_eq!(cursor.expired_through, at("2026-09-05T00:00:00Z").plus_nanos(-1));
    assert_eq!(cursor.skipped, Texts::new());
}

#[test]
fn another_table_policy_or_rule_is_another_basis() {
    let mut book = SpecBook::default();
    let (uuid, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let basis = Basis::new(uuid, 1, &book);
    assert_eq!(Basis::new(uuid, 1, &book.clone()), basis);
    assert_ne!(Basis::new(other, 1, &book), basis);
    assert_ne!(Basis::new(uuid, 2, &book), basis);
    book.column_types.entry(1).or_default().insert("date".to_owned());
    assert_ne!(Basis::new(uuid, 1, &book), basis);
}
