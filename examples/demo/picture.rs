//! The partitions of a table as text. Pure: what is drawn, and how wide it gets.

/// How many lines the tallest column takes.
const HEIGHT: i64 = 5;

/// The widest bar of a row.
const WIDEST: i64 = 24;

/// How far everything is moved to the right.
const INDENT: &str = "   ";

/// What becomes of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The next pass drops it.
    Goes,
    /// It stays.
    Stays,
    /// A pass dropped it.
    Gone,
}

impl Fate {
    /// What a bar is made of; a partition that is gone has none, only a dot in its place.
    fn brush(self) -> char {
        match self {
            Self::Goes => '░',
            Self::Stays => '█',
            Self::Gone => '·',
        }
    }
}

/// One partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// The partition as a person reads it.
    pub label: String,
    /// How many live files it has, or had.
    pub files: i64,
    /// What becomes of it.
    pub fate: Fate,
    /// More to say of it, in a row.
    pub note: String,
}

/// What the signs mean.
pub const LEGEND: &str = "░ goes   █ stays   · gone";

/// One column a bar, in the order given, for partitions that follow each other in time. The
/// cutoff stands before the first one that stays.
pub fn columns(bars: &[Bar], cutoff: Option<&str>) -> String {
    let most = bars.iter().map(|bar| bar.files).max().unwrap_or(1).max(1);
    let mark = cutoff.map(|_| mark_at(bars));
    let mut lines = Vec::new();
    for level in (1..=HEIGHT).rev() {
        let cells = bars.iter().map(|bar| match bar.fate {
            Fate::Gone if level > 1 => ' ',
            Fate::Gone => bar.fate.brush(),
            _ if scaled(bar.files, most, HEIGHT) >= level => bar.fate.brush(),
            _ => ' ',
        });
        lines.push(spaced(cells, mark, '│'));
    }
    if let (Some(first), Some(last)) = (bars.first(), bars.last()) {
        let width = 2 * (bars.len() + usize::from(mark.is_some())) - 1;
        let gap = width.checked_sub(first.label.chars().count() + last.label.chars().count());
        // Where there is no room at both ends, one after the other.
        let between = gap.filter(|gap| *gap > 0).map_or(" to ".to_owned(), |gap| " ".repeat(gap));
        let mut dates: Vec<char> =
            format!("{}{between}{}", first.label, last.label).chars().collect();
        if let Some(place) = mark.and_then(|mark| dates.get_mut(2 * mark))
            && *place == ' '
        {
            *place = '│';
        }
        lines.push(dates.into_iter().collect());
    }
    if let (Some(mark), Some(cutoff)) = (mark, cutoff) {
        let text = format!("cutoff {cutoff} ");
        let length = text.chars().count();
        lines.push(match (2 * mark).checked_sub(length) {
            Some(gap) => format!("{}{text}┘", " ".repeat(gap)),
            None => format!("{}└ {}", " ".repeat(2 * mark), text.trim_end()),
        });
    }
    joined(lines)
}

/// One line a bar, in the order given, with its label, its files and its note. The cutoff
/// stands before the first one that stays.
pub fn rows(bars: &[Bar], cutoff: Option<&str>) -> String {
    let most = bars.iter().map(|bar| bar.files).max().unwrap_or(1).max(1);
    let scale = most.min(WIDEST);
    let labels = bars.iter().map(|bar| bar.label.chars().count()).max().unwrap_or(0);
    let width = usize::try_from(scale).unwrap_or(1);
    let mark = cutoff.map(|_| mark_at(bars));
    let mut lines = Vec::new();
    let line_of_cutoff = |lines: &mut Vec<String>, at: usize| {
        if let (true, Some(cutoff)) = (mark == Some(at), cutoff) {
            lines.push(format!("{}  cutoff {cutoff}", "─".repeat(labels)));
        }
    };
    for (at, bar) in bars.iter().enumerate() {
        line_of_cutoff(&mut lines, at);
        let length = match bar.fate {
            Fate::Gone => 1,
            _ => usize::try_from(scaled(bar.files, most, scale)).unwrap_or(1),
        };
        let drawn = bar.fate.brush().to_string().repeat(length);
        let count = match bar.fate {
            Fate::Gone => String::new(),
            _ => bar.files.to_string(),
        };
        lines.push(format!("{:<labels$}  {drawn:<width$}  {count:>3}  {}", bar.label, bar.note));
    }
    line_of_cutoff(&mut lines, bars.len());
    joined(lines)
}

/// The place of the first bar that stays.
fn mark_at(bars: &[Bar]) -> usize {
    bars.iter().position(|bar| bar.fate == Fate::Stays).unwrap_or(bars.len())
}

/// A part of `full`, in proportion and rounded up: a partition with a file shows.
fn scaled(files: i64, most: i64, full: i64) -> i64 {
    (files * full + most - 1) / most
}

