//! The file of tokens, which says who may use the HTTP interface.
//!
//! Each line has one token: its name, its role, and the SHA-256 of its text in hex, separated by
//! blanks. Empty lines and lines that begin with `#` are ignored. The text of a token is stored
//! nowhere. Nobody but this process's user and root may be able to write the file.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use sha2::{Digest, Sha256};
use subtle::{ConditionallySelectable, ConstantTimeEq};

use super::failure::Failure;
use crate::events;
use crate::files::{Links, open_plain, who_else_writes};

/// The longest token. A longer one is not compared.
const LONGEST_TOKEN: usize = 512;

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// May read, and make dry runs.
    Reader,
    /// May do everything.
    Operator,
}

/// The caller of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The token's name; `http` where no tokens are configured.
    pub name: Arc<str>,
    pub role: Role,
}

impl Caller {
    /// The caller where no tokens are configured.
    pub fn anybody() -> Self {
        Caller { name: "http".into(), role: Role::Operator }
    }

    /// Refuses a caller who may only read.
    ///
    /// # Errors
    /// [`Failure::Forbidden`].
    pub fn must_be_operator(&self) -> Result<(), Failure> {
        match self.role {
            Role::Operator => Ok(()),
            Role::Reader => Err(Failure::Forbidden("the token is a reader's: it may only look")),
        }
    }
}

struct Entry {
    caller: Caller,
    digest: [u8; 32],
}

/// The tokens of a file, as it was when it was last read.
pub struct Tokens {
    file: PathBuf,
    entries: RwLock<Arc<Vec<Entry>>>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Tokens {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, others may write it, it has no token, or a line that is wrong; in words that
    /// repeat no digest.
    pub fn read(file: &Path) -> Result<Self, String> {
        let entries = RwLock::new(Arc::new(entries_of(file)?));
        Ok(Tokens { file: file.to_owned(), entries })
    }

    /// Reads the file again. If the file is wrong, the tokens stay as they are, and this is logged.
    pub fn reload(&self) {
        let file = self.file.display();
        match entries_of(&self.file) {
            Ok(entries) => {
                let tokens = entries.len();
                *self.entries.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(entries);
                tracing::info!(
                    event = events::TOKENS_RELOADED,
                    file = %file,
                    tokens,
                    "The tokens were read anew"
                );
            }
            Err(error) => tracing::error!(
                event = events::TOKENS_REFUSED,
                file = %file,
                error,
                "The tokens stay as they were"
            ),
        }
    }

    /// The caller with this token. The search takes the same time for every token, known or
    /// unknown.
    pub fn caller(&self, token: &[u8]) -> Option<Caller> {
        if token.is_empty() || token.len() > LONGEST_TOKEN {
            return None;
        }
        let digest: [u8; 32] = Sha256::digest(token).into();
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut found = u32::MAX;
        for (entry, at) in entries.iter().zip(0_u32..) {
            found.conditional_assign(&at, entry.digest.ct_eq(&digest));
        }
        entries.get(usize::try_from(found).ok()?).map(|entry| entry.caller.clone())
    }
}

fn entries_of(file: &Path) -> Result<Vec<Entry>, String> {
    let shown = file.display();
    let unreadable = |error: io::Error| format!("http.tokens_file {shown} cannot be read: {error}");
    let (mut opened, found) = open_plain(file, Links::Followed).map_err(unreadable)?;
    if let Some(why) = who_else_writes(file, &found).map_err(unreadable)? {
        return Err(format!("http.tokens_file {shown} says who may drop data, and {why}"));
    }
    let mut text = String::new();
    opened.read_to_string(&mut text).map_err(unreadable)?;
    let entries = parse(&text).map_err(|error| format!("http.tokens_file {shown}, {error}"))?;
    if entries.is_empty() {
        return Err(format!("http.tokens_file {shown} has no token in it"));
    }
    Ok(entries)
}

fn parse(text: &str) -> Result<Vec<Entry>, String> {
    let mut entries: Vec<Entry> = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let refuse = |why: &str| Err(format!("line {number}: {why}"));
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first().is_none_or(|first| first.starts_with('#')) {
            continue;
        }
        let [name, role, digits] = words.as_slice() else {
            return refuse("not a name, a role and a SHA-256 in hex");
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "._@-".contains(c);
        if name.len() > 64 || !name.chars().all(plain) {
            return refuse("a name is up to 64 letters, digits, ., _, @ and -");
        }
        let role = match *role {
            "reader" => Role::Reader,
            "operator" => Role::Operator,
            _ => return refuse("a role is reader or operator"),
        };
        let mut digest = [0; 32];
        if hex::decode_to_slice(digits, &mut digest).is_err() {
            return refuse("a SHA-256 has 64 digits of hex");
        }
        if entries.iter().any(|known| *known.caller.name == **name) {
            return refuse("its name is there twice");
        }
        if entries.iter().any(|known| known.digest == digest) {
            return refuse("its token is there twice");
        }
        entries.push(Entry { caller: Caller { name: (*name).into(), role }, digest });
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf %s secret | sha256sum`
    const SECRET: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

    fn tokens(text: &str) -> Tokens {
        let entries = RwLock::new(Arc::new(parse(text).expect("valid")));
        Tokens { file: PathBuf::new(), entries }
    }

    #[test]
    fn a_token_is_known_by_its_digest() {
        let other = "0".repeat(64);
        let known = tokens(&format!(
            "# who may\n\n etl.nightly\toperator {}\nzero reader {other}\n",
            SECRET.to_uppercase()
        ));
        let caller = known.caller(b"secret").expect("known");
        assert_eq!((&*caller.name, caller.role), ("etl.nightly", Role::Operator));
        for wrong in [&b"Secret"[..], b"secret ", b"", b"secre", &[b'x'; 600], SECRET.as_bytes()] {
            assert_eq!(known.caller(wrong), None);
        }
    }

    #[test]
    fn a_wrong_line_is_named_without_its_digest() {
        let zeros = "0".repeat(64);
        for (text, expected) in [
            ("a reader", "line 1: not a name, a role and a SHA-256 in hex".to_owned()),
            (
                &format!("a reader {SECRET} x"),
                "line 1: not a name, a role and a SHA-256 in hex".into(),
            ),
            (&format!("\na writer {SECRET}"), "line 2: a role is reader or operator".into()),
            (
                &format!("a reader {}", &SECRET[1..]),
                "line 1: a SHA-256 has 64 digits of hex".into(),
            ),
            (
                &format!("a reader {}é", &SECRET[2..]),
                "line 1: a SHA-256 has 64 digits of hex".into(),
            ),
            (
                &format!("a/b reader {SECRET}"),
                "line 1: a name is up to 64 letters, digits, ., _, @ and -".into(),
            ),
            (
                &format!("a reader {SECRET}\na reader {zeros}"),
                "line 2: its name is there twice".into(),
            ),
            (
                &format!("a reader {SECRET}\nb operator {SECRET}"),
                "line 2: its token is there twice".into(),
            ),
        ] {
            assert_eq!(parse(text).err(), Some(expected), "{text}");
        }
    }
}
