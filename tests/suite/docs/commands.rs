//! Tests that every command of every page works: it is run as it is written there, and ends with
//! exit code 0.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;

use super::blocks::{Block, blocks};
use super::shell::{Place, Prepared};
use super::{pages, read};

/// Where this is set, a machine on which no page can be run is a failure.
const REQUIRED: &str = "TAILRACE_TEST_CLIENTS_REQUIRED";

/// The blocks that nobody runs, by page and line of the page's blocks, as their marks say why.
const NOT_RUN: [(&str, &str); 12] = [
    ("CONTRIBUTING.md", "it builds and tests everything"),
    ("CONTRIBUTING.md", "it builds the tests that this is one of"),
    ("README.md", "tests/suite/demo runs it"),
    ("docs/architecture.md", "it builds and tests everything"),
    ("docs/architecture.md", "it measures for minutes to hours"),
    ("docs/http.md", "it writes to /etc and asks systemd"),
    ("docs/http.md", "7c0e... stands for the UUID of a table, which is emptied"),
    ("docs/install.md", "it builds for minutes"),
    ("docs/install.md", "the host is yours to put in"),
    ("docs/mutants.md", "it builds tailrace once for each mutant"),
    ("docs/what-to-do-when.md", "it writes to /etc"),
    ("docs/what-to-do-when.md", "it asks on a terminal"),
];

/// The pages with their blocks, those without any left out.
fn all() -> Result<BTreeMap<String, Vec<Block>>> {
    let mut texts = pages()?;
    for page in ["CONTRIBUTING.md", "SECURITY.md"] {
        texts.insert(page.to_owned(), read(page.as_ref())?);
    }
    let mut found = BTreeMap::new();
    for (page, text) in texts {
        let blocks = blocks(&text).map_err(|error| error.context(page.clone()))?;
        if !blocks.is_empty() {
            found.insert(page, blocks);
        }
    }
    Ok(found)
}

/// How far the reader of a page has come.
fn prepared(page: &str) -> Prepared {
    match page {
        "docs/install.md" => Prepared::Lake,
        "docs/http.md" => Prepared::Daemon,
        _ => Prepared::Installed,
    }
}

#[test]
fn blocks_that_are_not_run_are_these() -> Result<()> {
    let mut found = Vec::new();
    for (page, blocks) in all()? {
        found.extend(blocks.into_iter().filter_map(|block| Some((page.clone(), block.not_run?))));
    }
    let expected = NOT_RUN.map(|(page, why)| (page.to_owned(), why.to_owned()));
    assert_eq!(found, expected);
    assert!(NOT_RUN.len() <= 12);
    Ok(())
}

#[tokio::test]
async fn each_command_of_each_page_runs_as_it_stands() -> Result<()> {
    let place = match Place::find().await? {
        Ok(place) => place,
        Err(why) if std::env::var_os(REQUIRED).is_some() => anyhow::bail!(why),
        Err(why) => {
            // The standard library's macros would be heard of a test that fails only.
            let text = format!("NOT RUN: the commands of the pages: {why}\n");
            return Ok(std::io::stderr().write_all(text.as_bytes())?);
        }
    };
    let (mut failed, mut count) = (Vec::new(), 0);
    for (page, mut blocks) in all()? {
        blocks.retain(|block| block.not_run.is_none());
        count += blocks.len();
        if blocks.is_empty() {
            continue;
        }
        if let Err(error) = place.run(prepared(&page), &blocks).await {
            failed.push(format!("{page}: {error:#}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    assert!(count > 25, "{count}");
    Ok(())
}
