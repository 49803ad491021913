//! Asks a person.

use std::io::{BufRead as _, IsTerminal as _};

use crate::telemetry::{self, say};

/// Whether a person can be asked: stdin and stderr are terminals.
pub fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks the question, and returns whether the answer is yes.
pub fn confirmed(question: &str) -> anyhow::Result<bool> {
    say(&format!("{question} [y/N] "));
    telemetry::flush();
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
