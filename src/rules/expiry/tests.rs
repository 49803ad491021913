use super::*;
use crate::rules::keep::Keep;
use proptest::prelude::*;

const COLUMN: i64 = 1;
const OTHER: i64 = 2;
const DAY: Duration = Duration::from_secs(86_400);

fn at(text: &str) -> UtcInstant {
    text.parse().unwrap()
}

fn field(key_index: i32, source_field_id: i64, transform: &str) -> SpecField {
    SpecField { key_index, source_field_id, transform: transform.to_owned(), transform_param: None }
}

fn book(specs: &[(i64, &[(i64, &str)])], types: &[(i64, &str)]) -> SpecBook {
    let mut book = SpecBook::default();
    for (spec_id, fields) in specs {
        let fields = fields.iter().enumerate();
        book.specs.insert(
            *spec_id,
            fields
                .map(|(key, (source, transform))| field(key as i32, *source, transform))
                .collect(),
        );
    }
    // The first spec began with its table, as an ordinary one does.
    let first = book.specs.keys().next().copied();
    book.past
        .extend(first.map(|id| (id, SpecPast { began_with_table: true, ..SpecPast::default() })));
    for (field_id, col_type) in types {
        book.column_types.entry(*field_id).or_default().insert((*col_type).to_owned());
    }
    book
}

fn tuple(values: &[Option<&str>]) -> StoredTuple {
    StoredTuple {
        keys: (0..values.len() as i32).collect(),
        values: values.iter().map(|value| value.map(str::to_owned)).collect(),
    }
}

fn judge_at(
    book: &SpecBook,
    keep: Duration,
    now: UtcInstant,
    spec: i64,
    values: &[Option<&str>],
) -> Verdict {
    Judge::new(book, Retention { source_field_id: COLUMN, keep, now })
        .judge(Some(spec), &tuple(values))
}

/// Expired beyond doubt.
fn expired_at(range_end: UtcInstant) -> Verdict {
    Verdict::Expired { range_end, doubt: Doubt::default() }
}

fn reason(verdict: Verdict) -> Option<KeptReason> {
    match verdict {
        Verdict::Expired { .. } => None,
        Verdict::Kept { reason, .. } => Some(reason),
    }
}

#[derive(serde::Deserialize)]
struct Row {
    transform: String,
    #[serde(rename = "type")]
    col_type: String,
    text: String,
    keep: String,
    leaves: String,
    shown: String,
}

#[derive(serde::Deserialize)]
struct Rows {
    rows: Vec<Row>,
}

/// Each value leaves at the moment that its row says and not a microsecond before it.
#[test]
fn a_value_leaves_when_the_end_of_its_range_is_keep_old() {
    let Rows { rows } =
        serde_json::from_str(include_str!("../../../tests/expiry-table.json")).unwrap();
    assert_eq!(rows.len(), 38);
    for Row { transform, col_type, text, keep, leaves, shown } in rows {
        let book = book(&[(1, &[(COLUMN, &transform)])], &[(COLUMN, &col_type)]);
        let (keep, leaves) = (Keep::parse(&keep).unwrap().length(), at(&leaves));
        let judged = |now| judge_at(&book, keep, now, 1, &[Some(&text)]);
        let before = judged(leaves.plus_nanos(-1_000));
        assert_eq!(
            before,
            Verdict::Kept { reason: KeptReason::NotExpired, leaves_at: Some(leaves) },
            "{transform} {text} a microsecond before"
        );
        for now in [leaves, leaves.plus_nanos(1_000)] {
            assert_eq!(judged(now), expired_at(leaves.minus(keep)), "{transform} {text}");
        }
        let retention = Retention { source_field_id: COLUMN, keep, now: leaves };
        let displayed = Judge::new(&book, retention).display(Some(1), &tuple(&[Some(&text)]));
        assert_eq!(displayed, shown, "{transform} {text}");
    }
}

#[test]
fn nanoseconds_are_not_rounded_away() {
    let book = book(&[(1, &[(COLUMN, "identity")])], &[(COLUMN, "timestamp_ns")]);
    let judged = |now| reason(judge_at(&book, DAY, now, 1, &[Some("1")]));
    assert_eq!(judged(at("1970-01-02T00:00:00Z")), Some(KeptReason::NotExpired));
    assert_eq!(judged(at("1970-01-02T00:00:00.000001Z")), None);
}

