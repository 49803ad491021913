//! `keep`: how long a partition stays after its last instant.

use std::fmt;
use std::time::Duration;

/// A retention length: whole seconds, at least one, at most 1,000,000 days (so that the
/// database can subtract it from any date of our time).
///
/// It remembers the text that it was read from, for people recognise what they wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    text: String,
    length: Duration,
}

/// Why a text is no `keep`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("keep {text:?} {reason}")]
pub struct KeepError {
    text: String,
    reason: String,
}

const LONGEST: Duration = Duration::from_secs(1_000_000 * 86_400);

impl Keep {
    /// Reads an exact length of s, m, h, d or w: `7d`, `36h`, `1w 2d`.
    ///
    /// # Errors
    /// Months and years (they differ in length), fractions of a second, a missing unit, zero,
    /// a sign, and what is too long.
    pub fn parse(text: &str) -> Result<Self, KeepError> {
        let refuse = |reason: &str| KeepError { text: text.to_owned(), reason: reason.to_owned() };
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err(refuse("is empty: say a length such as 7d"));
        }
        if trimmed.starts_with('-') {
            return Err(refuse("is negative: say a length such as 7d"));
        }
        if trimmed.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(refuse("has no unit: use s, m, h, d or w, such as 7d"));
        }
        for unit in trimmed.split(|c: char| !c.is_alphabetic()).filter(|unit| !unit.is_empty()) {
            check_unit(unit).map_err(|reason| refuse(&reason))?;
        }
        let length = humantime::parse_duration(trimmed).map_err(|error| match error {
            humantime::DurationError::NumberOverflow => refuse("is too long"),
            other => refuse(&format!(
                "is no length ({other}): use s, m, h, d or w, such as 7d, 36h or \"1w 2d\""
            )),
        })?;
        if length.is_zero() {
            return Err(refuse("is zero: nothing would be kept"));
        }
        if length > LONGEST {
            return Err(refuse("is too long: at most 1000000d"));
        }
        Ok(Keep { text: trimmed.to_owned(), length })
    }

    /// A `keep` as the database has it: what was written, and its seconds.
    pub fn from_stored(text: String, seconds: i64) -> Self {
        Keep { text, length: Duration::from_secs(seconds.unsigned_abs()) }
    }

    /// The length.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// The length in whole seconds.
    pub fn seconds(&self) -> i64 {
        i64::try_from(self.length.as_secs()).unwrap_or(i64::MAX)
    }

    /// The text that it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Refuses a length below the configured floor (`guard.min_keep`).
    pub fn at_least(self, floor: Duration) -> Result<Self, KeepError> {
        if self.length >= floor {
            return Ok(self);
        }
        let reason = format!(
            "is less than guard.min_keep ({}): keep more, or lower that guard",
            humantime::format_duration(floor)
        );
        Err(KeepError { text: self.text, reason })
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn check_unit(unit: &str) -> Result<(), String> {
    match unit {
        "s" | "sec" | "secs" | "second" | "seconds" | "m" | "min" | "mins" | "minute"
        | "minutes" | "h" | "hr" | "hrs" | "hour" | "hours" | "d" | "day" | "days" | "w" | "wk"
        | "wks" | "week" | "weeks" => Ok(()),
        "M" | "mo" | "mos" | "month" | "months" => {
            Err("is in months, and months differ in length: say 30d".to_owned())
        }
        "y" | "yr" | "yrs" | "year" | "years" | "Y" => {
            Err("is in years, and years differ in length: say 365d".to_owned())
        }
        _ => Err(format!("has the unit {unit:?}: use s, m, h, d or w, such as 7d")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_lengths() {
        for (text, seconds) in [
            ("7d", 604_800),
            ("36h", 129_600),
            ("1w 2d", 777_600),
            ("1w2d", 777_600),
            ("90m", 5_400),
            ("1s", 1),
            (" 7d ", 604_800),
            ("30days", 2_592_000),
            ("1000000d", 86_400_000_000),
        ] {
            let keep = Keep::parse(text).unwrap();
            assert_eq!((keep.seconds(), keep.text()), (seconds, text.trim()));
        }
    }

    #[test]
    fn everything_else_says_why() {
        for (text, part) in [
            ("", "is empty"),
            ("  ", "is empty"),
            ("7", "has no unit"),
            ("-7d", "is negative"),
            ("0d", "is zero"),
            ("0s", "is zero"),
            ("1M", "months differ in length: say 30d"),
            ("3months", "months differ in length: say 30d"),
            ("1y", "years differ in length: say 365d"),
            ("1year 2d", "years differ in length"),
            ("500ms", "has the unit \"ms\""),
            ("7 fortnights", "has the unit \"fortnights\""),
            ("d", "is no length"),
            ("7d x", "has the unit \"x\""),
            ("1000001d", "is too long: at most 1000000d"),
            ("99999999999999999999d", "is too long"),
            ("999999999999999999w", "is too long"),
            ("7d5", "is no length"),
        ] {
            let error = Keep::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }

    #[test]
    fn the_floor_is_inclusive() {
        let keep = |text| Keep::parse(text).unwrap().at_least(Duration::from_secs(3_600));
        assert_eq!(keep("1h").unwrap().seconds(), 3_600);
        assert_eq!(
            keep("59m 59s").unwrap_err().to_string(),
            "keep \"59m 59s\" is less than guard.min_keep (1h): keep more, or lower that guard"
        );
    }
}
