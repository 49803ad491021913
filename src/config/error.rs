//! The errors of a configuration, in words for the person who wrote it.

use std::io;
use std::path::PathBuf;

use super::keys::{KEYS, SECTIONS};

/// Why there is no configuration. No message repeats a secret.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file that was asked for by name cannot be read.
    #[error("cannot read the configuration file {}: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not TOML.
    #[error("{origin}, line {line}, is not TOML: {why}")]
    NotToml {
        /// The path of the file.
        origin: String,
        /// Counted from 1.
        line: usize,
        /// What the parser expected.
        why: String,
    },
    /// The value of `TAILRACE_ENV` has characters that are not allowed.
    #[error("TAILRACE_ENV = {name:?} cannot name a file; accepted: letters, digits, - and _")]
    EnvironmentName {
        /// The value.
        name: String,
    },
    /// `TAILRACE_ENV` names a file that exists nowhere.
    #[error(
        "TAILRACE_ENV = {name:?} has no file: {} does not exist, and built in are development, \
         staging and production", looked_at.display()
    )]
    NoEnvironment {
        name: String,
        /// Where its file could have been.
        looked_at: PathBuf,
    },
    /// A section was given a plain value.
    #[error("{section} ({origin}) is a section, not a value: write [{section}] and its keys")]
    NotASection {
        section: String,
        /// The file or the variables that set it.
        origin: String,
    },
    /// A key or a section that does not exist.
    #[error("unknown key {path} ({origin}); {known}")]
    Unknown {
        /// The whole key.
        path: String,
        /// The file or the variables that set it.
        origin: String,
        /// The keys or sections that exist there.
        known: String,
    },
    /// A variable that tailrace does not know, with a name that is almost that of one it knows.
    #[error("the variable {variable} is not read: write {meant}")]
    Mistyped {
        variable: String,
        /// The variable with the similar name.
        meant: String,
    },
    /// A value that its key cannot have.
    #[error("{path}{value} ({origin}): {why}; accepted: {accepts}")]
    Value {
        /// The whole key.
        path: String,
        /// ` = value`, or nothing for a secret.
        value: String,
        /// The file or the variables that set it.
        origin: String,
        /// What is wrong with it.
        why: String,
        /// What would be right.
        accepts: String,
    },
    /// Values that are valid one by one and not in combination.
    #[error("{0}")]
    Together(String),
    /// A command needs a key that is not set.
    #[error("{path} is not set: give it in the configuration file or as {variables}")]
    Missing {
        /// The whole key.
        path: &'static str,
        /// The variables that set it.
        variables: &'static str,
    },
    /// The file of the password cannot be used.
    #[error("cannot use database.password_file {}: {why}", path.display())]
    Password {
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The configuration library failed, and nothing that the user wrote can be the cause.
    #[error("the configuration cannot be put together: {0}")]
    Library(String),
}

impl ConfigError {
    pub(super) fn unknown(path: &str, origin: &str) -> Self {
        let section = path.split('.').next().unwrap_or(path);
        Self::Unknown { path: path.into(), origin: origin.into(), known: known_in(section) }
    }

    pub(super) fn unknown_variable(variable: &str) -> Self {
        let path = variable.trim_start_matches("TAILRACE__").to_lowercase().replace("__", ".");
        Self::unknown(&path, &format!("the variable {variable}"))
    }
}

fn known_in(section: &str) -> String {
    let names: Vec<&str> =
        KEYS.iter().filter(|key| key.section == section).map(|key| key.name).collect();
    if names.is_empty() {
        let sections: Vec<&str> = SECTIONS.iter().map(|(name, _)| *name).collect();
        format!("the sections are {}", sections.join(", "))
    } else {
        format!("{section} has {}", names.join(", "))
    }
}
