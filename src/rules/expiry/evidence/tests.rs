use super::*;

const DAY: Duration = Duration::from_secs(86_400);

fn at(text: &str) -> UtcInstant {
    text.parse().unwrap()
}

fn micros(text: &str) -> Bound {
    Bound::Count(i64::try_from(at(text).nanos() / 1_000).unwrap())
}

/// keep 7d, now 2026-11-30: what ended by 2026-11-23 has expired.
fn rule() -> EvidenceRule {
    EvidenceRule {
        keep: 7 * DAY,
        cutoff: at("2026-11-23T00:00:00Z"),
        units: BoundUnits { micros: true, nanos: false },
        blocks_newer: true,
    }
}

/// A file with row ids from 100 on, with this upper bound of all of its rows.
fn file(upper: Option<Bound>) -> FileEvidence {
    FileEvidence {
        data_file_id: 1,
        row_id_start: 100,
        begin_snapshot: 10,
        is_compacted: false,
        upper,
        is_bound_of_all: true,
    }
}

fn doubt_since(marks: &[(i64, Option<Mark>)]) -> Doubt {
    Doubt {
        may_be: BTreeSet::from(["a value of identity(tenant)".to_owned()]),
        since: marks.iter().copied().collect(),
        is_undated: false,
    }
}

fn from_row(row_id: i64) -> Option<Mark> {
    Some(Mark { row_id: Some(row_id), watched_from: Some(row_id), ..Mark::default() })
}

const END: &str = "2026-11-20T00:00:00Z";

fn check(doubt: &Doubt, files: &[FileEvidence]) -> EvidenceVerdict {
    rule().check(at(END), doubt, files, &BTreeSet::new())
}

fn expired() -> EvidenceVerdict {
    EvidenceVerdict::Expired { newest: None }
}

fn ambiguous(leaves_at: Option<&str>, newest: Option<&str>) -> EvidenceVerdict {
    EvidenceVerdict::Kept {
        reason: KeptReason::AmbiguousSpec,
        leaves_at: leaves_at.map(at),
        newest: newest.map(at),
    }
}

#[test]
fn bounds_are_read_by_their_length() {
    for (bytes, expected) in [
        (&[][..], None),
        (&[1, 0, 0], None),
        (&[1, 0, 0, 0], Some(Bound::Days(1))),
        (&[0xff, 0xff, 0xff, 0xff], Some(Bound::Days(-1))),
        (&[1, 0, 0, 0, 0], None),
        (&[2, 0, 0, 0, 0, 0, 0, 0], Some(Bound::Count(2))),
        (&[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], Some(Bound::Count(-2))),
        (&[0; 9], None),
    ] {
        assert_eq!(Bound::of_bytes(bytes), expected, "{bytes:?}");
    }
}

#[test]
fn a_bound_is_read_by_every_type_that_the_column_was_seen_with() {
    let units = |types: &[&str]| {
        let types: BTreeSet<String> = types.iter().map(|col_type| (*col_type).to_owned()).collect();
        BoundUnits::of_types(Some(&types))
    };
    let both = BoundUnits { micros: true, nanos: true };
    for (types, expected) in [
        (&["timestamp"][..], BoundUnits { micros: true, nanos: false }),
        (&["timestamp_s", "date"], BoundUnits { micros: true, nanos: false }),
        (&["timestamp_ns"], BoundUnits { micros: false, nanos: true }),
        (&["timestamp_ns", "timestamptz"], both),
        (&["date"], both),
        (&[], both),
    ] {
        assert_eq!(units(types), expected, "{types:?}");
    }
    assert_eq!(BoundUnits::of_types(None), both);
    let latest = |units: BoundUnits, count| units.latest(Bound::Count(count)).nanos();
    assert_eq!(latest(units(&["timestamp"]), 5), 5_000);
    assert_eq!(latest(units(&["timestamp_ns"]), 5), 5);
    assert_eq!(latest(both, 5), 5_000);
    assert_eq!(latest(both, -5), -5);
    assert_eq!(both.latest(Bound::Days(20_713)), at("2026-09-18T00:00:00Z"));
}

