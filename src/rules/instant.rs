//! Instants in UTC to the nanosecond, over the whole range of a Postgres `timestamptz`.
//!
//! chrono's dates end in the year 262143 and a partition value may lie later, so the few
//! lines of calendar arithmetic that retention needs are here: proleptic Gregorian, no
//! leap seconds, as Postgres counts.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Utc};

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const NANOS_PER_HOUR: i128 = 3_600 * NANOS_PER_SECOND;
const NANOS_PER_DAY: i128 = 24 * NANOS_PER_HOUR;

/// A point in time: nanoseconds since 1970-01-01T00:00:00Z, negative before.
///
/// Any `i128` is allowed inside the arithmetic; [`UtcInstant::is_representable`] says
/// whether the catalog's database could hold it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, utoipa::ToSchema)]
#[schema(value_type = String, format = DateTime)]
pub struct UtcInstant(i128);

impl UtcInstant {
    /// 4714-11-24 BC, the first day of a Postgres `timestamptz` (Julian day 0).
    pub const EARLIEST: UtcInstant = UtcInstant(-2_440_588 * NANOS_PER_DAY);

    /// The last microsecond that 64 bits can count since 1970: 294247-01-10T04:00:54.775807Z.
    ///
    /// Postgres itself ends in 294276 AD, for it counts from 2000. The narrower end is
    /// what every reader of the catalog can hold, and `partition-vectors.json` asks for it
    /// (day 106751992 has no range). The years between never expire either way.
    pub const LATEST: UtcInstant = UtcInstant(i64::MAX as i128 * 1_000);

    /// The instant this many nanoseconds after (negative: before) 1970.
    pub const fn from_nanos(nanos: i128) -> Self {
        UtcInstant(nanos)
    }

    /// Nanoseconds since 1970.
    pub const fn nanos(self) -> i128 {
        self.0
    }

    /// The first instant of a day; `days` since 1970-01-01.
    pub const fn from_days(days: i128) -> Self {
        UtcInstant(days * NANOS_PER_DAY)
    }

    /// The first instant of an hour; `hours` since 1970-01-01T00.
    pub const fn from_hours(hours: i128) -> Self {
        UtcInstant(hours * NANOS_PER_HOUR)
    }

    /// Midnight of a civil date; `year` is astronomical (0 is 1 BC), `month` 1 to 12,
    /// `day` from 1 (days past the month's end run on into the next).
    pub fn from_civil(year: i128, month: i128, day: i128) -> Self {
        Self::from_days(days_from_civil(year, month, day))
    }

    /// This instant, moved by a number of nanoseconds.
    pub const fn plus_nanos(self, nanos: i128) -> Self {
        UtcInstant(self.0 + nanos)
    }

    /// This instant, later by `length`.
    pub fn plus(self, length: Duration) -> Self {
        UtcInstant(self.0 + length.as_nanos() as i128)
    }

    /// This instant, earlier by `length`.
    pub fn minus(self, length: Duration) -> Self {
        UtcInstant(self.0 - length.as_nanos() as i128)
    }

    /// Whether the instant lies between [`Self::EARLIEST`] and [`Self::LATEST`].
    pub fn is_representable(self) -> bool {
        (Self::EARLIEST..=Self::LATEST).contains(&self)
    }

    /// Days since 1970-01-01, floored.
    pub const fn days(self) -> i128 {
        self.0.div_euclid(NANOS_PER_DAY)
    }

    /// Hours since 1970-01-01T00, floored.
    pub const fn hours(self) -> i128 {
        self.0.div_euclid(NANOS_PER_HOUR)
    }

    /// The civil date in UTC: (astronomical year, month 1..=12, day 1..=31).
    pub fn civil(self) -> (i128, i128, i128) {
        civil_from_days(self.days())
    }

    /// The distance between two instants, without a sign.
    pub fn distance(self, other: UtcInstant) -> Duration {
        let nanos = self.0.abs_diff(other.0);
        Duration::new(
            u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX),
            (nanos % 1_000_000_000) as u32,
        )
    }

    /// The instant as chrono has it, floored to the microsecond; `None` outside of chrono's years.
    pub fn to_chrono(self) -> Option<DateTime<Utc>> {
        i64::try_from(self.0.div_euclid(1_000)).ok().and_then(DateTime::from_timestamp_micros)
    }
}

