//! The types of the settings. A value is parsed once, from text, into a type that has only valid
//! values. Each type describes in words what it accepts.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Milliseconds in a second, to write ranges of [`Span`] with.
pub const SECOND: u64 = 1_000;
/// Milliseconds in a minute.
pub const MINUTE: u64 = 60 * SECOND;
/// Milliseconds in an hour.
pub const HOUR: u64 = 60 * MINUTE;
/// Milliseconds in a day.
pub const DAY: u64 = 24 * HOUR;

/// The values that a setting accepts, for `config/default.toml` and for errors.
pub trait Accepts {
    /// A phrase that completes "accepted: ...".
    fn accepts() -> String;
}

/// Implements serde with [`FromStr`] and [`fmt::Display`]: a value that a layer holds as a text, number or
/// boolean is converted to a text and parsed.
macro_rules! by_text {
    ($({$($generics:tt)*})? $type:ty) => {
        impl<'de $(, $($generics)*)?> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(from)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl $(<$($generics)*>)? serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }
    };
}
pub(super) use by_text;

/// A length of time, a whole number of milliseconds from `MIN` to `MAX` of them.
///
/// Whole milliseconds, because Postgres has its timeouts in milliseconds: it would round a shorter length to
/// zero, which means "no limit" there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span<const MIN: u64, const MAX: u64>(Duration);

impl<const MIN: u64, const MAX: u64> Span<MIN, MAX> {
    /// The length.
    pub const fn get(self) -> Duration {
        self.0
    }

    /// The length in milliseconds, exact.
    pub const fn as_millis(self) -> u64 {
        self.0.as_secs() * SECOND + self.0.subsec_millis() as u64
    }
}

impl<const MIN: u64, const MAX: u64> FromStr for Span<MIN, MAX> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let calendar = ["M", "month", "months", "y", "yr", "yrs", "year", "years"];
        if text.split(|c: char| !c.is_ascii_alphabetic()).any(|unit| calendar.contains(&unit)) {
            return Err("months and years differ in length: say it in days".into());
        }
        let mut units: Vec<_> = text.split(|c: char| !c.is_alphabetic()).collect();
        units.retain(|unit| !unit.is_empty());
        units.sort_unstable();
        if units.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("it names a unit twice".into());
        }
        let length = humantime::parse_duration(text.trim()).map_err(|why| why.to_string())?;
        if length.subsec_nanos() % 1_000_000 != 0 {
            return Err("it is not a whole number of milliseconds".into());
        }
        if length < Duration::from_millis(MIN) {
            return Err("it is too short".into());
        }
        if length > Duration::from_millis(MAX) {
            return Err("it is too long".into());
        }
        Ok(Self(length))
    }
}

impl<const MIN: u64, const MAX: u64> fmt::Display for Span<MIN, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&words(self.as_millis()))
    }
}

impl<const MIN: u64, const MAX: u64> Accepts for Span<MIN, MAX> {
    fn accepts() -> String {
        format!("a length (500ms, 30s, 1h 30m) from {} to {}", words(MIN), words(MAX))
    }
}

by_text!({const MIN: u64, const MAX: u64} Span<MIN, MAX>);

/// A length as a text that can be parsed again. (The texts of `humantime` can have months.)
fn words(millis: u64) -> String {
    let units = [(DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (SECOND, "s"), (1, "ms")];
    let mut left = millis;
    let mut parts = Vec::new();
    for (unit, name) in units {
        if left >= unit {
            parts.push(format!("{}{name}", left / unit));
            left %= unit;
        }
    }
    if parts.is_empty() { "0s".into() } else { parts.join(" ") }
}

/// A whole number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count<const MIN: u64, const MAX: u64>(u64);

impl<const MIN: u64, const MAX: u64> Count<MIN, MAX> {
    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl<const MIN: u64, const MAX: u64> FromStr for Count<MIN, MAX> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.trim().parse().map_err(|_| "it is not a whole number".to_owned())?;
        if (MIN..=MAX).contains(&number) {
            Ok(Self(number))
        } else {
            Err("it is out of range".into())
        }
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Count<MIN, MAX> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl<const MIN: u64, const MAX: u64> Serialize for Count<MIN, MAX> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(self.0)
    }
}

impl<const MIN: u64, const MAX: u64> Accepts for Count<MIN, MAX> {
    fn accepts() -> String {
        format!("a whole number from {MIN} to {MAX}")
    }
}

/// A fraction, from a thousandth to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Share(f64);

impl Share {
    /// The fraction, in (0, 1].
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let part: f64 = text.trim().parse().map_err(|_| "it is not a number".to_owned())?;
        if (0.001..=1.0).contains(&part) {
            Ok(Self(part))
        } else {
            Err("it is out of range".into())
        }
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for Share {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.0)
    }
}

impl Accepts for Share {
    fn accepts() -> String {
        "a number from 0.001 to 1".into()
    }
}

impl Accepts for bool {
    fn accepts() -> String {
        "true or false".into()
    }
}

impl<T: Accepts> Accepts for Option<T> {
    fn accepts() -> String {
        T::accepts()
    }
}

impl Accepts for std::path::PathBuf {
    fn accepts() -> String {
        "the path of a file, relative to the working directory".into()
    }
}
