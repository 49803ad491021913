//! What an operator should know before trusting it: findings, each with what, why and what to do.
//!
//! [`examine()`] reads, each family of findings is a pure function of what was read: [`server`],
//! [`indexes`], [`rights`], [`creators`], [`clocks`], [`restores`], [`retention`], [`consumers`],
//! [`queue`], [`policies`], [`guards`], [`passes`], [`waiting`], [`specs`], [`ungoverned`]. Every reading is bounded
//! by an index and by a statement timeout, in a session that cannot write; no lock is taken. What cannot
//! be read is a finding of its own. [`bundle`] puts a report together with what else support asks for.

pub mod bundle;
pub mod clocks;
pub mod consumers;
pub mod creators;
pub mod debt;
pub mod examine;
pub mod guards;
pub mod indexes;
pub mod masks;
pub mod own_role;
pub mod passes;
pub mod policies;
pub mod queue;
pub mod restores;
pub mod retention;
pub mod rights;
pub mod server;
pub mod specs;
pub mod table_facts;
pub mod ungoverned;
pub mod versions;
pub mod waiting;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::catalog::tables::TableIdentity;
use crate::policy::command::shell_word;
use crate::rules::instant::{UtcInstant, roughly};

pub use examine::{Doctor, examine};

/// How much a finding matters; the order is that of a report's end to its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Looked at, and as it should be.
    Ok,
    /// Good to know.
    Note,
    /// Something will not go as one may expect.
    Warning,
    /// Something does not work.
    Problem,
}

impl Level {
    /// As JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// One thing to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// Which family it is of.
    pub check: &'static str,
    /// The catalog that it is about; `None` where it is about the whole database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
    /// The table that it is about, as NAMESPACE.TABLE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// What was found, in words.
    pub what: String,
    /// Why it matters; empty where all is well.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What to do; empty where there is nothing to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub to_do: String,
    /// Statements that do it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<String>,
    /// What a policy would free, by `keep`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frees: Vec<ungoverned::Freed>,
}

impl Finding {
    /// Looked at, and as it should be.
    pub fn ok(check: &'static str, what: impl Into<String>) -> Self {
        Self::new(Level::Ok, check, what, "", "")
    }

    /// Something to know about the database.
    pub fn new(
        level: Level,
        check: &'static str,
        what: impl Into<String>,
        why: impl Into<String>,
        to_do: impl Into<String>,
    ) -> Self {
        Finding {
            level,
            check,
            catalog: None,
            table: None,
            what: what.into(),
            why: why.into(),
            to_do: to_do.into(),
            statements: Vec::new(),
            frees: Vec::new(),
        }
    }

    /// The same about a catalog.
    #[must_use]
    pub fn of_catalog(mut self, catalog: &str) -> Self {
        self.catalog = Some(catalog.to_owned());
        self
    }

    /// The same about a table.
    #[must_use]
    pub fn of_table(mut self, table: &TableIdentity) -> Self {
        self.catalog = Some(table.catalog.clone());
        self.table = Some(format!("{}.{}", table.namespace, table.table));
        self
    }

    /// The same with statements that do it.
    #[must_use]
    pub fn with(mut self, statements: Vec<String>) -> Self {
        self.statements = statements;
        self
    }
}

/// All findings.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The database's time at the beginning.
    pub as_of: UtcInstant,
    /// The worst first, then in the order of the families.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether something does not work.
    pub fn has_problem(&self) -> bool {
        self.findings.iter().any(|finding| finding.level == Level::Problem)
    }
}

/// How many names a line lists.
const NAMES_SHOWN: usize = 5;

/// The first of some names, and how many more there are.
fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// A time as all of our output has it.
fn at(time: DateTime<Utc>) -> UtcInstant {
    UtcInstant::from(time)
}

#[cfg(test)]
mod tests;
