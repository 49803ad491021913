//! The golden files, which hold the pinned values. `TAILRACE_BLESS=1` writes all of them again
//! except the rows.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// Where a file is.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/suite/pins/golden").join(name)
}

/// Whether `what` is to be written anew.
pub fn is_blessing(what: &str) -> bool {
    std::env::var_os("TAILRACE_BLESS").is_some_and(|asked| asked == what)
}

/// The text of a file.
pub fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Compares a text with the file, line by line, or writes the file anew.
pub fn holds(name: &str, text: &str) {
    if is_blessing("1") {
        std::fs::write(path(name), text).expect("a file beside the tests can be written");
    }
    let file = read(name);
    if file == text {
        return;
    }
    let (pinned, today) = (in_sections(&file), in_sections(text));
    let gone = pinned.difference(&today).map(|line| format!("- {line}"));
    let new = today.difference(&pinned).map(|line| format!("+ {line}"));
    let changed: Vec<String> = gone.chain(new).collect();
    panic!(
        "what programs depend on is not as golden/{name} has it; TAILRACE_BLESS=1 writes it anew\n{}",
        changed.join("\n")
    );
}

/// Each line, behind the heading that it is under.
fn in_sections(text: &str) -> BTreeSet<String> {
    let mut heading = "";
    let line = |line| {
        if let Some(found) = str::strip_prefix(line, "# ") {
            heading = found;
        }
        format!("{heading} {line}")
    };
    text.lines().map(line).collect()
}