#[test]
fn what_never_expires_says_why() {
    let book = book(
        &[
            (1, &[(COLUMN, "day")]),
            (2, &[(OTHER, "identity")]),
            (3, &[(COLUMN, "bucket")]),
            (4, &[(COLUMN, "identity")]),
        ],
        &[(OTHER, "string")],
    );
    let now = at("2026-11-30T00:00:00Z");
    let judge = Judge::new(&book, Retention { source_field_id: COLUMN, keep: DAY, now });
    let never = |reason| Verdict::Kept { reason, leaves_at: None };
    for (spec, values, expected) in [
        (Some(1), vec![None], KeptReason::Null),
        (Some(1), vec![Some("__HIVE_DEFAULT_PARTITION__")], KeptReason::Malformed),
        (Some(1), vec![Some("")], KeptReason::Malformed),
        (Some(1), vec![Some("9223372036854775807")], KeptReason::OutOfRange),
        (Some(1), vec![], KeptReason::Incomplete),
        (Some(1), vec![Some("0"), Some("0")], KeptReason::Incomplete),
        (Some(2), vec![Some("0")], KeptReason::Uncovered),
        (Some(3), vec![Some("0")], KeptReason::Uncovered),
        (Some(4), vec![Some("1970-01-01")], KeptReason::Uncovered),
        (Some(9), vec![Some("0")], KeptReason::UnknownSpec),
        (None, vec![], KeptReason::Uncovered),
    ] {
        assert_eq!(judge.judge(spec, &tuple(&values)), never(expected), "{spec:?} {values:?}");
    }
    let shifted = StoredTuple { keys: vec![1], values: vec![Some("0".to_owned())] };
    assert_eq!(judge.judge(Some(1), &shifted), never(KeptReason::Incomplete));
}

#[test]
fn a_range_that_has_not_begun_is_future() {
    let book = book(&[(1, &[(COLUMN, "day")])], &[]);
    let judged = |now| judge_at(&book, DAY, at(now), 1, &[Some("20713")]);
    let leaves_at = Some(at("2026-09-19T00:00:00Z"));
    assert_eq!(
        judged("2026-09-16T23:59:59.999999Z"),
        Verdict::Kept { reason: KeptReason::Future, leaves_at }
    );
    assert_eq!(
        judged("2026-09-17T00:00:00Z"),
        Verdict::Kept { reason: KeptReason::NotExpired, leaves_at }
    );
}

#[test]
fn all_time_fields_on_the_column_must_agree() {
    let book = book(&[(1, &[(COLUMN, "month"), (OTHER, "day"), (COLUMN, "day")])], &[]);
    let judged = |values: [&str; 3], now| judge_at(&book, DAY, at(now), 1, &values.map(Some));
    // Day 20713 alone would leave on 2026-09-19; its month leaves on 2026-10-02.
    assert_eq!(
        judged(["680", "x", "20713"], "2026-10-01T23:59:59.999999Z"),
        Verdict::Kept {
            reason: KeptReason::NotExpired,
            leaves_at: Some(at("2026-10-02T00:00:00Z"))
        }
    );
    assert_eq!(
        judged(["680", "x", "20713"], "2026-10-02T00:00:00Z"),
        expired_at(at("2026-10-01T00:00:00Z"))
    );
    // Another column's text is nothing to this policy; a bad text of its own column is.
    assert_eq!(
        reason(judged(["680", "x", "20713x"], "2027-01-01T00:00:00Z")),
        Some(KeptReason::Malformed)
    );
}

/// 680 under a day spec after a month spec: 1971-11-12, or 2026-09 from a stale writer.
#[test]
fn a_text_with_another_reading_by_an_older_spec_waits_for_both() {
    let evolved = book(&[(1, &[(COLUMN, "month")]), (2, &[(COLUMN, "day")])], &[]);
    let judged = |spec, text, now| judge_at(&evolved, DAY, at(now), spec, &[Some(text)]);
    let both = at("2026-10-02T00:00:00Z");
    assert_eq!(
        judged(2, "680", "2026-10-01T23:59:59.999999Z"),
        Verdict::Kept { reason: KeptReason::AmbiguousSpec, leaves_at: Some(both) }
    );
    assert_eq!(judged(2, "680", "2026-10-02T00:00:00Z"), expired_at(at("1971-11-13T00:00:00Z")));
    // A real day is no month of this century: that interpretation starts after now, and is put aside.
    assert_eq!(reason(judged(2, "20713", "2026-09-19T00:00:00Z")), None);
    // The other way round: a stale writer's day under the month spec waits for its own interpretation.
    let back = book(&[(1, &[(COLUMN, "day")]), (2, &[(COLUMN, "month")])], &[]);
    assert_eq!(
        reason(judge_at(&back, DAY, at("2026-11-30T00:00:00Z"), 2, &[Some("20713")])),
        Some(KeptReason::Future)
    );
}

