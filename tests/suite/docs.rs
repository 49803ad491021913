//! Tests of README and the pages of `docs`: no page is too long, each link has a target, and each
//! command runs.

mod blocks;
mod commands;
mod shell;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Lists of one entry for each call, command and event.
const REFERENCE: [&str; 3] = ["docs/http.md", "docs/cli.md", "docs/log-events.md"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages by their paths, with their texts.
fn pages() -> Result<BTreeMap<String, String>> {
    let mut pages = BTreeMap::from([("README.md".to_owned(), read(Path::new("README.md"))?)]);
    for entry in std::fs::read_dir(root().join("docs"))? {
        let path = Path::new("docs").join(entry?.file_name());
        if path.extension().is_some_and(|end| end == "md") {
            pages.insert(path.to_string_lossy().into_owned(), read(&path)?);
        }
    }
    Ok(pages)
}

fn read(path: &Path) -> Result<String> {
    let read = std::fs::read_to_string(root().join(path));
    read.with_context(|| format!("{} cannot be read", path.display()))
}

/// How many words there are to read: what has a letter or a digit in it, the lists of tests aside.
fn words(text: &str) -> usize {
    let mut is_of_tests = false;
    let mut count = 0;
    for line in text.lines().map(str::trim_start) {
        is_of_tests = line.starts_with("Tests:") || is_of_tests && !line.is_empty();
        if !is_of_tests {
            let words = line.split_whitespace();
            count += words.filter(|word| word.contains(char::is_alphanumeric)).count();
        }
    }
    count
}

/// The lines that are no code.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let mut prose = String::new();
    for line in text.lines() {
        let fence = line.trim_start().starts_with("```");
        is_code ^= fence;
        if !is_code && !fence {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose
}

/// Where the links of a page lead to within this project: a path, and an anchor or nothing.
fn links(text: &str) -> Vec<(String, String)> {
    let prose = prose(text);
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets
        .map(|(target, _)| target)
        .filter(|target| !target.contains("://"))
        .map(|target| target.split_once('#').unwrap_or((target, "")))
        .map(|(path, anchor)| (path.to_owned(), anchor.to_owned()))
        .collect()
}

/// The anchors of the headings of a page, as they are made of their words.
fn anchors(text: &str) -> Vec<String> {
    let prose = prose(text);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn no_page_is_too_long() -> Result<()> {
    let mut long = Vec::new();
    for (page, text) in pages()? {
        let most = if page == "README.md" { 700 } else { 1_500 };
        let count = words(&text);
        if count > most && !REFERENCE.contains(&&*page) {
            long.push(format!("{page} has {count} words of at most {most}"));
        }
    }
    assert_eq!(long, Vec::<String>::new());
    Ok(())
}

#[test]
fn each_link_leads_somewhere() -> Result<()> {
    let (mut dead, mut count) = (Vec::new(), 0);
    for (page, text) in pages()? {
        let folder = Path::new(&page).parent().unwrap_or(Path::new(""));
        for (path, anchor) in links(&text) {
            count += 1;
            let target = match &*path {
                "" => PathBuf::from(&page),
                path => folder.join(path),
            };
            if !root().join(&target).is_file() {
                dead.push(format!("{page}: there is no {path}"));
            } else if !anchor.is_empty() && !anchors(&read(&target)?).contains(&anchor) {
                dead.push(format!("{page}: {path} has no heading #{anchor}"));
            }
        }
    }
    assert_eq!(dead, Vec::<String>::new());
    assert!(count > 100, "{count}");
    Ok(())
}

/// Whoever reads the front page finds every other one.
#[test]
fn the_readme_links_every_page() -> Result<()> {
    let pages = pages()?;
    let linked: Vec<_> = links(&pages["README.md"]).into_iter().map(|(path, _)| path).collect();
    let missing: Vec<_> =
        pages.keys().filter(|page| *page != "README.md" && !linked.contains(*page)).collect();
    assert_eq!(missing, Vec::<&String>::new());
    Ok(())
}
