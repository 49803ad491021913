//! The partitions of a table as text. Pure: what is drawn, and how wide it gets.

/// How many lines the tallest column takes.
const HEIGHT: i64 = 5;

/// The widest bar of a row.
const WIDEST: i64 = 16;

/// What becomes of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The next pass drops it.
    Expired,
    /// It is kept.
    Kept,
    /// A pass dropped it.
    Dropped,
}

impl Fate {
    /// What a bar is made of; a dropped partition has a dot in its place.
    pub fn sign(self) -> char {
        match self {
            Self::Expired => '░',
            Self::Kept => '█',
            Self::Dropped => '·',
        }
    }
}

/// One partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// The partition as a person reads it.
    pub label: String,
    /// How many live files it has.
    pub files: i64,
    /// What becomes of it.
    pub fate: Fate,
    /// More to say of it, in a row.
    pub note: String,
}

/// What the signs mean.
pub const LEGEND: &str = "░ expired   █ kept   · dropped";

/// One column a bar, in the order given, for partitions that follow each other in time. The
/// cutoff stands before the first one that is kept.
pub fn columns(bars: &[Bar], cutoff: &str) -> String {
    let most = most_files(bars);
    let mark = mark_at(bars);
    let mut lines = Vec::new();
    for level in (1..=HEIGHT).rev() {
        let cells = bars.iter().map(|bar| match bar.fate {
            Fate::Dropped if level == 1 => bar.fate.sign(),
            _ if scaled(bar.files, most, HEIGHT) >= level => bar.fate.sign(),
            _ => ' ',
        });
        lines.push(spaced(cells, mark, '│'));
    }
    if let (Some(first), Some(last)) = (bars.first(), bars.last()) {
        let width = 2 * bars.len() + 1;
        let gap = width.checked_sub(first.label.chars().count() + last.label.chars().count());
        // Where there is no room at both ends, one after the other.
        let between = gap.filter(|gap| *gap > 0).map_or(" to ".to_owned(), |gap| " ".repeat(gap));
        let mut dates: Vec<char> =
            format!("{}{between}{}", first.label, last.label).chars().collect();
        if let Some(place) = dates.get_mut(2 * mark)
            && *place == ' '
        {
            *place = '│';
        }
        lines.push(dates.into_iter().collect());
    }
    let text = format!("cutoff {cutoff} ");
    lines.push(match (2 * mark).checked_sub(text.chars().count()) {
        Some(gap) => format!("{}{text}┘", " ".repeat(gap)),
        None => format!("{}└ {}", " ".repeat(2 * mark), text.trim_end()),
    });
    joined(lines)
}

/// One line for each partition, with its bar before a pass and after it, and its note after it. The cutoff
/// stands before the first one that is kept.
pub fn rows(before: &[Bar], after: &[Bar], cutoff: &str) -> String {
    let most = most_files(before);
    let scale = most.min(WIDEST);
    let labels = before.iter().map(|bar| bar.label.chars().count()).max().unwrap_or(0).max(9);
    let width = usize::try_from(scale).unwrap_or(1).max(6);
    let drawn = |bar: &Bar| {
        let length = match bar.fate {
            Fate::Dropped => 1,
            _ => usize::try_from(scaled(bar.files, most, scale)).unwrap_or(1),
        };
        bar.fate.sign().to_string().repeat(length)
    };
    let mark = mark_at(before);
    let mut lines = vec![format!("{:labels$}  {:width$}  FILES  AFTER", "PARTITION", "BEFORE")];
    let line_of_cutoff = format!("{}  cutoff {cutoff}", "─".repeat(labels));
    for (at, (bar, after)) in before.iter().zip(after).enumerate() {
        if at == mark {
            lines.push(line_of_cutoff.clone());
        }
        let (label, files, note) = (&bar.label, bar.files, &after.note);
        let (bar, after) = (drawn(bar), drawn(after));
        lines.push(format!("{label:labels$}  {bar:width$}  {files:>5}  {after:width$}  {note}"));
    }
    if mark == before.len() {
        lines.push(line_of_cutoff);
    }
    joined(lines)
}

/// The place of the first bar that is kept.
fn mark_at(bars: &[Bar]) -> usize {
    bars.iter().position(|bar| bar.fate == Fate::Kept).unwrap_or(bars.len())
}

fn most_files(bars: &[Bar]) -> i64 {
    bars.iter().map(|bar| bar.files).max().unwrap_or(1).max(1)
}

/// A part of `full`, in proportion and rounded up: a partition with a file shows.
fn scaled(files: i64, most: i64, full: i64) -> i64 {
    (files * full + most - 1) / most
}

/// Cells with a space between, and a mark before the cell that it belongs to.
fn spaced(cells: impl Iterator<Item = char>, mark: usize, sign: char) -> String {
    let mut all: Vec<char> = cells.collect();
    all.insert(mark.min(all.len()), sign);
    let words: Vec<String> = all.into_iter().map(String::from).collect();
    words.join(" ")
}