impl From<DateTime<Utc>> for UtcInstant {
    fn from(time: DateTime<Utc>) -> Self {
        UtcInstant(
            i128::from(time.timestamp()) * NANOS_PER_SECOND
                + i128::from(time.timestamp_subsec_nanos()),
        )
    }
}

impl FromStr for UtcInstant {
    type Err = chrono::ParseError;

    /// Reads RFC 3339 (`2026-09-17T05:00:00Z`, any offset), and what [`fmt::Display`] writes of years
    /// that have a sign.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match with_signed_year(text) {
            Some(at) => Ok(at),
            None => Ok(DateTime::parse_from_rfc3339(text)?.with_timezone(&Utc).into()),
        }
    }
}

/// `+15659-02-28T00:00:00Z`, `-0221-01-01T12:00:00.5Z`: the rest is read as of a leap year with the
/// same calendar, for Gregorian years repeat after 400.
fn with_signed_year(text: &str) -> Option<UtcInstant> {
    const CYCLE: i128 = 400;
    const DAYS_OF_CYCLE: i128 = 146_097;
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let (year, rest) = unsigned.split_once('-')?;
    let is_year = (4..=7).contains(&year.len()) && year.bytes().all(|byte| byte.is_ascii_digit());
    let year = sign * year.parse::<i128>().ok().filter(|_| is_year)?;
    let within = 2000 + year.rem_euclid(CYCLE);
    let same = DateTime::parse_from_rfc3339(&format!("{within}-{rest}")).ok()?;
    let cycles = (year - within) / CYCLE;
    let nanos = cycles * DAYS_OF_CYCLE * NANOS_PER_DAY;
    Some(UtcInstant::from(same.with_timezone(&Utc)).plus_nanos(nanos))
}

/// RFC 3339 in UTC with as many digits of the second's fraction as it has; years beyond
/// four digits carry their sign, years before 1 AD are astronomical.
impl fmt::Display for UtcInstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.civil();
        write_date(f, year, month, day)?;
        let in_day = self.0.rem_euclid(NANOS_PER_DAY);
        let seconds = in_day / NANOS_PER_SECOND;
        write!(f, "T{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
        let fraction = in_day % NANOS_PER_SECOND;
        if fraction != 0 {
            let digits = format!("{fraction:09}");
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

impl<'de> serde::Deserialize<'de> for UtcInstant {
    /// Reads what [`FromStr`] reads: RFC 3339 with a year of four digits.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl serde::Serialize for UtcInstant {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A length of time in the largest unit of which there are two or more, rounded down.
pub fn roughly(seconds: i64) -> String {
    let describe = |number: i64, unit: &str| match number {
        1 => format!("1 {unit}"),
        _ => format!("{number} {unit}s"),
    };
    match seconds.max(0) {
        seconds @ ..120 => describe(seconds, "second"),
        seconds @ ..7_200 => describe(seconds / 60, "minute"),
        seconds @ ..172_800 => describe(seconds / 3_600, "hour"),
        seconds => describe(seconds / 86_400, "day"),
    }
}

/// Writes a date as `YYYY-MM-DD`, with a sign where the year needs one.
pub fn write_date(f: &mut impl fmt::Write, year: i128, month: i128, day: i128) -> fmt::Result {
    match year {
        0..=9999 => write!(f, "{year:04}")?,
        10_000.. => write!(f, "+{year}")?,
        _ => write!(f, "-{:04}", -year)?,
    }
    write!(f, "-{month:02}-{day:02}")
}

/// Days since 1970-01-01 of a proleptic Gregorian date. The year is counted from March, so
/// that the leap day is its last and months follow a fixed pattern of 153 days in five.
fn days_from_civil(year: i128, month: i128, day: i128) -> i128 {
    let from_march = (month + 9).rem_euclid(12);
    let year = if month <= 2 { year - 1 } else { year };
    let days_before_month = (153 * from_march + 2) / 5;
    365 * year + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + days_before_month
        + day
        - 1
        - 719_468
}

/// The inverse of [`days_from_civil`].
fn civil_from_days(days: i128) -> (i128, i128, i128) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + i128::from(month <= 2);
    (year, month, day)
}

/// The earlier of two instants, where there is one.
pub fn earlier(a: Option<UtcInstant>, b: Option<UtcInstant>) -> Option<UtcInstant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests;
