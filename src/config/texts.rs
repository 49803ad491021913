//! The types of settings that are texts in a certain form: the name of a schema, a cron expression.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::types::{Accepts, by_text};

/// The name of a Postgres schema that a server's tables can live in.
///
/// Letters, digits, `_`, `-` and `$`, not starting with a digit, at most 63 bytes; not one
/// of Postgres's own schemas and not `tailrace`. Upper and lower case differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaName(String);

impl SchemaName {
    /// The name as it is in `pg_namespace`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as SQL text, in double quotes.
    pub fn quoted(&self) -> String {
        format!("\"{}\"", self.0)
    }
}

impl FromStr for SchemaName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut letters = text.chars();
        let first = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        let rest = letters.all(|c| c.is_ascii_alphanumeric() || "_-$".contains(c));
        if !first || !rest || text.len() > 63 {
            return Err("it is not the name of a schema".into());
        }
        if text == "tailrace" || text == "information_schema" || text.starts_with("pg_") {
            return Err("no server keeps its tables in that schema".into());
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for SchemaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Accepts for SchemaName {
    fn accepts() -> String {
        "letters, digits, _, - and $, starting with a letter or _, at most 63 of them".into()
    }
}

by_text!(SchemaName);

/// How many of the next ticks of a cron expression are compared to find the longest time between two.
const TICKS: usize = 1_000;

/// A cron expression with seconds, read in UTC, that fires at least once more.
#[derive(Debug, Clone, PartialEq)]
pub struct Cron(cron::Schedule);

impl Cron {
    /// The first instant after `now` that the expression names; `None` where there is no later one.
    pub fn next_after(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.0.after(&now).next()
    }

    /// The longest time from one tick to the next, among the next ticks.
    pub fn longest_distance(&self, now: DateTime<Utc>) -> Option<Duration> {
        let next = |tick: &DateTime<Utc>| self.next_after(*tick);
        let ticks: Vec<_> = std::iter::successors(self.next_after(now), next).take(TICKS).collect();
        ticks.windows(2).filter_map(|two| (two[1] - two[0]).to_std().ok()).max()
    }
}

impl FromStr for Cron {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fields = text.split_whitespace().count();
        if !text.trim().starts_with('@') && !(6..=7).contains(&fields) {
            return Err(format!("it has {fields} fields: the first is the second"));
        }
        let schedule: cron::Schedule =
            text.parse().map_err(|_| "it is not a cron expression".to_owned())?;
        if schedule.after(&Utc::now()).next().is_none() {
            return Err("it names no instant that is still to come".into());
        }
        Ok(Self(schedule))
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.source())
    }
}

impl Accepts for Cron {
    fn accepts() -> String {
        "six fields (second minute hour day month weekday), weekdays by name: 0 30 4 * * Mon-Fri"
            .into()
    }
}

by_text!(Cron);
