//! Tests of the files of the repository beside its sources: they exist, and they agree with
//! `Cargo.toml` and with each other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use chrono::NaiveDate;
use sha2::{Digest, Sha256};

/// The pages that link to others.
const PAGES: [&str; 4] =
    ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/compatibility.md"];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn read(name: &str) -> Result<String> {
    std::fs::read_to_string(path(name)).with_context(|| format!("{name} cannot be read"))
}

#[test]
fn the_changelog_has_a_dated_section_for_this_version() -> Result<()> {
    let text = read("CHANGELOG.md")?;
    let sections: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## [")).collect();
    assert_eq!(sections.first(), Some(&"Unreleased]"));
    let newest = sections.get(1).and_then(|section| section.split_once("] - "));
    let (version, date) = newest.context("a version below Unreleased")?;
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    date.parse::<NaiveDate>().with_context(|| format!("{date} is no date"))?;
    Ok(())
}

#[test]
fn the_program_tells_this_version() -> Result<()> {
    let told = Command::new(env!("CARGO_BIN_EXE_tailrace")).arg("--version").output()?;
    assert!(told.status.success(), "{told:?}");
    let text = String::from_utf8(told.stdout)?;
    assert_eq!(text, format!("tailrace {}\n", env!("CARGO_PKG_VERSION")));
    Ok(())
}

/// The bytes of the text that the Apache Software Foundation publishes.
#[test]
fn the_license_is_the_one_that_cargo_toml_names() -> Result<()> {
    let manifest: toml::Table = read("Cargo.toml")?.parse()?;
    let license = &manifest["workspace"]["package"]["license"];
    assert_eq!(license.as_str(), Some("Apache-2.0"));
    assert_eq!(
        hex::encode(Sha256::digest(read("LICENSE")?)),
        "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
    );
    Ok(())
}

/// As a page of a code host names the anchor of a heading.
fn anchor(heading: &str) -> String {
    let plain = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = plain.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    text.lines().filter(|line| line.starts_with('#')).map(anchor).collect()
}

#[test]
fn links_lead_to_files_and_headings_that_are_there() -> Result<()> {
    let mut wrong = Vec::new();
    for page in PAGES {
        let text = read(page)?;
        let folder = Path::new(page).parent().unwrap_or(Path::new(""));
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = folder.join(file);
            let there = path(&target.to_string_lossy()).is_file();
            let has = || Ok::<_, anyhow::Error>(anchors(&read(&target.to_string_lossy())?));
            if !there || !heading.is_empty() && !has()?.contains(heading) {
                wrong.push(format!("{page}: {link}"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    Ok(())
}

/// A machine of the code host runs what any other one does.
#[test]
fn the_workflow_runs_what_ci_runs() -> Result<()> {
    let workflow = read(".github/workflows/ci.yml")?;
    let lines: Vec<&str> = workflow.lines().map(str::trim).collect();
    for line in ["run: .ci/run", "contents: read", "timeout-minutes: 90"] {
        assert!(lines.contains(&line), "no line {line:?}");
    }
    Ok(())
}

#[test]
fn the_forms_ask_for_what_doctor_says() -> Result<()> {
    for form in ["bug_report", "question"] {
        let text = read(&format!(".github/ISSUE_TEMPLATE/{form}.yml"))?;
        for label in ["tailrace --version", "tailrace doctor --output json"] {
            assert!(text.contains(&format!("label: {label}\n")), "{form} does not ask for {label}");
        }
    }
    Ok(())
}
