//! What commands print on stdout: the one place that writes there. Whatever is in it, it makes a terminal
//! do nothing but show it ([`plain`]).

use std::io::{self, Write};

use serde::Serialize;

use super::Output;
use crate::telemetry::{self, plain};

/// Prints text for people.
///
/// # Errors
/// Nobody reads it any more, or as the system reports them.
pub fn text(text: &str) -> io::Result<()> {
    io::stdout().lock().write_all(plain(text).as_bytes())
}

/// Prints text for people as one line, whatever is in it.
///
/// # Errors
/// As those of [`text`].
pub fn line(words: &str) -> io::Result<()> {
    text(&format!("{}\n", telemetry::line(words)))
}

/// Prints a result as it is asked for: as a line of JSON, or in the words of `words`.
///
/// # Errors
/// As those of [`text`].
pub fn show<T: Serialize + ?Sized>(
    output: Output,
    result: &T,
    words: impl FnOnce(&T) -> String,
) -> io::Result<()> {
    match output {
        Output::Json => {
            let mut json = serde_json::to_string(result).map_err(io::Error::from)?;
            json.push('\n');
            text(&json)
        }
        Output::Text => text(&words(result)),
    }
}
