//! Tests that each test which the pages `docs/semantics*.md` name exists, and that each section
//! names one.
//!
//! A paragraph that begins with `Tests:` has one test on each line, as a link from its name to its
//! file.

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

/// The pages by their names, with their texts.
fn pages() -> Result<BTreeMap<String, String>> {
    let mut pages = BTreeMap::new();
    for entry in std::fs::read_dir(root().join("docs"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("semantics") {
            pages.insert(name, std::fs::read_to_string(path)?);
        }
    }
    anyhow::ensure!(pages.len() == 10, "{:?}", pages.keys());
    Ok(pages)
}

#[test]
fn each_section_names_a_test() -> Result<()> {
    let pages = pages()?;
    let mut without = Vec::new();
    for section in pages.values().flat_map(|text| text.split("\n## ").skip(1)) {
        for part in [section].into_iter().chain(section.split("\n### ").skip(1)) {
            if !part.lines().any(|line| line.trim_start().starts_with("Tests:")) {
                without.extend(part.lines().next().map(str::to_owned));
            }
        }
    }
    assert_eq!(without, Vec::<String>::new(), "sections of docs/semantics*.md that name no test");
    Ok(())
}

#[test]
fn each_test_that_is_named_exists() -> Result<()> {
    let pages = pages()?;
    let (mut wrong, mut files, mut is_of_tests) = (Vec::new(), BTreeMap::new(), false);
    let all = pages.iter().flat_map(|(page, text)| {
        let lines = (1..).zip(text.lines().map(str::trim_start));
        lines.map(move |(number, line)| (format!("{page}, line {number}"), line))
    });
    for (place, line) in all {
        let goes_on = !line.is_empty() && !line.starts_with('#');
        is_of_tests = line.starts_with("Tests:") || is_of_tests && goes_on;
        if !is_of_tests {
            continue;
        }
        let Some((name, file)) = named(line) else {
            wrong.push(format!("{place} links no test to its file: {line}"));
            continue;
        };
        if !files.contains_key(file) {
            let tests = tests_of(&root().join(file)).with_context(|| place.clone())?;
            files.insert(file, tests);
        }
        if !files[file].iter().any(|test| test == name) {
            wrong.push(format!("{place}: {file} has no test {name}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "what docs/semantics*.md say of their tests");
    Ok(())
}
