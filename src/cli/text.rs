//! Numbers and tables for people.

use std::fmt::Write;

use crate::telemetry::line;

/// A count with thousands apart: `1 234 567`.
pub fn count(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}

/// A count and what is counted: `1 file`, `2 files`.
pub fn counted(number: i64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", count(number))
}

/// A number of bytes in binary units: `1.5 MiB`.
pub fn bytes(number: i64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = number as f64;
    let mut unit = "B";
    for larger in UNITS {
        if value.abs() < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    if unit == "B" { format!("{number} B") } else { format!("{value:.1} {unit}") }
}

/// Rows in columns as wide as their widest cell; columns named in `right` are aligned there. A cell may hold
/// anything: each row is one line.
pub fn columns(rows: &[Vec<String>], right: &[usize], indent: &str) -> String {
    let of_line = |row: &Vec<String>| row.iter().map(|cell| line(cell).into_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(of_line).collect();
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let mut text = String::new();
    for row in &rows {
        let mut line = indent.to_owned();
        for (column, cell) in row.iter().enumerate() {
            let gap = width(column) - cell.chars().count();
            let gap = " ".repeat(gap);
            let lead = if column > 0 { "  " } else { "" };
            // Writing to a String cannot fail.
            let _ = if right.contains(&column) {
                write!(line, "{lead}{gap}{cell}")
            } else {
                write!(line, "{lead}{cell}{gap}")
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_people_read() {
        let counts: Vec<_> = [0, 999, 1_000, 1_234_567, -1_000].map(count).into();
        assert_eq!(counts, ["0", "999", "1 000", "1 234 567", "-1 000"]);
        assert_eq!((counted(1, "file"), counted(0, "file")), ("1 file".into(), "0 files".into()));
        let sizes: Vec<_> = [0, 1_023, 1_024, 1_572_864, i64::MAX].map(bytes).into();
        assert_eq!(sizes, ["0 B", "1023 B", "1.0 KiB", "1.5 MiB", "8.0 EiB"]);
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