/// The boundary to the microsecond: a bound at the cutoff has expired, one after it has not.
#[test]
fn a_tuple_expires_by_its_newest_row() {
    let certain = Doubt::default();
    assert_eq!(check(&certain, &[file(None)]), expired());
    assert_eq!(check(&certain, &[file(Some(micros("2026-11-23T00:00:00Z")))]), expired());
    let newer = [file(None), file(Some(micros("2026-11-23T00:00:00.000001Z")))];
    assert_eq!(
        check(&certain, &newer),
        EvidenceVerdict::Kept {
            reason: KeptReason::NewerRowsThanPartition,
            leaves_at: Some(at("2026-11-30T00:00:00.000001Z")),
            newest: Some(at("2026-11-23T00:00:00.000001Z")),
        }
    );
    let warns = EvidenceRule { blocks_newer: false, ..rule() };
    assert_eq!(
        warns.check(at(END), &certain, &newer, &BTreeSet::new()),
        EvidenceVerdict::Expired { newest: Some(at("2026-11-23T00:00:00.000001Z")) }
    );
    // Nulls, or statistics that are not provided, make a bound no smaller.
    let partial = FileEvidence { is_bound_of_all: false, ..newer[1] };
    assert_eq!(check(&certain, &[partial]), check(&certain, &newer));
}

/// `hour` on a date: the writer puts the date at its midnight, and the hour has ended long before the
/// day has.
#[test]
fn a_date_that_the_value_names_itself_is_no_contradiction() {
    let date = [file(Some(Bound::Days(20_780)))];
    let hour_end = at("2026-11-23T00:00:00Z").minus(23 * Duration::from_secs(3_600));
    assert_eq!(hour_end, at("2026-11-22T01:00:00Z"));
    let rule = EvidenceRule { cutoff: hour_end, ..rule() };
    let none = BTreeSet::new();
    assert_eq!(UtcInstant::from_days(20_779), at("2026-11-22T00:00:00Z"));
    let same_day = [file(Some(Bound::Days(20_779)))];
    assert_eq!(rule.check(hour_end, &Doubt::default(), &same_day, &none), expired());
    assert_eq!(
        rule.check(hour_end, &Doubt::default(), &date, &none),
        EvidenceVerdict::Kept {
            reason: KeptReason::NewerRowsThanPartition,
            leaves_at: Some(at("2026-12-01T00:00:00Z")),
            newest: Some(at("2026-11-24T00:00:00Z")),
        }
    );
}

#[test]
fn statistics_prove_only_if_every_file_has_them() {
    let doubt = doubt_since(&[(2, None)]);
    let old = file(Some(micros("2026-11-01T00:00:00Z")));
    let at_cutoff = file(Some(micros("2026-11-23T00:00:00Z")));
    let newer = file(Some(micros("2026-11-24T00:00:00Z")));
    let with_nulls = FileEvidence { is_bound_of_all: false, ..old };
    for (files, expected) in [
        (vec![old, at_cutoff], expired()),
        (vec![old, newer], ambiguous(Some("2026-12-01T00:00:00Z"), Some("2026-11-24T00:00:00Z"))),
        (vec![old, file(None)], ambiguous(None, None)),
        (vec![with_nulls], ambiguous(None, None)),
        (vec![newer, file(None)], ambiguous(None, Some("2026-11-24T00:00:00Z"))),
    ] {
        assert_eq!(check(&doubt, &files), expected, "{files:?}");
    }
    // A date proves once its day has passed.
    let date = |days| file(Some(Bound::Days(days)));
    assert_eq!(check(&doubt, &[date(20_779)]), expired());
    assert!(matches!(check(&doubt, &[date(20_780)]), EvidenceVerdict::Kept { .. }));
}

#[test]
fn order_proves_only_if_every_mark_is_passed() {
    let unknown = file(None);
    for (marks, expected) in [
        (&[(2, from_row(100))][..], expired()),
        (&[(2, from_row(101))], ambiguous(None, None)),
        (&[(2, from_row(100)), (3, from_row(7))], expired()),
        (&[(2, from_row(100)), (3, from_row(101))], ambiguous(None, None)),
        (&[(2, from_row(100)), (3, None)], ambiguous(None, None)),
        // Taken back, and waited for again.
        (&[(2, Some(Mark { watched_from: Some(50), ..Mark::default() }))], ambiguous(None, None)),
    ] {
        assert_eq!(check(&doubt_since(marks), &[unknown]), expected, "{marks:?}");
    }
    let undated = Doubt { is_undated: true, ..doubt_since(&[(2, from_row(100))]) };
    assert_eq!(check(&undated, &[unknown]), ambiguous(None, None));
    let revoked = BTreeSet::from([2]);
    let doubt = doubt_since(&[(2, from_row(100))]);
    assert_eq!(rule().check(at(END), &doubt, &[unknown], &revoked), ambiguous(None, None));
    // Each file by its own proof.
    let dated = FileEvidence { row_id_start: 1, ..file(Some(micros("2026-11-01T00:00:00Z"))) };
    assert_eq!(check(&doubt, &[unknown, dated]), expired());
}

