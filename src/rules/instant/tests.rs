use super::*;
use chrono::{Datelike, NaiveDate};
use proptest::prelude::*;

#[test]
fn shows_rfc3339() {
    let shown = |nanos| UtcInstant::from_nanos(nanos).to_string();
    assert_eq!(shown(0), "1970-01-01T00:00:00Z");
    assert_eq!(shown(-1), "1969-12-31T23:59:59.999999999Z");
    assert_eq!(shown(250_000_000), "1970-01-01T00:00:00.25Z");
    assert_eq!(UtcInstant::EARLIEST.to_string(), "-4713-11-24T00:00:00Z");
    assert_eq!(UtcInstant::LATEST.to_string(), "+294247-01-10T04:00:54.775807Z");
    assert_eq!(UtcInstant::from_civil(1, 1, 1).to_string(), "0001-01-01T00:00:00Z");
}

#[test]
fn reads_rfc3339_with_any_offset() {
    let read: UtcInstant = "2026-09-17T05:00:00+02:00".parse().unwrap();
    assert_eq!(read.to_string(), "2026-09-17T03:00:00Z");
    assert!("2026-09-17".parse::<UtcInstant>().is_err());
}

#[test]
fn reads_every_instant_that_it_writes() {
    for days in [
        -2_440_588_i128,
        -800_000,
        -719_529,
        -719_528,
        0,
        2_932_896,
        2_932_897,
        5_000_000,
        106_751_990,
    ] {
        for nanos in [0, 1, 43_200_500_000_000, 86_399_999_999_999] {
            let at = UtcInstant::from_days(days).plus_nanos(nanos);
            assert_eq!(at.to_string().parse(), Ok(at), "{at}");
        }
    }
    for text in [
        "+12-01-01T00:00:00Z",
        "+15659-02-30T00:00:00Z",
        "-",
        "+",
        "+15659",
        "-x221-01-01T00:00:00Z",
    ] {
        assert!(text.parse::<UtcInstant>().is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn agrees_with_chrono_on_every_date_it_knows(days in -95_000_000_i64..95_000_000) {
        let date = NaiveDate::from_ymd_opt(1970, 1, 1).unwrap()
            .checked_add_signed(chrono::Duration::days(days)).unwrap();
        let (year, month, day) = UtcInstant::from_days(days.into()).civil();
        prop_assert_eq!((year, month, day),
            (i128::from(date.year()), i128::from(date.month()), i128::from(date.day())));
        prop_assert_eq!(UtcInstant::from_civil(year, month, day).days(), i128::from(days));
    }

    #[test]
    fn civil_is_the_inverse_everywhere(days in -3_000_000_i128..110_000_000) {
        let (year, month, day) = UtcInstant::from_days(days).civil();
        prop_assert_eq!(UtcInstant::from_civil(year, month, day).days(), days);
    }
}

#[test]
fn a_length_is_told_in_the_unit_of_which_there_are_two() {
    for (seconds, text) in [
        (-5, "0 seconds"),
        (1, "1 second"),
        (119, "119 seconds"),
        (120, "2 minutes"),
        (7_199, "119 minutes"),
        (7_200, "2 hours"),
        (172_799, "47 hours"),
        (172_800, "2 days"),
        (259_199, "2 days"),
        (259_200, "3 days"),
    ] {
        assert_eq!(roughly(seconds), text, "{seconds}");
    }
}

#[test]
fn instants_are_counted_moved_and_compared() {
    let at = UtcInstant::from_nanos;
    let second = Duration::from_secs(1);
    assert_eq!(at(7).plus(second), at(1_000_000_007));
    assert_eq!(at(7).minus(second), at(-999_999_993));
    assert_eq!(at(7).plus_nanos(-9).nanos(), -2);
    assert_eq!(UtcInstant::from_hours(-1).nanos(), -3_600_000_000_000);
    assert_eq!(UtcInstant::from_days(2).nanos(), 172_800_000_000_000);
    assert_eq!((at(-1).hours(), at(-1).days(), UtcInstant::from_days(2).hours()), (-1, -1, 48));
    let far = at(-1_500_000_000).distance(at(1_000_000_001));
    assert_eq!(far, Duration::new(2, 500_000_001));
    assert_eq!(at(1_000_000_001).distance(at(-1_500_000_000)), far);
    let (early, late) = (Some(at(1)), Some(at(2)));
    assert_eq!((earlier(early, late), earlier(late, early)), (early, early));
    assert_eq!((earlier(None, late), earlier(late, None), earlier(None, None)), (late, late, None));
}

#[test]
fn the_ends_of_time_are_within_it() {
    let (first, last) = (UtcInstant::EARLIEST, UtcInstant::LATEST);
    assert!(first.is_representable() && last.is_representable());
    assert!(!first.plus_nanos(-1).is_representable() && !last.plus_nanos(1).is_representable());
    // One that chrono has: floored to the microsecond.
    let floored = UtcInstant::from_nanos(-1).to_chrono().map(UtcInstant::from);
    assert_eq!(floored, Some(UtcInstant::from_nanos(-1_000)));
    let with_fraction = UtcInstant::from_nanos(-1_500_000_000).to_chrono().map(UtcInstant::from);
    assert_eq!(with_fraction, Some(UtcInstant::from_nanos(-1_500_000_000)));
}

#[test]
fn instants_are_json_texts() {
    let at = UtcInstant::from_nanos(1_500_000_000);
    assert_eq!(serde_json::to_string(&at).unwrap(), r#""1970-01-01T00:00:01.5Z""#);
    let read: UtcInstant = serde_json::from_str(r#""1970-01-01T02:00:01.5+02:00""#).unwrap();
    assert_eq!(read, at);
    assert!(serde_json::from_str::<UtcInstant>(r#""yesterday""#).is_err());
}

/// Years of four to seven digits, and the same calendar after 400 years.
#[test]
fn years_with_a_sign_have_four_to_seven_digits() {
    let read = |text: &str| text.parse::<UtcInstant>().ok().map(|at| at.civil());
    assert_eq!(read("+2026-09-17T05:00:00Z"), Some((2026, 9, 17)));
    assert_eq!(read("+1234567-02-28T00:00:00Z"), Some((1_234_567, 2, 28)));
    assert_eq!(read("-0400-02-29T00:00:00Z"), Some((-400, 2, 29)));
    assert_eq!(read("-0001-03-01T00:00:00Z"), Some((-1, 3, 1)));
    assert_eq!(read("+12345678-02-28T00:00:00Z"), None);
    assert_eq!(read("+202-09-17T05:00:00Z"), None);
    assert_eq!(read("+2025-02-29T00:00:00Z"), None);
}
