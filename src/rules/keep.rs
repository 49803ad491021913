//! `keep`: how long a partition stays after its last instant.

mod calendar;
mod parts;

use std::fmt;
use std::time::Duration;

use parts::Unit;

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
    /// Reads an exact length of s, m (minutes), h, d or w: `7d`, `36h`, `1w 2d`.
    ///
    /// # Errors
    /// Months and years (they differ in length; the words say which length to say instead), a
    /// unit that is named twice, fractions of a second, a missing unit, zero, a sign, and what is
    /// too long.
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
        let parts = parts::read(trimmed).map_err(|reason| refuse(&reason))?;
        if let Some(unit) = parts::named_twice(&parts) {
            let reason = format!("names {}s twice: name each unit once", unit.name());
            return Err(refuse(&reason));
        }
        if parts.iter().any(|part| part.unit.seconds().is_none()) {
            return Err(refuse(&calendar::answer(&parts)));
        }
        let length = parts::seconds(&parts).map_err(|reason| refuse(&reason))?;
        if length == 0 {
            return Err(refuse("is zero: nothing would be kept"));
        }
        let length = Duration::from_secs(length);
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

    /// The length in words: `90m` is `1 hour 30 minutes`, `7d` is `7 days`. Weeks are told where the
    /// text has some.
    pub fn describe(&self) -> String {
        let parts = parts::read(&self.text).unwrap_or_default();
        let with_weeks = parts.iter().any(|part| part.unit == Unit::Week);
        parts::describe(self.length.as_secs(), with_weeks)
    }

    /// Refuses a length below the configured floor (`guard.min_keep`).
    pub fn at_least(self, floor: Duration) -> Result<Self, KeepError> {
        if self.length >= floor {
            return Ok(self);
        }
        let reason = format!(
            "is less than guard.min_keep ({}): keep more, or lower that guard",
            parts::in_short(floor.as_secs())
        );
        Err(KeepError { text: self.text, reason })
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
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
            ("1d 24h", 172_800),
            ("2 hours\t30 min", 9_000),
            ("1.5d", 129_600),
            ("0.25h 1s", 901),
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
            ("1.5s", "is not a whole number of seconds"),
            ("0.3333m", "is not a whole number of seconds"),
            ("1.d", "is no length (no digit after \"1.\")"),
            (".5d", "is no length (no number before \".5d\")"),
            ("1 0d", "is no length (1 has no unit)"),
            ("7d, 1h", "is no length (no number before \", 1h\")"),
            ("+7d", "is no length"),
            ("0.00000000000000000001d", "is too long"),
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

    /// Whoever copies the answer keeps no less than they asked for.
    #[test]
    fn months_and_years_are_answered_for_the_number_asked() {
        for (text, reason) in [
            ("1M", "is in months, and months differ in length (1 month is 28 to 31 days): say 31d"),
            (
                "3 months",
                "is in months, and months differ in length (3 months are 89 to 92 days): say 92d",
            ),
            (
                "6M",
                "is in months, and months differ in length (6 months are 181 to 184 days): say 184d",
            ),
            (
                "6mo",
                "is in months, and months differ in length (6 months are 181 to 184 days): say 184d",
            ),
            (
                "13 Months",
                "is in months, and months differ in length (13 months are 393 to 397 days): say 397d",
            ),
            ("1y", "is in years, and years differ in length (1 year is 365 to 366 days): say 366d"),
            (
                "2y",
                "is in years, and years differ in length (2 years are 730 to 731 days): say 731d",
            ),
            (
                "400 years",
                "is in years, and years differ in length (400 years are 146097 days): say 146097d",
            ),
            (
                "1y 6M",
                "is in years and months, which differ in length (1 year 6 months are 546 to 550 \
                 days): say 550d",
            ),
            (
                "6M1y",
                "is in years and months, which differ in length (1 year 6 months are 546 to 550 \
                 days): say 550d",
            ),
            (
                "1year 2d",
                "is in years, and years differ in length (1 year is 365 to 366 days): say 368d",
            ),
            (
                "1M 1w 36h 90s",
                "is in months, and months differ in length (1 month is 28 to 31 days): say 39d 12h \
                 1m 30s",
            ),
            // No number that somebody could copy.
            ("1.5M", "is in months, and months differ in length: say it in days (d)"),
            ("0M", "is in months, and months differ in length: say it in days (d)"),
            ("0y", "is in years, and years differ in length: say it in days (d)"),
            ("1M 1.5s", "is in months, and months differ in length: say it in days (d)"),
            ("2738y", "is in years, and years differ in length: say it in days (d)"),
            ("1M 999999d", "is in months, and months differ in length: say it in days (d)"),
            (
                "18446744073709551615y",
                "is in years, and years differ in length: say it in days (d)",
            ),
            (
                "18446744073709551615M",
                "is in months, and months differ in length: say it in days (d)",
            ),
            ("18446744073709551616M", "is too long"),
        ] {
            let error = Keep::parse(text).unwrap_err().to_string();
            assert_eq!(error, format!("keep {text:?} {reason}"));
        }
        // What is said can be said.
        for keep in ["184d", "39d 12h 1m 30s", "146097d"] {
            assert_eq!(Keep::parse(keep).unwrap().text(), keep);
        }
    }

    #[test]
    fn a_unit_that_is_named_twice_is_refused() {
        for (text, unit) in [
            ("7d7d", "days"),
            ("7d 7d", "days"),
            ("7d 1day", "days"),
            ("1h 30m 1hr", "hours"),
            ("1m 1min", "minutes"),
            ("6M 6M", "months"),
            ("1y 1year", "years"),
        ] {
            let error = Keep::parse(text).unwrap_err().to_string();
            assert_eq!(error, format!("keep {text:?} names {unit} twice: name each unit once"));
        }
        // A minute is no month.
        assert!(Keep::parse("1M 1m").unwrap_err().to_string().ends_with("say 31d 1m"));
    }

    #[test]
    fn keeps_are_described() {
        for (text, words) in [
            ("90m", "1 hour 30 minutes"),
            ("7d", "7 days"),
            ("1d", "1 day"),
            ("1w 2d", "1 week 2 days"),
            ("1w 7d", "2 weeks"),
            ("14d", "14 days"),
            ("36h", "1 day 12 hours"),
            ("1d 24h", "2 days"),
            ("3601s", "1 hour 1 second"),
            ("1.5d", "1 day 12 hours"),
            ("1000000d", "1000000 days"),
        ] {
            assert_eq!(Keep::parse(text).unwrap().describe(), words, "{text}");
        }
        // As an older program stored it.
        let stored = Keep::from_stored("7d7d".to_owned(), 1_209_600);
        assert_eq!(stored.describe(), "14 days");
    }

    #[test]
    fn the_floor_is_inclusive() {
        let keep = |text| Keep::parse(text).unwrap().at_least(Duration::from_secs(3_600));
        assert_eq!(keep("1h").unwrap().seconds(), 3_600);
        assert_eq!(
            keep("59m 59s").unwrap_err().to_string(),
            "keep \"59m 59s\" is less than guard.min_keep (1h): keep more, or lower that guard"
        );
        // Nothing that is said has months in it.
        let floor = Duration::from_secs(90 * 86_400 + 1);
        assert_eq!(
            Keep::parse("90d").unwrap().at_least(floor).unwrap_err().to_string(),
            "keep \"90d\" is less than guard.min_keep (90d 1s): keep more, or lower that guard"
        );
    }
}
