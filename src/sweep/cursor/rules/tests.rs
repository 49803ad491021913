use super::*;

fn field(
    key_index: i32,
    source_field_id: i64,
    transform: &str,
    transform_param: Option<i32>,
) -> SpecField {
    SpecField { key_index, source_field_id, transform: transform.to_owned(), transform_param }
}

/// Two specs and a disputed one, over a date and an integer.
fn book() -> SpecBook {
    let mut book = SpecBook::default();
    book.specs.insert(1, vec![field(0, 7, "day", None), field(1, 8, "bucket", Some(16))]);
    book.specs.insert(2, vec![field(0, 7, "hour", None)]);
    book.disputed
        .insert(3, vec![vec![field(0, 7, "month", None)], vec![field(0, 8, "identity", None)]]);
    book.column_types.insert(7, BTreeSet::from(["date".to_owned(), "timestamp".to_owned()]));
    book.column_types.insert(8, BTreeSet::from(["long".to_owned()]));
    book
}

fn hex(version: &str, book: &SpecBook) -> String {
    digest(version, book).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// These are in `tailrace.sweep_state.rules`: another digest resets the cursors of every table. Hashed is
/// `{"version":"0.1.0","rules":"2: evidence","specs":{"1":[{"key_index":0,...}],...},"disputed":...}`.
#[test]
fn digests_stay_as_they_are() {
    let empty = SpecBook::default();
    let expected = "dcd67d19a7bea8b53d20d821de6af560449d2966bc206e3c40abc3cea8844559";
    assert_eq!(hex("0.1.0", &empty), expected);
    let expected = "ace4b5419f4f09f19183c7cc074ce42b202233783bf09edbe7068b2400e19799";
    assert_eq!(hex("0.1.0", &book()), expected);
}

#[test]
fn each_value_that_files_are_judged_by_changes_it() {
    type Change = (&'static str, fn(&mut SpecBook));
    let changes: [Change; 15] = [
        ("key_index", |book| book.specs.get_mut(&2).unwrap()[0].key_index = 1),
        ("source_field_id", |book| book.specs.get_mut(&2).unwrap()[0].source_field_id = 8),
        ("transform", |book| book.specs.get_mut(&2).unwrap()[0].transform = "day".to_owned()),
        ("transform_param", |book| book.specs.get_mut(&1).unwrap()[1].transform_param = Some(17)),
        ("no transform_param", |book| book.specs.get_mut(&1).unwrap()[1].transform_param = None),
        ("the order of fields", |book| book.specs.get_mut(&1).unwrap().reverse()),
        ("a field less", |book| drop(book.specs.get_mut(&1).unwrap().pop())),
        ("a spec less", |book| drop(book.specs.remove(&2))),
        ("a spec's id", |book| {
            let fields = book.specs.remove(&2).unwrap();
            book.specs.insert(4, fields);
        }),
        ("a spec that is disputed", |book| book.dispute(2)),
        ("a disputed spec's field", |book| {
            book.disputed.get_mut(&3).unwrap()[1][0].source_field_id = 7;
        }),
        ("a definition less", |book| drop(book.disputed.get_mut(&3).unwrap().pop())),
        ("a type more", |book| {
            book.column_types.get_mut(&8).unwrap().insert("int".to_owned());
        }),
        ("a column's type", |book| {
            book.column_types.insert(8, BTreeSet::from(["int".to_owned()]));
        }),
        ("a column less", |book| drop(book.column_types.remove(&8))),
    ];
    let mut seen = BTreeSet::from([hex("0.1.0", &book()), hex("0.1.1", &book())]);
    assert_eq!(seen.len(), 2, "the version changes it");
    for (what, change) in changes {
        let mut changed = book();
        change(&mut changed);
        assert!(seen.insert(hex("0.1.0", &changed)), "{what} changes it");
    }
}

/// Another book of the same values; names of columns, marks and trust, which each pass looks up.
#[test]
fn nothing_else_changes_it() {
    let mut other = book();
    other.column_names.insert(7, "at".to_owned());
    other.past.entry(1).or_default().began_with_table = true;
    other.past.entry(1).or_default().trusted_at = Some("2026-11-30T12:00:00Z".parse().unwrap());
    assert_eq!(hex("0.1.0", &other), hex("0.1.0", &book()));
}
