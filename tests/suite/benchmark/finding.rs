//! Tests how the table of results is written.

use super::parts::finding::{Finding, Verdict, grouped, markdown, ms, table, wrapped};

#[test]
fn numbers_for_people() {
    let cases = [(0, "0"), (999, "999"), (1_000, "1,000"), (-1_234_567, "-1,234,567")];
    for (number, text) in cases {
        assert_eq!(grouped(number), text);
    }
    let cases = [
        (0.04, "0.0 ms"),
        (12.34, "12.3 ms"),
        (99.96, "100.0 ms"),
        (123.4, "123 ms"),
        (12_345.0, "12.3 s"),
    ];
    for (value, text) in cases {
        assert_eq!(ms(value), text);
    }
}

#[test]
fn a_goal_is_met_only_where_every_condition_holds() {
    assert_eq!(Verdict::all(&[true, true]), Verdict::Met);
    assert_eq!(Verdict::all(&[true, false]), Verdict::Unmet);
    assert_eq!(Verdict::NoGoal.to_string(), "no goal");
}

#[test]
fn a_table_keeps_its_shape_whatever_is_in_it() {
    let lines = vec![vec!["a|b".to_owned(), "1\n2".to_owned()], vec!["".into(), "né".into()]];
    assert_eq!(
        markdown(&["what", "x"], &lines),
        "| what | x   |\n\
         |------|-----|\n\
         | a\\|b | 1 2 |\n\
         |      | né  |\n"
    );
    let unmet =
        Finding { verdict: Verdict::Unmet, ..Finding::not_measured("hold", "<= 1", String::new()) };
    let missing = Finding::not_measured("cold", ">= 3", "no dd".to_owned());
    let text = table(&[unmet, missing]);
    assert!(
        text.contains("| hold | -        | -             | -      | <= 1 | **unmet**"),
        "{text}"
    );
    assert!(
        text.contains("| cold | -        | -             | -      | >= 3 | not measured: no dd |"),
        "{text}"
    );
}

#[test]
fn a_text_is_wrapped_between_its_words() {
    for (text, expected) in [
        ("", ""),
        ("a bb ccc", "a bb\nccc"),
        ("ab cde", "ab\ncde"),
        ("abcdefgh a b", "abcdefgh\na b"),
        ("ab cd  ef\ngh", "ab cd\nef gh"),
    ] {
        assert_eq!(wrapped(text, 5), expected);
    }
}
