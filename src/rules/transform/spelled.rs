//! The texts as which one instant may be stored. Pure.

use super::{TimeTransform, TimeType, date_text, iso_timestamp, iso_timestamp_with_offset};
use crate::rules::instant::UtcInstant;

/// The most digits that a second's fraction has.
const DIGITS: usize = 9;

/// The furthest offset that a text may have, in minutes.
const FURTHEST: i128 = 23 * 60 + 59;

impl TimeType {
    /// The instant that a person names by a text, for an identity field on a column of this type: as it
    /// is stored, or by RFC 3339 with any offset, `t` and `z` in either case. Without an offset it is in
    /// UTC where the partition values have none either; where they have one, it names no instant, for whoever
    /// leaves it out may mean local time.
    pub fn read(self, typed: &str) -> Option<UtcInstant> {
        let text = typed.to_ascii_uppercase();
        let with_offset = || iso_timestamp_with_offset(&text);
        let read = match self {
            Self::Date => return None,
            Self::TimestampTz => with_offset(),
            Self::Timestamp => with_offset().or_else(|_| iso_timestamp(&text)),
            Self::TimestampNs => match TimeTransform::Identity(self).decode(Some(typed)) {
                Ok(range) => Ok(range.start),
                Err(_) => with_offset().or_else(|_| iso_timestamp(&text)),
            },
        };
        read.ok().filter(|at| at.is_representable())
    }

    /// How many texts an instant has at most: a timestamp may have zeros behind its fraction, and one
    /// with an offset any offset.
    pub fn most_texts(self) -> usize {
        match self {
            Self::Date => 0,
            Self::TimestampNs => 1,
            Self::Timestamp => 10,
            Self::TimestampTz => 28_810,
        }
    }

    /// Every text that says this instant ([`TimeTransform::decode`]); none of a date, which is a day.
    pub fn texts_of(self, at: UtcInstant) -> Vec<String> {
        let mut texts = match self {
            Self::Date => Vec::new(),
            Self::TimestampNs => vec![at.nanos().to_string()],
            Self::Timestamp => without_offset(at),
            Self::TimestampTz => {
                (-FURTHEST..=FURTHEST).flat_map(|by| with_offset(at, by)).collect()
            }
        };
        // Beyond years of four digits there is none.
        let says_it = |text: &String| {
            let range = TimeTransform::Identity(self).decode(Some(text));
            range.is_ok_and(|range| range.start == at)
        };
        texts.retain(says_it);
        texts
    }
}

fn without_offset(at: UtcInstant) -> Vec<String> {
    let (year, month, day) = at.civil();
    let nanos = at.nanos() - UtcInstant::from_days(at.days()).nanos();
    let (seconds, fraction) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let whole = format!("{}T{hour:02}:{minute:02}:{second:02}", date_text(year, month, day));
    let digits = format!("{fraction:09}");
    let needed = digits.trim_end_matches('0').len();
    let mut texts: Vec<String> =
        (needed.max(1)..=DIGITS).map(|length| format!("{whole}.{}", &digits[..length])).collect();
    if needed == 0 {
        texts.push(whole);
    }
    texts
}

fn with_offset(at: UtcInstant, minutes: i128) -> Vec<String> {
    let (hours, rest) = (minutes.abs() / 60, minutes.abs() % 60);
    let offsets = match minutes {
        0 => vec!["Z".to_owned(), "+00:00".to_owned(), "-00:00".to_owned()],
        1.. => vec![format!("+{hours:02}:{rest:02}")],
        _ => vec![format!("-{hours:02}:{rest:02}")],
    };
    let local = without_offset(at.plus_nanos(minutes * 60 * 1_000_000_000));
    let mut texts = Vec::with_capacity(local.len() * offsets.len());
    for offset in &offsets {
        texts.extend(local.iter().map(|local| format!("{local}{offset}")));
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> UtcInstant {
        text.parse().unwrap()
    }

    #[test]
    fn a_person_names_an_instant_in_any_way_that_says_it() {
        use TimeType::*;
        let five = Some(at("2026-10-31T05:00:00Z"));
        for (column_type, typed, expected) in [
            (TimestampTz, "2026-10-31T05:00:00Z", five),
            (TimestampTz, "2026-10-31t05:00:00z", five),
            (TimestampTz, "2026-10-31T05:00:00+00:00", five),
            (TimestampTz, "2026-10-31T07:00:00+02:00", five),
            (TimestampTz, "2026-10-30T23:15:00.000-05:45", five),
            (TimestampTz, "2026-10-31T05:00:00", None),
            (TimestampTz, "2026-10-31 05:00:00Z", None),
            (TimestampTz, "2026-10-31", None),
            (TimestampTz, "2026-10-31T05:00:60Z", None),
            (Timestamp, "2026-10-31T05:00:00", five),
            (Timestamp, "2026-10-31T05:00:00.000000", five),
            (Timestamp, "2026-10-31T07:00:00+02:00", five),
            (TimestampNs, "1793422800000000000", five),
            (TimestampNs, "2026-10-31T05:00:00Z", five),
            (TimestampNs, "2026-10-31T05:00:00", five),
            (TimestampNs, "01793422800000000000", None),
            (Date, "2026-10-31", None),
            (Date, "2026-10-31T00:00:00Z", None),
        ] {
            assert_eq!(column_type.read(typed), expected, "{column_type:?} {typed}");
        }
    }

    #[test]
    fn how_many_texts_there_are() {
        use TimeType::*;
        for (column_type, instant, expected) in [
            (TimestampTz, "2026-10-31T05:00:00Z", 28_810),
            (TimestampTz, "2026-10-31T05:00:00.000001Z", 4 * 2_881),
            (TimestampTz, "0001-01-01T00:00:00Z", 10 * (2_881 - 1_439)),
            (Timestamp, "2026-10-31T05:00:00Z", 10),
            (Timestamp, "2026-10-31T05:00:00.123456789Z", 1),
            (TimestampNs, "2026-10-31T05:00:00Z", 1),
            (Date, "2026-10-31T00:00:00Z", 0),
        ] {
            let mut texts = column_type.texts_of(at(instant));
            assert_eq!(texts.len(), expected, "{column_type:?} {instant}");
            assert!(texts.len() <= column_type.most_texts());
            texts.sort_unstable();
            texts.dedup();
            assert_eq!(texts.len(), expected, "each once: {column_type:?} {instant}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// What decodes to an instant is among its texts, however it is written.
        #[test]
        fn no_text_of_an_instant_is_left_out(
            days in -719_000_i128..2_932_000,
            second in 0_i128..86_400,
            fraction in "(\\.[0-9]{1,9})?",
            offset in "(Z|[+-](0[0-9]|1[0-9]|2[0-3]):[0-5][0-9])",
        ) {
            let (year, month, day) = UtcInstant::from_days(days).civil();
            let date = date_text(year, month, day);
            let (hour, minute, rest) = (second / 3600, second / 60 % 60, second % 60);
            let local = format!("{date}T{hour:02}:{minute:02}:{rest:02}{fraction}");
            for (column_type, text) in [
                (TimeType::TimestampTz, format!("{local}{offset}")),
                (TimeType::Timestamp, local),
            ] {
                let range = TimeTransform::Identity(column_type).decode(Some(&text)).unwrap();
                prop_assert_eq!(column_type.read(&text), Some(range.start));
                let texts = column_type.texts_of(range.start);
                prop_assert!(texts.contains(&text), "{}", text);
            }
        }
    }
}
