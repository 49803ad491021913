//! What is pinned as a file beside the tests. `TAILRACE_BLESS=1` writes anew all but the rows.

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
    let lines = |of: &'static str, text: &str, other: &str| -> Vec<String> {
        let other: BTreeSet<&str> = other.lines().collect();
        let only = text.lines().filter(|line| !other.contains(line));
        only.map(|line| format!("{of} {line}")).collect()
    };
    let mut changed = lines("-", &file, text);
    changed.extend(lines("+", text, &file));
    panic!(
        "what programs depend on is not as golden/{name} has it; TAILRACE_BLESS=1 writes it anew\n{}",
        changed.join("\n")
    );
}
