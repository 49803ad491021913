//! Stored partition text <-> the range of time that it covers. Pure.
//!
//! The rules are those of the catalog's contract ("Partitions"): ordinals are counted from
//! 1970 in UTC, floored, in canonical decimal; identity texts are ISO 8601 as the published
//! client writes them. Anything else has no range, and what has no range never expires.

mod spelled;

use std::fmt;

use crate::rules::instant::{UtcInstant, write_date};

/// The type of an identity field's source column, as far as its texts differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimeType {
    /// `date`: `2026-09-17`.
    Date,
    /// `timestamp_s`, `timestamp_ms`, `timestamp`: `2026-09-17T05:00:00[.fraction]`, no offset.
    Timestamp,
    /// `timestamptz`: as a timestamp, with an offset (`+00:00`, `Z`).
    TimestampTz,
    /// `timestamp_ns`: nanoseconds since 1970 in canonical decimal.
    TimestampNs,
}

impl TimeType {
    /// The time type that a catalog column type (`hog_column.col_type`) is, if it is one.
    pub fn of_column(col_type: &str) -> Option<Self> {
        match col_type {
            "date" => Some(Self::Date),
            "timestamp_s" | "timestamp_ms" | "timestamp" => Some(Self::Timestamp),
            "timestamptz" => Some(Self::TimestampTz),
            "timestamp_ns" => Some(Self::TimestampNs),
            _ => None,
        }
    }
}

/// A transform whose stored values say when their rows happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimeTransform {
    /// Years since 1970.
    Year,
    /// Months since 1970-01.
    Month,
    /// Days since 1970-01-01.
    Day,
    /// Hours since 1970-01-01T00.
    Hour,
    /// The value itself, of a date or timestamp column.
    Identity(TimeType),
}

/// The half-open range `[start, end)` of a stored value; `start == end` for the single
/// instant that an identity timestamp covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// First instant covered.
    pub start: UtcInstant,
    /// First instant after the range (the instant itself, where the range is one instant).
    pub end: UtcInstant,
}

/// Why a stored value has no range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Undatable {
    /// The null partition.
    Null,
    /// Not the canonical text of a value of this transform.
    Malformed,
    /// A range that the database could not hold.
    OutOfRange,
}

impl TimeTransform {
    /// The time transform that a spec's field is, from `hog_partition_field.transform` and the
    /// source column's type; `None` for `bucket`, for identity on another type, and for
    /// identity where the type is unknown.
    pub fn of_field(transform: &str, column_type: Option<&str>) -> Option<Self> {
        match transform {
            "year" => Some(Self::Year),
            "month" => Some(Self::Month),
            "day" => Some(Self::Day),
            "hour" => Some(Self::Hour),
            "identity" => column_type.and_then(TimeType::of_column).map(Self::Identity),
            _ => None,
        }
    }

    /// The range that a partition value covers under this transform.
    pub fn decode(self, text: Option<&str>) -> Result<TimeRange, Undatable> {
        let text = text.ok_or(Undatable::Null)?;
        let range = match self {
            Self::Year | Self::Month | Self::Day | Self::Hour => {
                let ordinal = canonical_integer(text)?;
                TimeRange {
                    start: self.ordinal_start(ordinal),
                    end: self.ordinal_start(ordinal + 1),
                }
            }
            Self::Identity(TimeType::Date) => {
                let start = iso_date(text)?;
                TimeRange { start, end: UtcInstant::from_days(start.days() + 1) }
            }
            Self::Identity(TimeType::Timestamp) => at_instant(iso_timestamp(text)?),
            Self::Identity(TimeType::TimestampTz) => at_instant(iso_timestamp_with_offset(text)?),
            Self::Identity(TimeType::TimestampNs) => {
                at_instant(UtcInstant::from_nanos(canonical_integer(text)?))
            }
        };
        if range.start.is_representable() && range.end.is_representable() {
            Ok(range)
        } else {
            Err(Undatable::OutOfRange)
        }
    }

    /// The text that a writer stores for a row that happened at `at`.
    pub fn encode(self, at: UtcInstant) -> String {
        let (year, month, day) = at.civil();
        match self {
            Self::Year => (year - 1970).to_string(),
            Self::Month => ((year - 1970) * 12 + month - 1).to_string(),
            Self::Day => at.days().to_string(),
            Self::Hour => at.hours().to_string(),
            Self::Identity(TimeType::Date) => date_text(year, month, day),
            Self::Identity(TimeType::Timestamp) => timestamp_text(at),
            Self::Identity(TimeType::TimestampTz) => format!("{}+00:00", timestamp_text(at)),
            Self::Identity(TimeType::TimestampNs) => at.nanos().to_string(),
        }
    }

    /// A partition value as a person reads it: 20713 under `day` is `2026-09-17`. Texts without a
    /// range are shown as they are, null as `null`.
    pub fn display(self, text: Option<&str>) -> String {
        let Some(text) = text else { return "null".to_owned() };
        let Ok(range) = self.decode(Some(text)) else { return text.to_owned() };
        let (year, month, day) = range.start.civil();
        let date = date_text(year, month, day);
        match self {
            Self::Year => date[..date.len() - 6].to_owned(),
            Self::Month => date[..date.len() - 3].to_owned(),
            Self::Day | Self::Identity(TimeType::Date) => date,
            Self::Hour => format!("{date}T{:02}", range.start.hours().rem_euclid(24)),
            Self::Identity(_) => range.start.to_string(),
        }
    }

