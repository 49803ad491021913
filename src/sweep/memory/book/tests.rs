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

fn hex(book: &SpecBook) -> (String, String) {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let BookDigest { rules, specs, number: _ } = BookDigest::of(book, 7);
    (hex(&rules), hex(&specs))
}

/// These are in `tailrace.table_state.book`: with others the rows of every table are judged anew. Hashed is
/// `{"rules":"3: calendar","column_types":[...]}` and `{"specs":{"1":[{"key_index":0,...}],...},...}`.
#[test]
fn digests_stay_as_they_are() {
    let empty = hex(&SpecBook::default());
    assert_eq!(empty.0, "8a598b6a8cb90eb3bc4b5403b86b96af148d051512b1d05f70581ee1761a66a3");
    assert_eq!(empty.1, "2b42a0b33fdc14613b7b4fb5ccf2ae7417352ff2c14b2d37037c353dc79757fb");
    let some = hex(&book());
    assert_eq!(some.0, "26f27d4bed6ad593f65fa5ac847da3a54a1d0f4128b063b2c333ad545a403ca4");
    assert_eq!(some.1, "e84e8b8419dce2976e2ba14908bd62848543dfce83da6b88abbaaa975ee428e1");
}

#[test]
fn what_is_stored_is_read_again() {
    let digest = BookDigest::of(&book(), 7);
    assert_eq!(BookDigest::of_bytes(&digest.to_bytes()), digest);
    assert_eq!(digest.to_bytes().split_off(2 * PART), [3]);
    assert!(RULES.starts_with(&format!("{RULES_NUMBER}:")));
    // As programs stored it before the number was there.
    let before = BookDigest::of_bytes(&digest.to_bytes()[..2 * PART]);
    assert_eq!(before, BookDigest { number: None, ..digest.clone() });
    for wrong in [&[][..], &[1; 31], &[2; 65]] {
        assert_ne!(BookDigest::of_bytes(wrong), digest);
    }
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
    let mut seen = BTreeSet::from([hex(&book()).1]);
    for (what, change) in changes {
        let mut changed = book();
        change(&mut changed);
        assert!(seen.insert(hex(&changed).1), "{what} changes it");
    }
}

/// Another book of the same values; names of columns, marks and trust, which each pass looks up.
#[test]
fn nothing_else_changes_it() {
    let mut other = book();
    other.column_names.insert(7, "at".to_owned());
    other.past.entry(1).or_default().began_with_table = true;
    other.past.entry(1).or_default().trusted_at = Some("2026-11-30T12:00:00Z".parse().unwrap());
    assert_eq!(hex(&other), hex(&book()));
}

/// What could not be dated may be datable by another type of the policy's column, and by no other change.
#[test]
fn the_types_of_the_column_alone_change_the_rules() {
    let mut other = book();
    other.column_types.entry(8).or_default().insert("int".to_owned());
    other.dispute(2);
    assert_eq!(hex(&other).0, hex(&book()).0);
    other.column_types.entry(7).or_default().insert("timestamptz".to_owned());
    assert_ne!(hex(&other).0, hex(&book()).0);
}
