use super::*;
use proptest::prelude::*;

#[derive(serde::Deserialize)]
struct Vector {
    transform: String,
    #[serde(rename = "type")]
    column_type: Option<String>,
    text: Option<String>,
    start: Option<String>,
    end: Option<String>,
    undatable: Option<String>,
}

#[derive(serde::Deserialize)]
struct Vectors {
    vectors: Vec<Vector>,
}

#[test]
fn every_shared_vector_decodes_as_it_says() {
    let vectors: Vectors =
        serde_json::from_str(include_str!("../../../tests/partition-vectors.json")).unwrap();
    assert_eq!(vectors.vectors.len(), 90);
    for vector in vectors.vectors {
        let transform =
            TimeTransform::of_field(&vector.transform, vector.column_type.as_deref()).unwrap();
        let expected = match (vector.start, vector.end, vector.undatable.as_deref()) {
            (Some(start), Some(end), None) => Ok((start, end)),
            (None, None, Some("null")) => Err(Undatable::Null),
            (None, None, Some("malformed")) => Err(Undatable::Malformed),
            (None, None, Some("out_of_range")) => Err(Undatable::OutOfRange),
            other => panic!("a vector says {other:?}"),
        };
        let decoded = transform
            .decode(vector.text.as_deref())
            .map(|range| (range.start.to_string(), range.end.to_string()));
        assert_eq!(decoded, expected, "{transform} {:?}", vector.text);
    }
}

#[test]
fn the_ends_of_time() {
    let day = |text: &str| TimeTransform::Day.decode(Some(text)).map(|range| range.end.to_string());
    assert_eq!(day("-2440588"), Ok("-4713-11-25T00:00:00Z".to_owned()));
    assert_eq!(day("-2440589"), Err(Undatable::OutOfRange));
    assert_eq!(day("106751990"), Ok("+294247-01-10T00:00:00Z".to_owned()));
    assert_eq!(day("106751991"), Err(Undatable::OutOfRange));
}

#[test]
fn what_a_person_reads() {
    let shown = |transform: TimeTransform, text| transform.display(Some(text));
    assert_eq!(shown(TimeTransform::Day, "20713"), "2026-09-17");
    assert_eq!(shown(TimeTransform::Month, "680"), "2026-09");
    assert_eq!(shown(TimeTransform::Year, "56"), "2026");
    assert_eq!(shown(TimeTransform::Year, "-1970"), "0000");
    assert_eq!(shown(TimeTransform::Hour, "497117"), "2026-09-17T05");
    assert_eq!(shown(TimeTransform::Hour, "-1"), "1969-12-31T23");
    assert_eq!(shown(TimeTransform::Day, "020713"), "020713");
    assert_eq!(TimeTransform::Day.display(None), "null");
    assert_eq!(
        shown(TimeTransform::Identity(TimeType::TimestampNs), "-1"),
        "1969-12-31T23:59:59.999999999Z"
    );
}

#[test]
fn a_timestamp_is_written_with_the_digits_that_it_needs() {
    for (nanos, text) in [
        (0, "1970-01-01T00:00:00"),
        (3_661_000_000_000, "1970-01-01T01:01:01"),
        (250_000_000, "1970-01-01T00:00:00.250000"),
        (1_000, "1970-01-01T00:00:00.000001"),
        (250_000_001, "1970-01-01T00:00:00.250000001"),
        (-1, "1969-12-31T23:59:59.999999999"),
    ] {
        let timestamp = TimeTransform::Identity(TimeType::Timestamp);
        assert_eq!(timestamp.encode(UtcInstant::from_nanos(nanos)), text);
    }
}

#[test]
fn identity_texts_that_no_client_writes() {
    use TimeType::*;
    for (column_type, text) in [
        (Date, "0000-01-01"),
        (Date, "2026-13-01"),
        (Date, "2026-00-10"),
        (Date, "2026-01-00"),
        (Date, "2026-09/17"),
        (Date, "2026/09-17"),
        (Date, "２026-01-0"),
        (Timestamp, "2026-09-17 05:00:00"),
        (Timestamp, "2026-09-17t05:00:00"),
        (Timestamp, "2026-09-17T05:00"),
        (Timestamp, "2026-09-17T05:00-00"),
        (Timestamp, "2026-09-17T05-00:00"),
        (Timestamp, "2026-09-17T24:00:00"),
        (Timestamp, "2026-09-17T05:60:00"),
        (Timestamp, "2026-09-17T05:00:60"),
        (Timestamp, "2026-09-17T05:00:00."),
        (Timestamp, "2026-09-17T05:00:00.1234567890"),
        (TimestampTz, "2026-09-17T05:00:00+24:00"),
        (TimestampTz, "2026-09-17T05:00:00+0200"),
        (TimestampTz, "2026-09-17T05:00:00é:00"),
        (TimestampTz, "+00:00"),
        (TimestampTz, ""),
        (TimestampNs, "+1"),
    ] {
        assert_eq!(
            TimeTransform::Identity(column_type).decode(Some(text)),
            Err(Undatable::Malformed),
            "{text}"
        );
    }
}

fn any_transform() -> impl Strategy<Value = TimeTransform> {
    use TimeType::*;
    prop_oneof![
        Just(TimeTransform::Year),
        Just(TimeTransform::Month),
        Just(TimeTransform::Day),
        Just(TimeTransform::Hour),
        Just(TimeTransform::Identity(Date)),
        Just(TimeTransform::Identity(Timestamp)),
        Just(TimeTransform::Identity(TimestampTz)),
        Just(TimeTransform::Identity(TimestampNs)),
    ]
}

proptest! {
    /// Years 1 to 9999: all that an ISO text can say; nanoseconds only as far as 64 bits go.
    #[test]
    fn an_encoded_instant_lies_in_its_decoded_range(
        transform in any_transform(),
        micros in -62_135_596_800_000_000_i128..253_402_300_800_000_000,
    ) {
        let nanos = match transform {
            TimeTransform::Identity(TimeType::TimestampNs) => micros / 60,
            _ => micros * 1_000,
        };
        let at = UtcInstant::from_nanos(nanos);
        let text = transform.encode(at);
        let range = transform.decode(Some(&text)).unwrap();
        prop_assert!(range.start <= at && (at < range.end || (at == range.end && range.start == at)));
        prop_assert_eq!(transform.encode(range.start), text.clone());
        if range.end > range.start {
            prop_assert_eq!(transform.encode(range.end.plus_nanos(-1)), text.clone());
            prop_assert_ne!(transform.encode(range.end), text);
        }
    }

    #[test]
    fn the_ranges_of_neighbouring_ordinals_touch(
        transform in prop_oneof![
            Just(TimeTransform::Year), Just(TimeTransform::Month),
            Just(TimeTransform::Day), Just(TimeTransform::Hour)],
        ordinal in -6_000_i64..200_000,
    ) {
        let range = |ordinal: i64| transform.decode(Some(&ordinal.to_string())).unwrap();
        prop_assert_eq!(range(ordinal).end, range(ordinal + 1).start);
        prop_assert!(range(ordinal).start < range(ordinal).end);
    }

    #[test]
    fn no_text_makes_it_panic(transform in any_transform(), text in any::<String>()) {
        let _ = transform.decode(Some(&text));
        let _ = transform.display(Some(&text));
    }

    #[test]
    fn only_the_canonical_decimal_is_an_ordinal(text in "[-+ 0-9]{0,6}") {
        let canonical = text.parse::<i64>().is_ok_and(|number| number.to_string() == text);
        prop_assert_eq!(TimeTransform::Day.decode(Some(&text)).is_ok(), canonical);
    }
}