    fn ordinal_start(self, ordinal: i128) -> UtcInstant {
        match self {
            Self::Year => UtcInstant::from_civil(1970 + ordinal, 1, 1),
            Self::Month => {
                UtcInstant::from_civil(1970 + ordinal.div_euclid(12), ordinal.rem_euclid(12) + 1, 1)
            }
            Self::Hour => UtcInstant::from_hours(ordinal),
            Self::Day | Self::Identity(_) => UtcInstant::from_days(ordinal),
        }
    }
}

/// The name of the transform, as the catalog has it.
impl fmt::Display for TimeTransform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Year => "year",
            Self::Month => "month",
            Self::Day => "day",
            Self::Hour => "hour",
            Self::Identity(_) => "identity",
        })
    }
}

fn at_instant(at: UtcInstant) -> TimeRange {
    TimeRange { start: at, end: at }
}

fn date_text(year: i128, month: i128, day: i128) -> String {
    let mut text = String::with_capacity(10);
    // Writing to a String cannot fail.
    let _ = write_date(&mut text, year, month, day);
    text
}

/// A timestamp as the published client writes it: a fraction only where there is one, then of
/// six digits (nine, where six do not hold it).
fn timestamp_text(at: UtcInstant) -> String {
    let (year, month, day) = at.civil();
    let date = date_text(year, month, day);
    let nanos = at.nanos() - UtcInstant::from_days(at.days()).nanos();
    let (seconds, fraction) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let fraction = match (fraction, fraction % 1_000) {
        (0, _) => String::new(),
        (_, 0) => format!(".{:06}", fraction / 1_000),
        _ => format!(".{fraction:09}"),
    };
    format!("{date}T{:02}:{:02}:{:02}{fraction}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Only the one decimal text that an integer has: no sign but a minus, no leading zero, no
/// `-0`, ASCII digits alone. An integer beyond 64 bits is well written but out of range.
pub fn canonical_integer(text: &str) -> Result<i128, Undatable> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let well_written = !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && (!digits.starts_with('0') || text == "0");
    if !well_written {
        return Err(Undatable::Malformed);
    }
    text.parse::<i64>().map(i128::from).map_err(|_| Undatable::OutOfRange)
}

/// `YYYY-MM-DD`, a date that exists, years 0001 to 9999.
fn iso_date(text: &str) -> Result<UtcInstant, Undatable> {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return Err(Undatable::Malformed);
    }
    let (year, month, day) = (digits(&bytes[..4])?, digits(&bytes[5..7])?, digits(&bytes[8..])?);
    let date = UtcInstant::from_civil(year, month, day);
    if year >= 1 && (1..=12).contains(&month) && day >= 1 && date.civil() == (year, month, day) {
        Ok(date)
    } else {
        Err(Undatable::Malformed)
    }
}

/// `YYYY-MM-DDTHH:MM:SS`, then optionally a point and one to nine digits.
fn iso_timestamp(text: &str) -> Result<UtcInstant, Undatable> {
    let (date, time) = text.split_once('T').ok_or(Undatable::Malformed)?;
    let date = iso_date(date)?;
    let (time, fraction) = match time.split_once('.') {
        Some((time, fraction)) => (time, Some(fraction.as_bytes())),
        None => (time, None),
    };
    let bytes = time.as_bytes();
    if bytes.len() != 8 || bytes[2] != b':' || bytes[5] != b':' {
        return Err(Undatable::Malformed);
    }
    let (hour, minute, second) =
        (digits(&bytes[..2])?, digits(&bytes[3..5])?, digits(&bytes[6..])?);
    if hour > 23 || minute > 59 || second > 59 {
        return Err(Undatable::Malformed);
    }
    let nanos = match fraction {
        Some(fraction) if fraction.len() <= 9 => {
            digits(fraction)? * 10_i128.pow(9 - fraction.len() as u32)
        }
        Some(_) => return Err(Undatable::Malformed),
        None => 0,
    };
    Ok(date.plus_nanos((hour * 3600 + minute * 60 + second) * 1_000_000_000 + nanos))
}

/// A timestamp and its offset, `Z` or `±HH:MM` of less than 24 hours.
fn iso_timestamp_with_offset(text: &str) -> Result<UtcInstant, Undatable> {
    if let Some(local) = text.strip_suffix('Z') {
        return iso_timestamp(local);
    }
    let at = text.len().checked_sub(6).ok_or(Undatable::Malformed)?;
    // A text with other than ASCII in its last six bytes may have no boundary there.
    let (local, offset) = text.split_at_checked(at).ok_or(Undatable::Malformed)?;
    let bytes = offset.as_bytes();
    let sign = match bytes[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return Err(Undatable::Malformed),
    };
    if bytes[3] != b':' {
        return Err(Undatable::Malformed);
    }
    let (hours, minutes) = (digits(&bytes[1..3])?, digits(&bytes[4..])?);
    if hours > 23 || minutes > 59 {
        return Err(Undatable::Malformed);
    }
    let offset = sign * (hours * 3600 + minutes * 60) * 1_000_000_000;
    Ok(iso_timestamp(local)?.plus_nanos(-offset))
}

/// One or more ASCII digits as a number; at most nine of them reach here.
fn digits(bytes: &[u8]) -> Result<i128, Undatable> {
    if bytes.is_empty() {
        return Err(Undatable::Malformed);
    }
    bytes.iter().try_fold(0_i128, |number, byte| match byte {
        b'0'..=b'9' => Ok(number * 10 + i128::from(byte - b'0')),
        _ => Err(Undatable::Malformed),
    })
}

#[cfg(test)]
mod tests;
