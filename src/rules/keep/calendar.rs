//! The length of months and years: the number of days that keeps no less than what was asked for.

use super::LONGEST;
use super::parts::{self, Part, Unit, counted, in_short};

/// Months after which the Gregorian calendar begins anew: 400 years.
const CYCLE: u64 = 4_800;

/// The days of a cycle.
const CYCLE_DAYS: u64 = 146_097;

/// The longest length, in months.
const MOST_MONTHS: u64 = 1_000_000 / 28;

/// What is said of parts of which some are months or years, as a sentence goes on after the text:
/// how long they are, and the exact length to say in their place, which is the longest that they
/// can be, so that whoever copies it keeps no less than they meant.
pub fn answer(parts: &[Part]) -> String {
    let of = |unit: Unit| parts.iter().find(|part| part.unit == unit);
    let (years, months) = (of(Unit::Year), of(Unit::Month));
    let what = match (years, months) {
        (Some(_), Some(_)) => "is in years and months, which differ in length",
        (Some(_), None) => "is in years, and years differ in length",
        (None, _) => "is in months, and months differ in length",
    };
    match exact(parts, years, months) {
        Some(exact) => format!("{what} ({}): say {}", exact.range, exact.keep),
        None => format!("{what}: say it in days (d)"),
    }
}

/// What an exact answer says.
struct Exact {
    range: String,
    keep: String,
}

/// `None` for fractions of months, for no month at all, and for more than there can be.
fn exact(parts: &[Part], years: Option<&Part>, months: Option<&Part>) -> Option<Exact> {
    let mut number = 0_u64;
    let mut words = Vec::new();
    for (part, of_unit) in [(years, 12), (months, 1)] {
        let Some(Part { whole, fraction, unit }) = part else { continue };
        if fraction.0 != 0 {
            return None;
        }
        number = whole.checked_mul(of_unit)?.checked_add(number)?;
        words.push(counted(*whole, *unit));
    }
    if number == 0 || number > MOST_MONTHS {
        return None;
    }
    let (shortest, longest) = days(number);
    let seconds = (longest * 86_400).checked_add(parts::seconds(parts).ok()?)?;
    if seconds > LONGEST.as_secs() {
        return None;
    }
    let is_one = words.len() == 1 && words[0].starts_with("1 ");
    let range = match shortest == longest {
        true => format!("{longest} days"),
        false => format!("{shortest} to {longest} days"),
    };
    let range = format!("{} {} {range}", words.join(" "), if is_one { "is" } else { "are" });
    Some(Exact { range, keep: in_short(seconds) })
}

/// The fewest and the most days that so many months can have, whenever they begin.
///
/// They are those of whole months. From a day that the last month does not have (January 31 and a
/// month) one comes to its last day, so the days are between those of the months from the first on
/// and those of the months after it.
fn days(months: u64) -> (u64, u64) {
    let (cycles, rest) = (months / CYCLE, months % CYCLE);
    let mut sum: u64 = (0..rest).map(month).sum();
    let (mut fewest, mut most) = (sum, sum);
    for begin in 0..CYCLE {
        sum = sum + month(begin + rest) - month(begin);
        fewest = fewest.min(sum);
        most = most.max(sum);
    }
    (cycles * CYCLE_DAYS + fewest, cycles * CYCLE_DAYS + most)
}

/// The days of a month, by its number since January of a year that 400 divides.
fn month(number: u64) -> u64 {
    let (year, month) = (number / 12, number % 12);
    match month {
        1 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        1 => 28,
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use chrono::{Days, Months, NaiveDate};

    use super::*;

    #[test]
    fn the_fewest_and_the_most_days() {
        for (months, fewest, most) in [
            (1, 28, 31),
            (2, 59, 62),
            (3, 89, 92),
            (6, 181, 184),
            (12, 365, 366),
            (18, 546, 550),
            (24, 730, 731),
            (48, 1_460, 1_461),
            (96, 2_921, 2_922),
            (1_200, 36_524, 36_525),
            (4_800, 146_097, 146_097),
            (4_801, 146_125, 146_128),
            (9_600, 292_194, 292_194),
        ] {
            assert_eq!(days(months), (fewest, most), "{months}");
        }
        assert!(days(MOST_MONTHS).1 > 1_000_000);
    }

    /// Every day of 400 years as the first one, by another implementation of the calendar, which
    /// knows what a month after January 31 is.
    #[test]
    fn from_every_day_of_a_cycle() {
        for months in [1, 2, 6, 11, 13, 25] {
            let mut day = NaiveDate::from_ymd_opt(2000, 1, 1).expect("a day");
            let (mut fewest, mut most) = (u64::MAX, 0);
            for _ in 0..CYCLE_DAYS {
                let end = day.checked_add_months(Months::new(months)).expect("a day");
                let length = u64::try_from((end - day).num_days()).expect("later");
                fewest = fewest.min(length);
                most = most.max(length);
                day = day.checked_add_days(Days::new(1)).expect("a day");
            }
            assert_eq!(days(u64::from(months)), (fewest, most), "{months}");
        }
    }
}