/// A compaction's output begins late and holds old rows; an append does not.
#[test]
fn a_snapshot_proves_for_appends_alone() {
    let mark = |snapshot| Mark { row_id: Some(1_000), snapshot: Some(snapshot), ..Mark::default() };
    let appended = file(None);
    let compacted = FileEvidence { is_compacted: true, ..appended };
    assert_eq!(check(&doubt_since(&[(2, Some(mark(10)))]), &[appended]), expired());
    for (snapshot, files) in [(11, [appended]), (10, [compacted])] {
        let doubt = doubt_since(&[(2, Some(mark(snapshot)))]);
        assert_eq!(check(&doubt, &files), ambiguous(None, None));
    }
}

#[test]
fn a_file_that_contradicts_its_value_disproves_marks_below_it() {
    let rule = rule();
    let disproved = |doubt: &Doubt, file: &FileEvidence| {
        rule.disproved(at(END), doubt, file).into_iter().collect::<Vec<_>>()
    };
    let doubt = doubt_since(&[(2, from_row(100)), (3, from_row(101)), (4, None)]);
    let newer = file(Some(micros("2026-11-20T00:00:00.000001Z")));
    assert_eq!(disproved(&doubt, &newer), [2]);
    assert_eq!(disproved(&doubt, &file(Some(micros(END)))), [0_i64; 0]);
    assert_eq!(disproved(&doubt, &file(None)), [0_i64; 0]);
    assert_eq!(disproved(&doubt, &FileEvidence { row_id_start: 101, ..newer }), [2, 3]);
    // A merge with older rows does not hide it: its newest row came after the mark was noted.
    let noted = |at_text| {
        let mark = Mark { watched_from: Some(500), noted_at: Some(at(at_text)), ..Mark::default() };
        doubt_since(&[(2, Some(mark))])
    };
    let merged = FileEvidence { is_compacted: true, ..newer };
    assert_eq!(disproved(&noted("2026-11-20T00:00:00Z"), &merged), [2]);
    assert_eq!(disproved(&noted("2026-11-20T00:00:00.000001Z"), &merged), [0_i64; 0]);
    assert_eq!(disproved(&noted("2026-11-20T00:00:00Z"), &newer), [0_i64; 0]);
    // Order proves nothing for a file whose own statistics say otherwise.
    let after = file(Some(micros("2026-11-24T00:00:00Z")));
    let only = doubt_since(&[(2, from_row(100))]);
    assert_eq!(
        check(&only, &[after]),
        ambiguous(Some("2026-12-01T00:00:00Z"), Some("2026-11-24T00:00:00Z"))
    );
}

#[test]
fn the_first_snapshot_that_is_certainly_late() {
    let dated: Vec<(i64, UtcInstant)> = [(1, 10), (2, 12), (5, 11), (6, 13)]
        .map(|(id, day)| (id, UtcInstant::from_days(day)))
        .into();
    for (after, expected) in [(10, Some(2)), (11, Some(5)), (12, None), (13, None), (14, None)] {
        let first = |now| {
            first_late_snapshot(&dated, UtcInstant::from_days(after), UtcInstant::from_days(now))
        };
        assert_eq!(first(13), expected, "{after}");
        assert_eq!(first(12), None, "one is dated after now");
    }
}

/// A date whose midnight is the end of the range is the day after it.
#[test]
fn a_date_that_begins_where_the_range_ends_is_newer() {
    let rule = EvidenceRule { cutoff: at(END), ..rule() };
    assert_eq!(UtcInstant::from_days(20_777), at(END));
    let of = |days| {
        rule.check(at(END), &Doubt::default(), &[file(Some(Bound::Days(days)))], &BTreeSet::new())
    };
    assert_eq!(of(20_776), expired());
    assert_eq!(
        of(20_777),
        EvidenceVerdict::Kept {
            reason: KeptReason::NewerRowsThanPartition,
            leaves_at: Some(at("2026-11-28T00:00:00Z")),
            newest: Some(at("2026-11-21T00:00:00Z")),
        }
    );
}

/// A file is newer by a bound after the cutoff, and only where newer rows keep a tuple.
#[test]
fn a_file_is_newer_by_a_bound_after_the_cutoff() {
    for (upper, expected) in [
        (None, false),
        (Some(micros("2026-11-22T23:59:59.999999Z")), false),
        (Some(micros("2026-11-23T00:00:00Z")), false),
        (Some(micros("2026-11-23T00:00:00.000001Z")), true),
    ] {
        assert_eq!(rule().is_newer(&file(upper)), expected, "{upper:?}");
        let warns = EvidenceRule { blocks_newer: false, ..rule() };
        assert!(!warns.is_newer(&file(upper)), "{upper:?}");
    }
}
