//! Formats numbers and tables for people, and shows progress.

use std::io::IsTerminal;
use std::time::Duration;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};

use crate::telemetry::{self, line};

/// A count with thousands apart: `1,234,567`.
pub fn count(number: i64) -> String {
    let digits = HumanCount(number.unsigned_abs());
    if number < 0 { format!("-{digits}") } else { digits.to_string() }
}

/// A count and what is counted: `1 file`, `2 files`.
pub fn counted(number: i64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", count(number))
}

/// What follows a policy's keep where it keeps the newest time values whatever their age.
pub fn last(keep_last: Option<i32>) -> String {
    keep_last.map(|number| format!(" and the newest {}", count(number.into()))).unwrap_or_default()
}

/// A number of bytes in binary units: `1.50 MiB`. A negative number counts as 0.
pub fn bytes(number: i64) -> String {
    HumanBytes(u64::try_from(number).unwrap_or_default()).to_string()
}

/// Rows in columns as wide as their widest cell; the columns that `right` lists are aligned to the right. Each
/// row is one line, whatever its cells contain.
pub fn columns(rows: &[Vec<String>], right: &[usize], indent: &str) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    for row in rows {
        table.add_row(row.iter().map(|cell| line(cell).into_owned()));
    }
    for (number, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if right.contains(&number) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| format!("{indent}{}\n", line.trim_end())).collect()
}

/// A text behind a label, in lines of at most this width; the later lines are indented to the text of the first.
/// Without a width, or with one that leaves no room, the text is not broken.
pub fn wrapped(label: &str, text: &str, width: Option<usize>) -> String {
    let room = width.and_then(|width| width.checked_sub(label.len())).filter(|room| *room >= 20);
    let Some(room) = room.and_then(|room| u16::try_from(room).ok()) else {
        return format!("{label}{text}\n");
    };
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(room).add_row([text]);
    if let Some(column) = table.column_mut(0) {
        column.set_padding((0, 0));
    }
    let indent = " ".repeat(label.len());
    let labels = std::iter::once(label).chain(std::iter::repeat(indent.as_str()));
    let lines = labels.zip(table.lines());
    lines.map(|(label, line)| format!("{label}{}\n", line.trim_end())).collect()
}

/// A spinner on stderr with the time so far and a message; hidden where stderr is no terminal. Lines of the
/// log are written above it.
pub(super) fn spinner(message: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
        bar.set_style(style);
    }
    telemetry::write_above(&bar);
    bar.set_message(message.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_people_read() {
        let counts: Vec<_> = [0, 999, 1_000, 1_234_567, -1_000].map(count).into();
        assert_eq!(counts, ["0", "999", "1,000", "1,234,567", "-1,000"]);
        assert_eq!((counted(1, "file"), counted(0, "file")), ("1 file".into(), "0 files".into()));
        let sizes: Vec<_> = [-1, 0, 1_023, 1_024, 1_572_864, i64::MAX].map(bytes).into();
        assert_eq!(sizes, ["0 B", "0 B", "1023 B", "1.00 KiB", "1.50 MiB", "8.00 EiB"]);
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["a".to_owned(), "10".to_owned()], vec!["bcd".to_owned(), "9".to_owned()]];
        assert_eq!(columns(&rows, &[1], "  "), "  a    10\n  bcd   9\n");
        let rows =
            [vec!["a\nb".to_owned(), "c".to_owned()], vec!["d".to_owned(), "\u{9b}".to_owned()]];
        assert_eq!(columns(&rows, &[], ""), "a\\nb  c\nd     \\u009b\n");
    }
}
