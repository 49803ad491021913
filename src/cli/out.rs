//! The only module that writes to stdout. All output is made plain text ([`plain()`]), so that no
//! output controls the terminal.

use std::io::{self, Write};

use serde::Serialize;

use super::Output;
use crate::telemetry::plain;

/// Prints text for people.
///
/// # Errors
/// The reader of stdout has closed it, or another error of the system.
pub fn text(text: &str) -> io::Result<()> {
    io::stdout().lock().write_all(plain(text).as_bytes())
}

/// The width in characters of the terminal that stdout is; `None` where stdout is no terminal.
pub fn width() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0.into())
}

/// Prints a result in the output that was chosen: as a line of JSON, or as the text that `words` gives.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    fn writes_in(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).expect("src can be read") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                writes_in(&path, found);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let writes = ["stdout()", "stderr()", "print!(", "println!(", "dbg!("];
            let text = text.replace("stderr().is_terminal()", "");
            if writes.iter().any(|words| text.contains(words)) {
                let root = concat!(env!("CARGO_MANIFEST_DIR"), "/src/");
                let name = path.to_string_lossy();
                found.insert(name.strip_prefix(root).unwrap_or(&name).to_owned());
            }
        }
    }

    /// Everything is printed by this module or by the log; the list has the code that prints otherwise.
    #[test]
    fn nobody_else_writes_where_a_terminal_may_be() {
        let mut found = BTreeSet::new();
        writes_in(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), &mut found);
        // `main` tells that there is no thread to write the log.
        assert_eq!(found, ["cli/out.rs", "main.rs", "telemetry.rs"].map(str::to_owned).into());
    }
}
