use super::*;

fn field(key_index: i32, transform: &str, transform_param: Option<i32>) -> SpecField {
    SpecField { key_index, source_field_id: 1, transform: transform.to_owned(), transform_param }
}

fn item(spec_id: Option<i64>, values: &[Option<&str>]) -> PartitionItem {
    let partition_values = values.iter().map(|value| value.map(str::to_owned)).collect();
    PartitionItem { partition_values, spec_id, literal: false }
}

fn book(fields: Vec<SpecField>) -> SpecBook {
    SpecBook::of_definitions([(1, fields)])
}

/// What is said of one item, without its number and values.
fn said(fields: Vec<SpecField>, item: PartitionItem) -> Result<(), String> {
    let prefix = format!("partitions[0] {} ", shown(&item));
    match resolve(&[item], Some(1), &book(fields)) {
        Ok(_) => Ok(()),
        Err(problem) => Err(problem.to_string().strip_prefix(&prefix).unwrap().to_owned()),
    }
}

#[test]
fn a_list_has_one_to_ten_thousand_tuples_each_once() {
    let many = |count: usize| -> Vec<_> {
        (0..count).map(|day| item(None, &[Some(&day.to_string())])).collect()
    };
    let check = |items: &[PartitionItem]| check_list(items, Some(1)).map_err(|p| p.to_string());
    let size = |count| Err(format!("partitions has {count} items: 1 to 10000 are allowed"));
    assert_eq!(check(&many(0)), size(0));
    assert_eq!(check(&many(1)), Ok(()));
    assert_eq!(check(&many(10_000)), Ok(()));
    assert_eq!(check(&many(10_001)), size(10_001));
    let twice = |at: usize, shown: &str| Err(format!("partitions[{at}] {shown} is named twice"));
    let (defaulted, named) = (item(None, &[Some("1")]), item(Some(1), &[Some("1")]));
    let (other, null) = (item(Some(2), &[Some("1")]), item(None, &[None]));
    let text = item(None, &[Some("null")]);
    assert_eq!(check(&[defaulted.clone(), other.clone(), null.clone(), text]), Ok(()));
    assert_eq!(check(&[defaulted.clone(), other, named.clone()]), twice(2, r#"["1"]"#));
    assert_eq!(check(&[named, null.clone(), defaulted.clone()]), twice(2, r#"["1"]"#));
    assert_eq!(check(&[null.clone(), null]), twice(1, "[null]"));
    // The one tuple is one tuple, whether its text is taken literally or not.
    let literal = PartitionItem { literal: true, ..defaulted.clone() };
    assert_eq!(check(&[defaulted, literal]), twice(1, r#"["1"]"#));
}

#[test]
fn a_spec_must_be_named_or_live_and_known() {
    let fields = || vec![field(0, "day", None), field(1, "identity", None)];
    let one = |item: PartitionItem, default, book: &SpecBook| {
        resolve(&[item], default, book).map_err(|problem| problem.to_string())
    };
    let values = [Some("1"), Some("a")];
    let known = book(fields());
    assert_eq!(
        one(item(None, &values), None, &known),
        Err("partitions[0] [\"1\",\"a\"] names no spec_id, and the table has no live partition spec".to_owned())
    );
    let unknown = one(item(Some(2), &values), Some(1), &known);
    let expected = "partitions[0] [\"1\",\"a\"] names spec 2, which the table does not have";
    assert_eq!(unknown, Err(expected.to_owned()));
    let nothing = one(item(None, &[]), Some(1), &book(Vec::new()));
    let expected = "partitions[0] [] names spec 1, which partitions by nothing";
    assert_eq!(nothing, Err(expected.to_owned()));
    for values in [&[][..], &[Some("1")], &[Some("1"), None, None]] {
        let expected = format!("has {} values, and spec 1 has 2 keys", values.len());
        assert_eq!(said(fields(), item(None, values)), Err(expected.clone()));
        let literal = PartitionItem { literal: true, ..item(None, values) };
        assert_eq!(said(fields(), literal), Err(expected), "literal is about texts");
    }
    // An id that was seen with two meanings has none.
    let disputed = SpecBook::of_definitions([(1, fields()), (1, vec![field(0, "day", None)])]);
    assert!(one(item(Some(1), &values), None, &disputed).is_err());
}

#[test]
fn a_time_is_a_canonical_ordinal() {
    let good = ["0", "1", "-1", "20713", "9223372036854775807", "9223372036854775808"];
    let bad = [
        "",
        " 1",
        "1 ",
        "+1",
        "01",
        "-0",
        "1.0",
        "1e3",
        "2026-09-17",
        "x",
        "٣",
        "--1",
        "-",
        "null",
    ];
    for transform in ["year", "month", "day", "hour"] {
        let fields = || vec![field(0, transform, None)];
        assert_eq!(said(fields(), item(None, &[None])), Ok(()), "the null partition");
        for text in good {
            assert_eq!(said(fields(), item(None, &[Some(text)])), Ok(()), "{transform} {text}");
        }
        for text in bad {
            let expected = format!(
                "has {text:?} at key 0, which is no {transform} (a canonical decimal counted from 1970): say literal, if this very text is meant"
            );
            let refused = item(None, &[Some(text)]);
            assert_eq!(said(fields(), refused.clone()), Err(expected));
            assert_eq!(said(fields(), PartitionItem { literal: true, ..refused }), Ok(()));
        }
    }
}

#[test]
fn a_bucket_is_one_of_its_n() {
    let fields = || vec![field(0, "identity", None), field(1, "bucket", Some(16))];
    for text in ["0", "1", "15"] {
        assert_eq!(said(fields(), item(None, &[Some("x"), Some(text)])), Ok(()));
    }
    assert_eq!(said(fields(), item(None, &[Some("x"), None])), Ok(()));
    for text in ["16", "-1", "01", "", "x", "9223372036854775808", " 1"] {
        let refused = item(None, &[Some("x"), Some(text)]);
        let expected = format!(
            "has {text:?} at key 1, which is no bucket of 0 to 15: say literal, if this very text is meant"
        );
        assert_eq!(said(fields(), refused.clone()), Err(expected));
        assert_eq!(said(fields(), PartitionItem { literal: true, ..refused }), Ok(()));
    }
}

#[test]
fn a_wildcard_is_one_under_every_transform_unless_meant() {
    for (transform, param) in [("day", None), ("bucket", Some(4)), ("identity", None)] {
        let star = item(None, &[Some("*")]);
        let expected = "has a wildcard at key 0, and there are none: name each partition (or say literal, if the text * is meant)";
        let fields = || vec![field(0, transform, param)];
        assert_eq!(said(fields(), star.clone()), Err(expected.to_owned()));
        assert_eq!(said(fields(), PartitionItem { literal: true, ..star }), Ok(()));
    }
    // Under identity any other text may be stored.
    for text in ["", "a*", "**", "%", "01", "null", "\u{1}"] {
        assert_eq!(said(vec![field(0, "identity", None)], item(None, &[Some(text)])), Ok(()));
    }
}

#[test]
fn no_text_with_a_nul_can_be_stored() {
    let nul = item(None, &[Some("a\0b")]);
    let expected = Err("has a NUL, which no partition value can have".to_owned());
    assert_eq!(said(vec![field(0, "identity", None)], nul.clone()), expected);
    let literal = PartitionItem { literal: true, ..nul };
    assert_eq!(said(vec![field(0, "identity", None)], literal), expected);
    assert_eq!(check_note("me", None), Ok(()));
    assert!(check_note("m\0e", None).is_err() && check_note("me", Some("\0")).is_err());
}

#[test]
fn author_and_message_are_as_long_as_may_be_in_bytes() {
    // Two bytes each.
    let (author, message) = ("é".repeat(512), "é".repeat(4096));
    assert_eq!(check_note(&author, Some(&message)), Ok(()));
    for (author, message, says) in [
        (format!("{author}a"), "", "author has 1025 bytes, and at most 1024 are allowed"),
        (
            "me".to_owned(),
            &*format!("{message}a"),
            "message has 8193 bytes, and at most 8192 are allowed",
        ),
    ] {
        assert_eq!(check_note(&author, Some(message)), Err(Problem::Validation(says.to_owned())));
    }
}

#[test]
fn files_are_found_by_the_value_that_fewest_share() {
    let fields =
        || vec![field(0, "bucket", Some(4)), field(1, "identity", None), field(2, "hour", None)];
    for (values, lookup_key) in [
        ([Some("1"), Some("a"), Some("5")], 2),
        ([Some("1"), Some("a"), None], 1),
        ([Some("1"), None, None], 0),
        ([None, None, Some("5")], 2),
        ([None, Some("a"), None], 1),
        ([None, None, None], 0),
    ] {
        let resolved = resolve(&[item(None, &values)], Some(1), &book(fields())).unwrap();
        assert_eq!(resolved[0].lookup_key, lookup_key, "{values:?}");
        assert_eq!(resolved[0].tuple.tuple.keys, [0, 1, 2]);
    }
}

#[test]
fn a_long_item_is_cut_short_between_characters() {
    let long = "ü".repeat(500);
    let refused = resolve(&[item(Some(2), &[Some(&long)])], None, &book(Vec::new())).unwrap_err();
    let expected = format!(
        "partitions[0] [\"{}... names spec 2, which the table does not have",
        "ü".repeat(198)
    );
    assert_eq!(refused.to_string(), expected);
}
