//! The text of a `keep`, part by part: `1w 2d` is 1 week and 2 days.

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// `s`
    Second,
    /// `m`
    Minute,
    /// `h`
    Hour,
    /// `d`
    Day,
    /// `w`
    Week,
    /// `M`: one of several lengths.
    Month,
    /// `y`: one of two lengths.
    Year,
}

impl Unit {
    /// The unit of that name. `m` is a minute and `M` a month; other names of months and years are
    /// known however they are written.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "s" | "sec" | "secs" | "second" | "seconds" => Self::Second,
            "m" | "min" | "mins" | "minute" | "minutes" => Self::Minute,
            "h" | "hr" | "hrs" | "hour" | "hours" => Self::Hour,
            "d" | "day" | "days" => Self::Day,
            "w" | "wk" | "wks" | "week" | "weeks" => Self::Week,
            "M" => Self::Month,
            other => match other.to_lowercase().as_str() {
                "mo" | "mos" | "month" | "months" => Self::Month,
                "y" | "yr" | "yrs" | "year" | "years" => Self::Year,
                _ => return None,
            },
        })
    }

    /// How many seconds it has; `None` for months and years.
    pub fn seconds(self) -> Option<u64> {
        match self {
            Self::Second => Some(1),
            Self::Minute => Some(60),
            Self::Hour => Some(3_600),
            Self::Day => Some(86_400),
            Self::Week => Some(604_800),
            Self::Month | Self::Year => None,
        }
    }

    /// What one of it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Year => "year",
        }
    }
}

/// So many of a unit, as people say it.
pub fn counted(number: u64, unit: Unit) -> String {
    format!("{number} {}{}", unit.name(), if number == 1 { "" } else { "s" })
}

/// A number of one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Before the point.
    pub whole: u64,
    /// After the point, and the power of ten that it is divided by; 0 and 1 without a point.
    pub fraction: (u64, u64),
    /// Of what.
    pub unit: Unit,
}

/// Reads all parts of a text: each a number and a unit, blanks before and between them.
///
/// # Errors
/// What the text is not, as a sentence goes on after it.
pub fn read(text: &str) -> Result<Vec<Part>, String> {
    let units = text.split(|c: char| !c.is_alphabetic()).filter(|unit| !unit.is_empty());
    if let Some(unknown) = units.into_iter().find(|unit| Unit::named(unit).is_none()) {
        return Err(format!("has the unit {unknown:?}: use s, m, h, d or w, such as 7d"));
    }
    let mut parts = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        if whole.is_empty() {
            return Err(no_length(&format!("no number before {rest:?}")));
        }
        let (fraction, after) = match after.strip_prefix('.').map(digits) {
            None => ("", after),
            Some(("", _)) => return Err(no_length(&format!("no digit after \"{whole}.\""))),
            Some(found) => found,
        };
        let after = after.trim_start();
        let end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (name, after) = after.split_at(end);
        let unit = Unit::named(name).ok_or_else(|| no_length(&format!("{whole} has no unit")))?;
        // More than 18 digits are more than any length may have.
        let numbers = (whole.parse(), format!("0{fraction}").parse(), fraction.len());
        let (Ok(whole), Ok(fraction), digits @ ..=18) = numbers else {
            return Err(too_long());
        };
        let tenths = 10_u64.pow(digits as u32);
        parts.push(Part { whole, fraction: (fraction, tenths), unit });
        rest = after.trim_start();
    }
    Ok(parts)
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn no_length(why: &str) -> String {
    format!("is no length ({why}): use s, m, h, d or w, such as 7d, 36h or \"1w 2d\"")
}

/// What is said of a number that no length has.
fn too_long() -> String {
    "is too long".to_owned()
}

/// The first unit that two parts name.
pub fn named_twice(parts: &[Part]) -> Option<Unit> {
    let mut seen = Vec::new();
    for part in parts {
        if seen.contains(&part.unit) {
            return Some(part.unit);
        }
        seen.push(part.unit);
    }
    None
}

/// The seconds of the parts that have an exact length.
///
/// # Errors
/// What the text is not, as a sentence goes on after it.
pub fn seconds(parts: &[Part]) -> Result<u64, String> {
    let mut sum = 0_u64;
    for Part { whole, fraction: (numerator, denominator), unit } in parts {
        let Some(of_unit) = unit.seconds() else { continue };
        let of_fraction = u128::from(*numerator) * u128::from(of_unit);
        if of_fraction % u128::from(*denominator) != 0 {
            return Err("is not a whole number of seconds".to_owned());
        }
        let of_fraction = u64::try_from(of_fraction / u128::from(*denominator)).ok();
        sum = whole
            .checked_mul(of_unit)
            .zip(of_fraction)
            .and_then(|(whole, fraction)| whole.checked_add(fraction)?.checked_add(sum))
            .ok_or_else(too_long)?;
    }
    Ok(sum)
}

/// A length in words, in weeks too or in days at the most.
pub fn describe(seconds: u64, with_weeks: bool) -> String {
    let units = [Unit::Week, Unit::Day, Unit::Hour, Unit::Minute, Unit::Second];
    let mut left = seconds;
    let mut words = Vec::new();
    for unit in units.into_iter().skip(usize::from(!with_weeks)) {
        let of_unit = unit.seconds().unwrap_or(1);
        if left >= of_unit {
            words.push(counted(left / of_unit, unit));
            left %= of_unit;
        }
    }
    if words.is_empty() { counted(0, Unit::Second) } else { words.join(" ") }
}

/// A length as a `keep` says it, in days at the most.
pub fn in_short(seconds: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let mut left = seconds;
    let mut words = Vec::new();
    for (of_unit, unit) in units {
        if left >= of_unit {
            words.push(format!("{}{unit}", left / of_unit));
            left %= of_unit;
        }
    }
    words.join(" ")
}
