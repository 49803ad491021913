//! The result of a row of the benchmark, and how a table of results is written (pure).

use std::fmt;

/// Whether a goal is met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The goal is met.
    Met,
    /// The goal is not met.
    Unmet,
    /// The row has no goal: the figure is only printed.
    NoGoal,
    /// The figure could not be measured, with the reason.
    NotMeasured(String),
}

impl Verdict {
    /// Met, if every condition holds.
    pub fn all(conditions: &[bool]) -> Self {
        if conditions.iter().all(|holds| *holds) { Self::Met } else { Self::Unmet }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Met => f.write_str("met"),
            Self::Unmet => f.write_str("**unmet**"),
            Self::NoGoal => f.write_str("no goal"),
            Self::NotMeasured(reason) => write!(f, "not measured: {reason}"),
        }
    }
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was measured.
    pub what: String,
    /// The figure of tailrace.
    pub ours: String,
    /// The figure of what tailrace is compared with.
    pub beside: String,
    /// The ratio of the two, or the figure that the goal is about.
    pub figure: String,
    /// The goal.
    pub goal: String,
    /// Whether it is met.
    pub verdict: Verdict,
}

impl Finding {
    /// A line for what could not be measured.
    pub fn not_measured(what: &str, goal: &str, reason: String) -> Self {
        let none = || "-".to_owned();
        Finding {
            what: what.to_owned(),
            ours: none(),
            beside: none(),
            figure: none(),
            goal: goal.to_owned(),
            verdict: Verdict::NotMeasured(reason),
        }
    }
}

/// A Markdown table with padded columns, so that its source is readable too.
pub fn markdown(head: &[&str], lines: &[Vec<String>]) -> String {
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let all: Vec<Vec<String>> =
        std::iter::once(&head).chain(lines).map(|line| clean(line)).collect();
    let widths: Vec<usize> = (0..head.len())
        .map(|at| all.iter().filter_map(|line| line.get(at)).map(|cell| cell.chars().count()).max())
        .map(|width| width.unwrap_or_default().max(3))
        .collect();
    let mut text = String::new();
    for (number, line) in all.iter().enumerate() {
        for (cell, &width) in line.iter().zip(&widths) {
            let missing = width - cell.chars().count();
            text.push_str(&format!("| {cell}{} ", " ".repeat(missing)));
        }
        text.push_str("|\n");
        if number == 0 {
            widths.iter().for_each(|width| text.push_str(&format!("|{}", "-".repeat(width + 2))));
            text.push_str("|\n");
        }
    }
    text
}

/// The findings as a table.
pub fn table(findings: &[Finding]) -> String {
    let lines: Vec<_> = findings
        .iter()
        .map(|finding| {
            let Finding { what, ours, beside, figure, goal, verdict } = finding.clone();
            vec![what, ours, beside, figure, goal, verdict.to_string()]
        })
        .collect();
    markdown(&["what", "tailrace", "compared with", "figure", "goal", ""], &lines)
}

/// Escapes what would end the line or the column of a cell.
fn clean(line: &[String]) -> Vec<String> {
    line.iter().map(|cell| cell.replace('|', "\\|").replace(['\n', '\r'], " ")).collect()
}

/// A number with separated thousands.
pub fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Milliseconds, with the decimal places that are significant.
pub fn ms(value: f64) -> String {
    match value.abs() {
        large if large >= 10_000.0 => format!("{:.1} s", value / 1e3),
        middle if middle >= 100.0 => format!("{value:.0} ms"),
        _ => format!("{value:.1} ms"),
    }
}

/// A text in lines of at most `width` characters, except for longer words.
pub fn wrapped(text: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        match used {
            0 => {}
            used if used + 1 + length > width => lines.push('\n'),
            _ => lines.push(' '),
        }
        used = if lines.ends_with('\n') { length } else { used + usize::from(used > 0) + length };
        lines.push_str(word);
    }
    lines
}
