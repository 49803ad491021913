use super::*;
use KeptReason::*;

/// Every reason, its name, whether its files are dated, and whether they count as unknown.
const REASONS: [(KeptReason, &str, bool, bool); 12] = [
    (NotExpired, "not_expired", true, false),
    (Future, "future", true, false),
    (AmbiguousSpec, "ambiguous_spec", true, true),
    (NewerRowsThanPartition, "newer_rows_than_partition", true, false),
    (Held, "held", true, false),
    (AmongNewest, "among_newest", true, false),
    (Null, "null", false, true),
    (Malformed, "malformed", false, true),
    (OutOfRange, "out_of_range", false, true),
    (Incomplete, "incomplete", false, true),
    (UnknownSpec, "unknown_spec", false, true),
    (Uncovered, "uncovered", false, false),
];

fn at(text: &str) -> Option<UtcInstant> {
    Some(text.parse().unwrap())
}

fn tuple(value: &str) -> StoredTuple {
    StoredTuple { keys: vec![0], values: vec![Some(value.to_owned())] }
}

fn sample(value: &str, files: i64) -> KeptSample {
    KeptSample {
        spec_id: Some(1),
        tuple: tuple(value),
        display: value.to_owned(),
        files,
        interpretations: Vec::new(),
        range_end: None,
        newest_row: None,
        leaves_at: None,
    }
}

#[test]
fn each_reason_has_its_name_and_says_what_is_known() {
    for (reason, name, is_dated, is_unknown) in REASONS {
        assert_eq!((reason.name(), reason.to_string().as_str()), (name, name));
        assert_eq!((reason.is_datable(), is_undatable(reason)), (is_dated, is_unknown), "{name}");
    }
}

#[test]
fn a_policy_is_healthy_where_it_dates_any_file_or_none_is_left() {
    assert_eq!(KeptCounts::default().health(), Health::Healthy);
    for (reason, name, is_dated, is_unknown) in REASONS {
        let mut counts = KeptCounts::default();
        counts.keep_sample(reason, sample("a", 2));
        let health = if is_dated { Health::Healthy } else { Health::Unhealthy };
        assert_eq!(counts.health(), health, "{name}");
        assert_eq!((counts.kept_files(), counts.files(reason)), (2, 2), "{name}");
        assert_eq!(counts.undatable_files(), if is_unknown { 2 } else { 0 }, "{name}");
    }
    // A reason of no file says nothing.
    let mut counts = KeptCounts::default();
    counts.kept.entry(NotExpired).or_default();
    counts.keep_sample(Null, sample("a", 1));
    assert_eq!((counts.health(), counts.kept_files()), (Health::Unhealthy, 1));
    assert_eq!((counts.files(Null), counts.files(Held)), (1, 0));
}

#[test]
fn files_are_counted_and_a_tuple_of_a_spec_is_one_sample() {
    let mut counts = KeptCounts::default();
    let mut keep = |spec_id, value: &str, leaves_at| {
        let display = |tuple: &StoredTuple| (format!("{:?}", tuple.keys), vec!["x".to_owned()]);
        counts.keep(NotExpired, leaves_at, spec_id, tuple(value), display);
    };
    keep(Some(1), "a", at("2026-03-02T00:00:00Z"));
    keep(Some(1), "a", at("2026-03-01T00:00:00Z"));
    keep(Some(2), "a", None);
    for value in ["b", "c", "d", "e", "f", "b"] {
        keep(Some(1), value, at("2026-03-03T00:00:00Z"));
    }
    let group = &counts.kept[&NotExpired];
    assert_eq!((group.files, group.samples.len()), (9, SAMPLES));
    let files: Vec<_> = group.samples.iter().map(|it| (it.spec_id, it.files)).collect();
    let expected = [(Some(1), 2), (Some(2), 1), (Some(1), 2), (Some(1), 1), (Some(1), 1)];
    assert_eq!(files, expected);
    assert_eq!(group.samples[0].display, "[0]");
    assert_eq!(group.samples[0].interpretations, ["x"]);
    assert_eq!(counts.next_expiry, at("2026-03-01T00:00:00Z"));
}

#[test]
fn samples_of_tuples_add_their_files_and_five_are_shown() {
    let mut counts = KeptCounts::default();
    for value in ["a", "b", "c", "d", "e", "f"] {
        let leaves_at = at("2026-03-01T00:00:00Z").filter(|_| value == "f");
        counts.keep_sample(Held, KeptSample { leaves_at, ..sample(value, 3) });
    }
    assert_eq!(counts.kept[&Held].files, 18);
    let shown: Vec<_> = counts.kept[&Held].samples.iter().map(|it| &*it.display).collect();
    assert_eq!(shown, ["a", "b", "c", "d", "e"]);
    assert_eq!(counts.next_expiry, at("2026-03-01T00:00:00Z"));
}

#[test]
fn a_sample_says_all_that_explains_why_it_stays() {
    assert_eq!(sample("day 1", 1).describe(), "day 1");
    let whole = KeptSample {
        interpretations: vec!["day 1".to_owned(), "month 1".to_owned()],
        range_end: at("2026-01-01T00:00:00Z"),
        newest_row: at("2026-01-02T00:00:00Z"),
        leaves_at: at("2026-01-03T00:00:00Z"),
        ..sample("1", 1)
    };
    assert_eq!(
        whole.describe(),
        "1 (may be: day 1; month 1), ended 2026-01-01T00:00:00Z, newest row 2026-01-02T00:00:00Z, \
         is dropped at 2026-01-03T00:00:00Z"
    );
}
