//! Writes `docs/performance.md`, the page with the figures of a run.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

use super::bench::SETTINGS;
use super::finding::{Finding, Verdict, markdown, table, wrapped};
use super::rows::Measured;

/// The results of a run.
pub struct Page {
    machine: Vec<(&'static str, String)>,
    is_quick: bool,
    findings: Vec<Finding>,
    notes: Vec<(String, String)>,
    has_failed: bool,
}

impl Page {
    /// A page without results.
    pub fn new(machine: Vec<(&'static str, String)>, is_quick: bool) -> Self {
        Page { machine, is_quick, findings: Vec::new(), notes: Vec::new(), has_failed: false }
    }

    /// Adds the results of a row.
    pub fn add(&mut self, measured: Measured) {
        self.findings.extend(measured.findings);
        self.notes.push((measured.title.to_owned(), measured.how));
    }

    /// Adds a row that failed.
    pub fn fail(&mut self, row: &str, error: &anyhow::Error) {
        eprintln!("  {error:#}");
        self.has_failed = true;
        self.findings.push(Finding::not_measured(
            row,
            "-",
            format!("it failed: {error:#}").chars().take(200).collect(),
        ));
    }

    /// Whether any row failed.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// The table of results.
    pub fn table(&self) -> String {
        let scale = if self.is_quick { "A twentieth of the size: proves nothing.\n\n" } else { "" };
        format!("{scale}{}", table(&self.findings))
    }

    /// Writes the page.
    pub fn write(&self, path: &Path) -> Result<()> {
        std::fs::write(path, self.text())
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Adds a line about the machine.
    pub fn on(&mut self, name: &'static str, value: String) {
        self.machine.push((name, value));
    }

    fn text(&self) -> String {
        let unmet = self.findings.iter().filter(|found| found.verdict == Verdict::Unmet).count();
        let mut text = String::from(
            "# Performance\n\n`make bench` writes this page. One run measures tailrace, and what it is \
             compared with, on a private\nPostgres. Times are medians, with the smallest and largest in \
             brackets.\n\n",
        );
        if unmet > 0 {
            text.push_str(&format!("{unmet} of the goals are not met.\n\n"));
        }
        text.push_str(&self.table());
        text.push_str("\n## Machine and server\n\n");
        let machine: Vec<_> = self
            .machine
            .iter()
            .map(|(name, value)| vec![(*name).to_owned(), value.clone()])
            .collect();
        text.push_str(&markdown(&["", ""], &machine));
        let settings: Vec<_> =
            SETTINGS.iter().map(|(name, value)| format!("`{name} = {}`", value.trim())).collect();
        let about = format!(
            "The server's settings that differ from its defaults: {}. With `full_page_writes = off`, \
             neither WAL nor times depend on when the pages were last checkpointed.",
            settings.join(", ")
        );
        let _ = write!(text, "\n{}\n", wrapped(&about, 100));
        text.push_str("\n## How each row was measured\n");
        for (title, how) in &self.notes {
            let _ = write!(text, "\n{}\n", wrapped(&format!("**{title}.** {how}"), 100));
        }
        text
    }
}
