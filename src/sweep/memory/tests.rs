use super::*;
use crate::rules::expiry::{KeptReason, StoredTuple};

fn at(text: &str) -> UtcInstant {
    text.parse().expect("an instant")
}

const DAY: Duration = Duration::from_secs(86_400);
const NOW: &str = "2026-11-30T12:00:00Z";

fn watermark(files_below: i64, through_snapshot: i64) -> FileWatermark {
    FileWatermark { files_below, through_snapshot }
}

fn memory(watermark: FileWatermark) -> Memory {
    Memory::new(watermark, BookDigest { rules: Vec::new(), specs: Vec::new(), number: None })
}

fn full_scan(began_at: &str, is_full: bool) -> FullScanProgress {
    FullScanProgress {
        after: Place::START,
        began_at: at(began_at),
        is_listing: false,
        list_from: None,
        is_full,
        kept_counts: KeptCounts::default(),
    }
}

#[test]
fn nothing_that_lies_in_the_future_is_relied_on() {
    let head = watermark(100, 10);
    for (watermark, is_kept) in [
        (head, true),
        (watermark(1, 0), true),
        (watermark(101, 10), false),
        (watermark(100, 11), false),
    ] {
        let remembered = Memory { full_scan: Some(full_scan(NOW, true)), ..memory(watermark) };
        let checked = remembered.checked(head, at(NOW));
        let expected = if is_kept { watermark } else { head };
        assert_eq!(checked.watermark, expected);
        assert_eq!((checked.full_scan.is_some(), checked.owes_full_pass), (is_kept, !is_kept));
    }
    for (when, is_kept) in [(NOW, true), ("2026-11-30T12:00:00.000001Z", false)] {
        let remembered = Memory {
            full_pass_at: Some(at(when)),
            kept_counts: Some((KeptCounts::default(), at(when))),
            full_scan: Some(full_scan(when, true)),
            ..memory(head)
        };
        let checked = remembered.checked(head, at(NOW));
        assert_eq!(
            (checked.full_pass_at.is_some(), checked.kept_counts.is_some()),
            (is_kept, is_kept)
        );
        assert_eq!((checked.full_scan.is_some(), checked.owes_full_pass), (is_kept, !is_kept));
    }
}

#[test]
fn when_a_full_pass_begins() {
    let fresh = Some("2026-11-29T12:00:00.000001Z");
    let stale = Some("2026-11-29T12:00:00Z");
    for (full_pass_at, owes, under_way, begins) in [
        (None, false, None, true),
        (fresh, false, None, false),
        (stale, false, None, true),
        (fresh, true, None, true),
        // One that is under way goes on; a full scan that only finds what is due is none.
        (stale, false, Some(true), false),
        (None, false, Some(true), false),
        (stale, true, Some(false), true),
    ] {
        let remembered = Memory {
            full_pass_at: full_pass_at.map(at),
            owes_full_pass: owes,
            full_scan: under_way.map(|is_full| full_scan(NOW, is_full)),
            ..memory(watermark(5, 5))
        };
        let due = |at| full_pass_due_at(at, Uuid::from_u128(7), DAY, false);
        assert_eq!(
            remembered.begins_full_pass(due, at(NOW)),
            begins,
            "{full_pass_at:?} {owes} {under_way:?}"
        );
    }
}

/// Over all of the time in which each table has one, and each table at the same moment of it each time.
#[test]
fn full_passes_of_many_tables_are_spread() {
    let last = at(NOW);
    let due = |table, last| full_pass_due_at(last, Uuid::from_u128(table), DAY, true);
    let hour = |table| due(table, last).distance(last).as_secs() / 3_600;
    let mut in_hour = [0; 24];
    (0..2_400).for_each(|table| in_hour[hour(table) as usize] += 1);
    assert!(in_hour.iter().all(|tables| (50..=200).contains(tables)), "{in_hour:?}");
    for table in 0..50 {
        let next = due(table, last);
        assert!(last < next && next <= last.plus(DAY));
        assert_eq!(due(table, next), next.plus(DAY));
        assert_eq!(due(table, next.plus(Duration::from_secs(1))), next.plus(DAY));
    }
    assert_eq!(full_pass_due_at(last, Uuid::from_u128(7), DAY, false), last.plus(DAY));
    assert_eq!(full_pass_due_at(last, Uuid::from_u128(7), Duration::ZERO, true), last);
}

#[test]
fn late_files_over_half_of_those_counted_outgrow_the_watermark() {
    let mut kept_counts = KeptCounts::default();
    let tuple = StoredTuple { keys: Vec::new(), values: Vec::new() };
    for _ in 0..10 {
        let shown = |_: &StoredTuple| (String::new(), Vec::new());
        kept_counts.keep(KeptReason::NotExpired, None, None, tuple.clone(), shown);
    }
    let counted = Memory { kept_counts: Some((kept_counts, at(NOW))), ..memory(watermark(1, 1)) };
    assert_eq!((counted.is_outgrown_by(5), counted.is_outgrown_by(6)), (false, true));
    assert!(!memory(watermark(1, 1)).is_outgrown_by(i64::MAX));
}
