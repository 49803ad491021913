//! Escapes the characters of a text that control a terminal. Anybody may choose the names, values
//! and notes in a catalog, and the messages of the database where a trigger raises them. Printed as
//! they are, they could move the cursor, forge lines, or change what was printed before.
//!
//! All text for people passes through [`plain()`] as a whole, on stdout and on stderr. A text that
//! may hold a line break passes through [`line()`] first. The escapes are those of JSON, and in
//! JSON such characters occur only inside strings, so escaped JSON is the same JSON.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use tracing_subscriber::fmt::MakeWriter;

/// The text with all characters escaped that control a terminal, except line breaks.
pub fn plain(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| letter == '\n')
}

/// The text with all such characters escaped, line breaks included.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

fn escaped(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_fine = |letter: char| is_kept(letter) || !is_obeyed(letter);
    let Some(first) = text.find(|letter| !is_fine(letter)) else { return Cow::Borrowed(text) };
    let (fine, rest) = text.split_at(first);
    let mut escaped = fine.to_owned();
    for letter in rest.chars() {
        match letter {
            letter if is_fine(letter) => escaped.push(letter),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            // Writing to a String cannot fail.
            letter => drop(write!(escaped, "\\u{:04x}", u32::from(letter))),
        }
    }
    Cow::Owned(escaped)
}

/// Whether a terminal does something else with the letter than to show it: C0, DEL and C1; what changes
/// the direction of what follows; the other two line breaks.
fn is_obeyed(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Where lines of JSON go, escaped on their way. Each write is a whole line.
pub struct Escaping<W>(pub W);

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.0.write_all(plain(text).as_bytes())?,
            Err(_) => self.0.write_all(plain(&String::from_utf8_lossy(bytes)).as_bytes())?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<'a, W: MakeWriter<'a>> MakeWriter<'a> for Escaping<W> {
    type Writer = Escaping<W::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        Escaping(self.0.make_writer())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_and_not_done() {
        for (text, expected) in [
            ("", ""),
            (
                "2026-09-17 ünïcode 日本 \\ \"x\" \u{200d}",
                "2026-09-17 ünïcode 日本 \\ \"x\" \u{200d}",
            ),
            ("a\nb\n", "a\nb\n"),
            ("\x1b[31mred\x07", "\\u001b[31mred\\u0007"),
            ("gone\rhere\tthere\x7f\0", "gone\\rhere\\tthere\\u007f\\u0000"),
            ("\u{80}\u{9b}31m\u{9f}\u{85}", "\\u0080\\u009b31m\\u009f\\u0085"),
            ("\u{202a}\u{202e}\u{2066}\u{2069}\u{200f}", "\\u202a\\u202e\\u2066\\u2069\\u200f"),
            ("\u{61c}\u{2028}\u{2029}", "\\u061c\\u2028\\u2029"),
        ] {
            assert_eq!(plain(text), expected);
            assert_eq!(line(text), expected.replace('\n', "\\n"));
        }
    }

    #[test]
    fn json_stays_what_it_is() {
        let text = (0..0x2100).filter_map(char::from_u32).collect::<String>();
        let json = serde_json::to_string(&text).expect("JSON");
        let escaped = plain(&json);
        assert!(!escaped.chars().any(is_obeyed));
        assert_eq!(serde_json::from_str::<String>(&escaped).expect("JSON"), text);
    }
}
