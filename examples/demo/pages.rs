//! The pages of the demo: one step each, that fits a terminal of 24 lines and 80 columns. On a terminal
//! each waits for the reader, and is in colour unless NO_COLOR is set.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::oneshot;

use super::picture::Fate;

/// One page.
#[derive(Debug)]
pub struct Page {
    title: String,
    body: String,
}

impl Page {
    /// A page whose lines are moved to the right, below its title.
    pub fn new(title: &str, body: &str) -> Self {
        Self { title: title.to_owned(), body: indented(body) }
    }

    fn text(&self, number: usize, of: usize) -> String {
        let bold = Style::new().bold();
        format!("{bold}{number} of {of}  {}{bold:#}\n\n{}", self.title, coloured(&self.body))
    }
}

/// Whether somebody can be asked to go on.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Shows pages, and says whether all were: with `ask`, the reader may quit before each next one.
pub async fn show(pages: &[Page], ask: bool) -> io::Result<bool> {
    for (at, page) in pages.iter().enumerate() {
        if at > 0 && ask {
            let next = format!("Press Enter for the next page ({} of {}), ", at + 1, pages.len());
            if !go_on(&format!("{next}or q and Enter to quit: ")).await? {
                return Ok(false);
            }
        } else if at > 0 {
            write("\n")?;
        }
        write(&page.text(at + 1, pages.len()))?;
    }
    Ok(true)
}

/// Writes a text; its colours are left out where they are not wanted.
pub fn write(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Asks whether to go on: not after a q, nor where there is no more input. The thread that reads is not waited
/// for, so that a signal ends the demo while it reads.
async fn go_on(question: &str) -> io::Result<bool> {
    write(question)?;
    let (answer, answered) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line);
        // Nobody listens any more after a signal.
        let _ = answer.send(read.map(|_| line));
    });
    let line = answered.await.unwrap_or_else(|_| Ok(String::new()))?;
    if !line.ends_with('\n') {
        // At the end of input the terminal is still in the line of the question.
        write("\n")?;
    }
    Ok(!line.is_empty() && !is_quit(&line))
}

fn is_quit(line: &str) -> bool {
    line.trim().eq_ignore_ascii_case("q")
}

/// The text with the signs of the pictures in the colours of what they mean.
fn coloured(text: &str) -> String {
    let mut coloured = String::new();
    let mut current = Style::new();
    for sign in text.chars() {
        // A blank has no colour, so that the signs of a line of columns need only one.
        let style = if sign == ' ' { current } else { style_of(sign) };
        if style != current {
            coloured.push_str(&format!("{current:#}{style}"));
            current = style;
        }
        coloured.push(sign);
    }
    format!("{coloured}{current:#}")
}

fn style_of(sign: char) -> Style {
    let color =
        [Fate::Expired, Fate::Kept, Fate::Dropped].into_iter().find(|fate| fate.sign() == sign);
    match color {
        Some(Fate::Expired) => AnsiColor::Yellow.on_default(),
        Some(Fate::Kept) => AnsiColor::Green.on_default(),
        Some(Fate::Dropped) => AnsiColor::Red.on_default(),
        None => Style::new(),
    }
}

/// Every line moved to the right; empty ones stay empty.
fn indented(text: &str) -> String {
    text.lines()
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("   {line}\n") })
        .collect()
}

/// Does the work; on a terminal something moves meanwhile.
pub async fn busy<T>(doing: &'static str, work: impl Future<Output = T>) -> T {
    if !io::stderr().is_terminal() {
        return work.await;
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        bar.set_style(style);
    }
    bar.set_message(doing);
    bar.enable_steady_tick(Duration::from_millis(100));
    let result = work.await;
    bar.finish_and_clear();
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_have_colours_and_words_have_none() {
        let drawn = "2026-08  ░ ░\nlater  █  kept\n·\n";
        assert_eq!(
            coloured(drawn),
            "2026-08  \u{1b}[33m░ ░\u{1b}[0m\nlater  \u{1b}[32m█  \u{1b}[0mkept\n\
             \u{1b}[31m·\u{1b}[0m\n"
        );
        assert_eq!(anstream::adapter::strip_str(&coloured(drawn)).to_string(), drawn);
    }

    #[test]
    fn a_page_has_its_number_and_its_lines_moved_to_the_right() {
        let text = Page::new("The plan", "first\n\nsecond").text(2, 8);
        let plain = anstream::adapter::strip_str(&text).to_string();
        assert_eq!(plain, "2 of 8  The plan\n\n   first\n\n   second\n");
    }

    #[test]
    fn q_quits_and_enter_goes_on() {
        assert!(["q\n", " Q \r\n"].iter().all(|line| is_quit(line)));
        assert!(["\n", "quite\n", ""].iter().all(|line| !is_quit(line)));
    }
}
