//! The tests that `docs/semantics.md` names below its rules: each is there, and no section goes without.
//!
//! A paragraph that begins with `Tests:` has one of them on each line, as a link from the test's name to its file.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The tests of a file by their names. They are read as text, for those in a `proptest!` are no items.
fn tests_of(file: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("{} cannot be read", file.display()))?;
    let mut lines = text.lines().map(str::trim_start);
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            let declared = lines.find(|line| !line.starts_with("#[")).unwrap_or_default();
            let name = declared.trim_start_matches("async ").strip_prefix("fn ");
            found.extend(name.and_then(|name| name.split('(').next()).map(str::to_owned));
        }
    }
    Ok(found)
}

/// The name and the file of the test that a line of such a paragraph links to.
fn named(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches("Tests: ").strip_prefix("[`")?;
    let (name, rest) = line.split_once("`](../")?;
    let (file, end) = rest.split_once(')')?;
    matches!(end, "," | ".").then_some((name, file))
}

fn semantics() -> Result<String> {
    Ok(std::fs::read_to_string(root().join("docs/semantics.md"))?)
}

#[test]
fn each_section_names_a_test() -> Result<()> {
    let text = semantics()?;
    let mut without = Vec::new();
    for section in text.split("\n## ").skip(1) {
        for part in [section].into_iter().chain(section.split("\n### ").skip(1)) {
            if !part.lines().any(|line| line.trim_start().starts_with("Tests:")) {
                without.extend(part.lines().next().map(str::to_owned));
            }
        }
    }
    assert_eq!(without, Vec::<String>::new(), "sections of docs/semantics.md that name no test");
    Ok(())
}

#[test]
fn each_test_that_is_named_exists() -> Result<()> {
    let text = semantics()?;
    let (mut wrong, mut files, mut is_of_tests) = (Vec::new(), BTreeMap::new(), false);
    for (number, line) in (1..).zip(text.lines().map(str::trim_start)) {
        is_of_tests = line.starts_with("Tests:") || is_of_tests && !line.is_empty();
        if !is_of_tests {
            continue;
        }
        let Some((name, file)) = named(line) else {
            wrong.push(format!("line {number} links no test to its file: {line}"));
            continue;
        };
        if !files.contains_key(file) {
            let tests = tests_of(&root().join(file)).with_context(|| format!("line {number}"))?;
            files.insert(file, tests);
        }
        if !files[file].iter().any(|test| test == name) {
            wrong.push(format!("line {number}: {file} has no test {name}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "what docs/semantics.md says of its tests");
    Ok(())
}