fn joined(lines: Vec<String>) -> String {
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, files: i64, fate: Fate, note: &str) -> Bar {
        Bar { label: label.to_owned(), files, fate, note: note.to_owned() }
    }

    fn week() -> Vec<Bar> {
        use Fate::{Expired, Kept};
        let days =
            [(1, 10, Expired), (2, 5, Expired), (3, 1, Expired), (4, 10, Kept), (5, 6, Kept)];
        days.map(|(day, files, fate)| bar(&format!("0{day}"), files, fate, "")).into()
    }

    #[test]
    fn columns_are_as_tall_as_their_files_and_split_at_the_cutoff() {
        let expected = "\
            ░     │ █\n\
            ░     │ █\n\
            ░ ░   │ █ █\n\
            ░ ░   │ █ █\n\
            ░ ░ ░ │ █ █\n\
            01    │  05\n\
            \x20     └ cutoff 04\n";
        assert_eq!(columns(&week(), "04"), expected);
    }

    #[test]
    fn labels_that_have_no_room_at_both_ends_follow_each_other() {
        let bars = [bar("2026-09-01", 1, Fate::Kept, ""), bar("2026-09-02", 1, Fate::Kept, "")];
        assert_eq!(columns(&bars, "x").lines().nth(5), Some("2026-09-01 to 2026-09-02"));
    }

    #[test]
    fn what_was_dropped_leaves_a_dot() {
        let mut bars = week();
        for bar in &mut bars[..3] {
            bar.fate = Fate::Dropped;
            bar.files = 0;
        }
        let drawn = columns(&bars, "x");
        assert_eq!(drawn.lines().next(), Some("      │ █"));
        assert_eq!(drawn.lines().nth(4), Some("· · · │ █ █"));
        assert!(!drawn.contains('░'));
    }

    #[test]
    fn a_month_and_its_cutoff_fit_a_terminal() {
        let bars: Vec<Bar> = (0..30)
            .map(|day| {
                let fate = if day < 22 { Fate::Expired } else { Fate::Kept };
                bar(&format!("2026-08-{day:02}"), 1 + day % 7, fate, "")
            })
            .collect();
        let drawn = columns(&bars, "2026-09-12 10:44");
        assert!(drawn.lines().all(|line| line.chars().count() <= 77), "{drawn}");
        let last: Vec<&str> = drawn.lines().rev().take(2).collect();
        assert!(last[0].ends_with("cutoff 2026-09-12 10:44 ┘"), "{drawn}");
        // The mark of the label stands under the mark in the columns.
        let at = |line: &str, sign: char| line.chars().position(|c| c == sign);
        assert_eq!(at(last[0], '┘'), at(last[1], '│'));
        assert_eq!(at(last[1], '│'), drawn.lines().next().and_then(|top| at(top, '│')));
    }

    #[test]
    fn rows_line_up_and_say_what_they_have_to() {
        let before = [
            bar("7 / 09-01", 3, Fate::Expired, ""),
            bar("42 / 09-01", 2, Fate::Expired, ""),
            bar("7 / 09-04", 1, Fate::Kept, ""),
            bar("42 / null", 2, Fate::Kept, ""),
        ];
        let mut after = before.clone();
        for bar in &mut after[..2] {
            *bar = Bar { fate: Fate::Dropped, files: 0, note: "dropped".to_owned(), ..bar.clone() };
        }
        after[3].note = "kept: null".to_owned();
        let expected = "\
            PARTITION   BEFORE  FILES  AFTER\n\
            7 / 09-01   ░░░         3  ·       dropped\n\
            42 / 09-01  ░░          2  ·       dropped\n\
            ──────────  cutoff 09-03\n\
            7 / 09-04   █           1  █\n\
            42 / null   ██          2  ██      kept: null\n";
        assert_eq!(rows(&before, &after, "09-03"), expected);
    }

    #[test]
    fn long_bars_are_scaled_and_the_small_ones_still_show() {
        let bars = [bar("a", 4800, Fate::Kept, ""), bar("b", 1, Fate::Kept, "")];
        let drawn = rows(&bars, &bars, "c");
        let counts: Vec<usize> = drawn.lines().map(|line| line.matches('█').count()).collect();
        assert_eq!(counts, [0, 0, 32, 2]);
    }

    #[test]
    fn the_cutoff_is_last_if_nothing_is_kept_and_no_bars_are_blank() {
        let bars = [bar("a", 1, Fate::Expired, "")];
        assert_eq!(
            rows(&bars, &bars, "c").lines().collect::<Vec<_>>(),
            [
                "PARTITION  BEFORE  FILES  AFTER",
                "a          ░           1  ░",
                "─────────  cutoff c"
            ]
        );
        assert_eq!(rows(&[], &[], "c").lines().count(), 2);
        assert_eq!(columns(&[], "c").lines().last(), Some("└ cutoff c"));
    }
}