/// Cells with a space between, and a mark before the cell that it belongs to.
fn spaced(cells: impl Iterator<Item = char>, mark: Option<usize>, sign: char) -> String {
    let mut all: Vec<char> = cells.collect();
    if let Some(mark) = mark {
        all.insert(mark.min(all.len()), sign);
    }
    let words: Vec<String> = all.into_iter().map(String::from).collect();
    words.join(" ")
}

fn joined(lines: Vec<String>) -> String {
    lines.iter().map(|line| format!("{}\n", format!("{INDENT}{line}").trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, files: i64, fate: Fate, note: &str) -> Bar {
        Bar { label: label.to_owned(), files, fate, note: note.to_owned() }
    }

    fn week() -> Vec<Bar> {
        use Fate::{Goes, Stays};
        let days = [(1, 10, Goes), (2, 5, Goes), (3, 1, Goes), (4, 10, Stays), (5, 6, Stays)];
        days.map(|(day, files, fate)| bar(&format!("0{day}"), files, fate, "")).into()
    }

    #[test]
    fn columns_are_as_tall_as_their_files_and_split_at_the_cutoff() {
        let expected = "   \
            ░     │ █\n   \
            ░     │ █\n   \
            ░ ░   │ █ █\n   \
            ░ ░   │ █ █\n   \
            ░ ░ ░ │ █ █\n   \
            01    │  05\n   \
            \x20     └ cutoff 04\n";
        assert_eq!(columns(&week(), Some("04")), expected);
    }

    #[test]
    fn labels_that_have_no_room_at_both_ends_follow_each_other() {
        let bars = [bar("2026-09-01", 1, Fate::Stays, ""), bar("2026-09-02", 1, Fate::Stays, "")];
        assert_eq!(columns(&bars, None).lines().last(), Some("   2026-09-01 to 2026-09-02"));
    }

    #[test]
    fn what_is_gone_leaves_a_dot() {
        let mut bars = week();
        for bar in &mut bars[..3] {
            bar.fate = Fate::Gone;
        }
        let drawn = columns(&bars, Some("x"));
        assert_eq!(drawn.lines().next(), Some("         │ █"));
        assert_eq!(drawn.lines().nth(4), Some("   · · · │ █ █"));
        assert!(!drawn.contains('░'));
    }

    #[test]
    fn a_month_and_its_cutoff_fit_a_terminal() {
        let bars: Vec<Bar> = (0..30)
            .map(|day| {
                let fate = if day < 22 { Fate::Goes } else { Fate::Stays };
                bar(&format!("2026-08-{day:02}"), 1 + day % 7, fate, "")
            })
            .collect();
        let drawn = columns(&bars, Some("2026-09-12 10:44"));
        assert!(drawn.lines().all(|line| line.chars().count() <= 80), "{drawn}");
        let last: Vec<&str> = drawn.lines().rev().take(2).collect();
        assert!(last[0].ends_with("cutoff 2026-09-12 10:44 ┘"), "{drawn}");
        // The mark of the label stands under the mark in the columns.
        let at = |line: &str, sign: char| line.chars().position(|c| c == sign);
        assert_eq!(at(last[0], '┘'), at(last[1], '│'));
        assert_eq!(at(last[1], '│'), drawn.lines().next().and_then(|top| at(top, '│')));
    }

    #[test]
    fn rows_line_up_and_say_what_they_have_to() {
        let bars = [
            bar("7 / 09-01", 3, Fate::Goes, "goes"),
            bar("42 / 09-01", 2, Fate::Gone, "gone"),
            bar("7 / 09-04", 1, Fate::Stays, ""),
            bar("42 / null", 2, Fate::Stays, "stays: null"),
        ];
        let expected = "   \
            7 / 09-01   ░░░    3  goes\n   \
            42 / 09-01  ·         gone\n   \
            ──────────  cutoff 09-03\n   \
            7 / 09-04   █      1\n   \
            42 / null   ██     2  stays: null\n";
        assert_eq!(rows(&bars, Some("09-03")), expected);
    }

    #[test]
    fn long_bars_are_scaled_and_the_small_ones_still_show() {
        let bars = [bar("a", 4800, Fate::Stays, ""), bar("b", 1, Fate::Stays, "")];
        let drawn = rows(&bars, None);
        let counts: Vec<usize> = drawn.lines().map(|line| line.matches('█').count()).collect();
        assert_eq!(counts, [24, 1]);
    }

    #[test]
    fn the_cutoff_is_last_if_nothing_stays_and_no_bars_are_blank() {
        let bars = [bar("a", 1, Fate::Goes, "")];
        assert_eq!(rows(&bars, Some("c")), "   a  ░    1\n   ─  cutoff c\n");
        assert_eq!(rows(&[], None), "");
        assert!(columns(&[], None).trim().is_empty());
    }
}
