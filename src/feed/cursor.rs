//! The place where a page ended.

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::catalog::changefeed::{Key, Section};
use crate::explicit::problem::Problem;

/// What a cursor carries: the window, so that all pages are of the same one, and the place of the
/// last entry that was sent.
///
/// On the wire it is opaque: it may look different in the next version, which then refuses the
/// old ones. It needs no escaping in a URL. Its checksum is there to find what was cut off or
/// mistyped; who computes one gets no more than by asking openly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    pub table_uuid: Uuid,
    /// The window begins after it.
    pub from_snapshot: i64,
    /// The window's last snapshot.
    pub to_snapshot: i64,
    /// Whether ended files are listed.
    pub ended_files: bool,
    /// The list of the last entry.
    pub section: Section,
    /// The last entry's place in its list.
    pub after: Key,
}

const VERSION: &str = "1";

impl Cursor {
    /// As it goes over the wire.
    pub fn render(&self) -> String {
        let section = match self.section {
            Section::Files => "f",
            Section::DeleteFiles => "d",
            Section::EndedFiles => "e",
        };
        let text = format!(
            "{VERSION}.{}.{}.{}.{}.{section}.{}.{}",
            self.table_uuid.simple(),
            self.from_snapshot,
            self.to_snapshot,
            u8::from(self.ended_files),
            self.after.0,
            self.after.1,
        );
        format!("{text}.{}", checksum(&text))
    }

    /// Reads what [`Self::render`] wrote.
    ///
    /// # Errors
    /// 400 for anything else.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        Self::read(text)
            .filter(|cursor| cursor.render() == text)
            .ok_or_else(|| Problem::BadRequest("cursor is not one that was given out".to_owned()))
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let mut next = || parts.next();
        if next()? != VERSION {
            return None;
        }
        let cursor = Self {
            table_uuid: next()?.parse().ok()?,
            from_snapshot: next()?.parse().ok()?,
            to_snapshot: next()?.parse().ok()?,
            ended_files: next()? == "1",
            section: match next()? {
                "f" => Section::Files,
                "d" => Section::DeleteFiles,
                "e" => Section::EndedFiles,
                _ => return None,
            },
            after: (next()?.parse().ok()?, next()?.parse().ok()?),
        };
        let inside = cursor.from_snapshot < cursor.after.0 && cursor.after.0 <= cursor.to_snapshot;
        (inside && (cursor.ended_files || cursor.section != Section::EndedFiles)).then_some(cursor)
    }
}

fn checksum(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    hex::encode(&digest[..4])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor() -> Cursor {
        Cursor {
            table_uuid: Uuid::from_u128(7),
            from_snapshot: 3,
            to_snapshot: 12,
            ended_files: true,
            section: Section::EndedFiles,
            after: (9, 41),
        }
    }

    #[test]
    fn it_comes_back_as_it_went() {
        for section in [Section::Files, Section::DeleteFiles, Section::EndedFiles] {
            let cursor = Cursor { section, ..cursor() };
            let text = cursor.render();
            assert!(text.chars().all(|c| c.is_ascii_alphanumeric() || c == '.'), "{text}");
            assert_eq!(Cursor::parse(&text), Ok(cursor));
        }
        let text = "1.00000000000000000000000000000007.3.12.1.e.9.41.";
        assert_eq!(cursor().render(), format!("{text}{}", checksum(text.trim_end_matches('.'))));
    }

    #[test]
    fn what_was_not_given_out_is_refused() {
        let text = cursor().render();
        let mut broken: Vec<String> = (0..text.len()).map(|end| text[..end].to_owned()).collect();
        broken.extend((0..text.len()).map(|at| {
            let other = if &text[at..=at] == "1" { "2" } else { "1" };
            format!("{}{other}{}", &text[..at], &text[at + 1..])
        }));
        broken.extend([format!("{text}.0"), format!("{text} "), format!(" {text}")]);
        // Well formed, but no place in its window or among its lists.
        for odd in [
            Cursor { after: (3, 41), ..cursor() },
            Cursor { after: (13, 41), ..cursor() },
            Cursor { ended_files: false, ..cursor() },
        ] {
            broken.push(odd.render());
        }
        for text in broken {
            let refused = Cursor::parse(&text).map_err(|problem| problem.status());
            assert_eq!(refused, Err(400), "{text}");
        }
    }
}
