//! What the demo checks at its end: each with the values that were found. Pure.

use std::collections::BTreeSet;
use std::fmt::Display;

/// One check.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Check {
    what: String,
    holds: bool,
    values: String,
}

/// All that was checked, in order.
#[derive(Clone, Debug, Default)]
pub struct Checks(Vec<Check>);

impl Checks {
    /// Holds if both are the same.
    pub fn equal<T: Display + PartialEq>(&mut self, what: &str, found: T, expected: T) {
        let holds = found == expected;
        let values = if holds {
            found.to_string()
        } else {
            format!("{found}, where {expected} was expected")
        };
        self.0.push(Check { what: what.to_owned(), holds, values });
    }

    /// Holds or not; the value shows why.
    pub fn holds(&mut self, what: &str, holds: bool, value: String) {
        self.0.push(Check { what: what.to_owned(), holds, values: value });
    }

    /// Holds if both have the same members; shows how many they are.
    pub fn same<T: Ord>(&mut self, what: &str, found: &BTreeSet<T>, expected: &BTreeSet<T>) {
        let (more, fewer) =
            (found.difference(expected).count(), expected.difference(found).count());
        let mut values = found.len().to_string();
        if more + fewer > 0 {
            values.push_str(&format!(", {more} of them not expected, {fewer} missing"));
        }
        self.0.push(Check { what: what.to_owned(), holds: more + fewer == 0, values });
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// How many do not hold.
    pub fn failed(&self) -> usize {
        self.0.iter().filter(|check| !check.holds).count()
    }

    /// A line for each.
    pub fn text(&self) -> String {
        let line = |check: &Check| {
            let verdict = if check.holds { "ok    " } else { "FAILED" };
            format!("{verdict}  {}: {}\n", check.what, check.values)
        };
        self.0.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_shows_its_values() {
        let mut checks = Checks::default();
        checks.equal("files ended, as planned", 3, 3);
        checks.equal("oldest day", "2026-09-11", "2026-09-12");
        checks.same("objects", &BTreeSet::from([1, 2]), &BTreeSet::from([1, 2]));
        checks.same("paths", &BTreeSet::from([1, 2]), &BTreeSet::from([2, 3, 4]));
        checks.holds("floor", false, "76 of 84".to_owned());
        assert_eq!((checks.count(), checks.failed()), (5, 3));
        assert_eq!(
            checks.text(),
            "ok      files ended, as planned: 3\n\
             FAILED  oldest day: 2026-09-11, where 2026-09-12 was expected\n\
             ok      objects: 2\n\
             FAILED  paths: 2, 1 of them not expected, 2 missing\n\
             FAILED  floor: 76 of 84\n"
        );
    }
}
