//! The types of settings whose value is one of a few words, and the type of the log filter.

use std::fmt;
use std::str::FromStr;

use super::types::{Accepts, by_text};

/// An enum whose variants are words: one list defines how they are parsed, printed and listed in messages.
macro_rules! words {
    ($(#[$attr:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$attr])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err("there is no such choice".into()),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $word,)+ })
            }
        }

        impl Accepts for $name {
            fn accepts() -> String {
                format!("one of {}", [$($word),+].join(", "))
            }
        }

        by_text!($name);
    };
}

words! {
    /// What a pass does with a tuple of more files than a bounded hold can end.
    Oversize {
        /// Several snapshots in a row, oldest files first.
        Split = "split",
        /// The tuple is kept and reported.
        Skip = "skip",
    }
}

words! {
    /// What a pass does with an expired partition whose column statistics show rows newer than its value.
    CrossCheck {
        /// The partition is kept until these rows have expired too.
        Block = "block",
        /// The partition is dropped and this is logged.
        Warn = "warn",
        /// No statistics are looked up.
        Off = "off",
    }
}

words! {
    /// How log lines look.
    LogFormat {
        /// Pretty on a terminal, JSON elsewhere.
        Auto = "auto",
        /// One JSON object a line.
        Json = "json",
        /// Formatted for people.
        Pretty = "pretty",
    }
}

/// Which log lines are written: directives of `tracing_subscriber::EnvFilter`, all valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFilter(String);

impl LogFilter {
    /// The directives.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for LogFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        tracing_subscriber::EnvFilter::try_new(text).map_err(|why| why.to_string())?;
        Ok(Self(text.into()))
    }
}

impl fmt::Display for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Accepts for LogFilter {
    fn accepts() -> String {
        "error, warn, info, debug or trace, or directives: info,tailrace::sweep=debug".into()
    }
}

by_text!(LogFilter);