/// A server that gives a vanished spec's id to another spec: it is unknown which of the two a
/// file was written under, so it is kept; and both interpretations count for other specs of the place.
#[test]
fn a_spec_id_with_two_meanings_is_as_good_as_unknown() {
    let definition = |transform| vec![field(0, COLUMN, transform)];
    let book = SpecBook::of_definitions([
        (1, definition("month")),
        (1, definition("day")),
        (2, definition("day")),
    ]);
    let judged = |spec, now| reason(judge_at(&book, DAY, at(now), spec, &[Some("680")]));
    assert_eq!(judged(1, "2027-01-01T00:00:00Z"), Some(KeptReason::UnknownSpec));
    assert_eq!(judged(2, "2026-09-30T00:00:00Z"), Some(KeptReason::AmbiguousSpec));
    assert_eq!(judged(2, "2027-01-01T00:00:00Z"), None);
}

#[test]
fn a_column_that_changed_its_type_is_read_by_each() {
    let book = book(&[(1, &[(COLUMN, "identity")])], &[(COLUMN, "date"), (COLUMN, "timestamp")]);
    let judged = |text, now| reason(judge_at(&book, DAY, at(now), 1, &[Some(text)]));
    assert_eq!(judged("2026-09-17", "2026-09-19T00:00:00Z"), None);
    assert_eq!(judged("2026-09-17T05:00:00", "2026-09-18T05:00:00Z"), None);
    assert_eq!(judged("2026-09-17T05", "2026-09-18T05:00:00Z"), Some(KeptReason::Malformed));
}

#[test]
fn a_person_reads_dates() {
    let book = book(&[(1, &[(OTHER, "identity"), (COLUMN, "day")])], &[(OTHER, "long")]);
    let judge = Judge::new(
        &book,
        Retention { source_field_id: COLUMN, keep: DAY, now: UtcInstant::from_days(0) },
    );
    assert_eq!(judge.display(Some(1), &tuple(&[Some("7"), Some("20713")])), "7 / 2026-09-17");
    assert_eq!(judge.display(Some(1), &tuple(&[None, Some("x")])), "null / x");
    assert_eq!(judge.display(Some(5), &tuple(&[Some("20713")])), "20713");
}

proptest! {
    /// Without a second transform in the place, a later now, a shorter keep or an older value
    /// never turns an expired one into a kept one.
    #[test]
    fn expiry_is_monotone(
        transform in prop_oneof![Just("year"), Just("month"), Just("day"), Just("hour")],
        ordinal in -4_000_i64..30_000, older in 0_i64..1_000,
        now in -2_000_000_000_i128..4_000_000_000, later in 0_i128..1_000_000_000,
        keep in 1_u64..500_000_000, shorter in 0_u64..500_000_000,
    ) {
        let book = book(&[(1, &[(COLUMN, transform)])], &[]);
        let expired = |ordinal: i64, now: i128, keep: u64| {
            let now = UtcInstant::from_nanos(now * 1_000_000_000);
            reason(judge_at(&book, Duration::from_secs(keep), now, 1, &[Some(&ordinal.to_string())])).is_none()
        };
        if expired(ordinal, now, keep) {
            prop_assert!(expired(ordinal, now + later, keep));
            prop_assert!(expired(ordinal, now, keep.saturating_sub(shorter)));
            prop_assert!(expired(ordinal - older, now, keep));
        }
    }

    /// `leaves_at` is the first moment of expiry, whatever transforms the place has seen.
    #[test]
    fn what_leaves_later_leaves_exactly_then(
        own in prop_oneof![Just("year"), Just("month"), Just("day"), Just("hour")],
        other in prop_oneof![Just("year"), Just("month"), Just("day"), Just("hour")],
        ordinal in -1_000_i64..30_000, now in 0_i128..4_000_000_000, keep in 1_u64..100_000_000,
    ) {
        let book = book(&[(1, &[(COLUMN, other)]), (2, &[(COLUMN, own)])], &[]);
        let text = ordinal.to_string();
        let keep = Duration::from_secs(keep);
        let judged = |now| judge_at(&book, keep, now, 2, &[Some(&text)]);
        if let Verdict::Kept { leaves_at: Some(leaves_at), .. } = judged(UtcInstant::from_nanos(now * 1_000_000_000)) {
            prop_assert_eq!(reason(judged(leaves_at)), None);
            prop_assert!(reason(judged(leaves_at.plus_nanos(-1))).is_some());
        }
    }
}
