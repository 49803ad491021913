//! libpq's password file (`PGPASSFILE`, else `~/.pgpass`), read as libpq reads it.
//!
//! The driver reads such a file too, but differs from libpq:
//!
//! - where the file of `PGPASSFILE` has no matching line, it reads `~/.pgpass`;
//! - an escaped star is a wildcard;
//! - an unescaped colon does not end a password;
//! - where no database is given, it looks for an empty name, not for the name of the user;
//! - the folder of a socket matches any host;
//! - it logs a line that it does not understand, with the password in it.
//!
//! So tailrace always gives the driver a password, which may be empty ([`super::DatabaseUrl`]). Then
//! the driver reads no file.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::events;
use crate::files::{Links, open_plain};

/// Folders in which libpq looks for the server's socket by default; which of them depends on how libpq was
/// built. In the password file, a connection through such a folder has the host `localhost`.
const SOCKET_FOLDERS: [&str; 2] = ["/tmp", "/var/run/postgresql"];

/// The connection for which a password is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The host as it was given, or the folder of a socket.
    pub host: String,
    pub port: u16,
    pub database: String,
    pub user: String,
}

impl Wanted {
    /// The password in the first line that matches this connection, in the file of `PGPASSFILE` or in
    /// `~/.pgpass`. The reason why the file cannot be used is logged once.
    pub fn look(&self) -> Option<String> {
        let file = usual_file()?;
        match self.look_in(&file) {
            Ok(password) => password,
            Err(why) => {
                log_once(&file, &why);
                None
            }
        }
    }

    /// The password in the first line of this file that matches.
    ///
    /// # Errors
    /// The reason why the file is not used. A file that does not exist is no error.
    fn look_in(&self, file: &Path) -> Result<Option<String>, String> {
        let Some(password) = read(file)?.and_then(|text| self.look_among(&text)) else {
            return Ok(None);
        };
        String::from_utf8(password)
            .map(Some)
            .map_err(|_| "the password in it is not UTF-8".to_owned())
    }

    fn look_among(&self, text: &[u8]) -> Option<Vec<u8>> {
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        lines.filter(|line| !line.starts_with(b"#")).find_map(|line| {
            let ended =
                line.strip_suffix(b"\n").map(|line| line.strip_suffix(b"\r").unwrap_or(line));
            self.password_of(ended.unwrap_or(line))
        })
    }

    fn password_of(&self, line: &[u8]) -> Option<Vec<u8>> {
        let is_usual_socket = SOCKET_FOLDERS.contains(&self.host.as_str());
        let rest = behind(line, &self.host)
            .or_else(|| is_usual_socket.then(|| behind(line, "localhost")).flatten())?;
        let rest = behind(rest, &self.port.to_string())?;
        let rest = behind(rest, &self.database)?;
        Some(unescaped(behind(rest, &self.user)?))
    }
}

/// The file of `PGPASSFILE`, else `~/.pgpass`.
fn usual_file() -> Option<PathBuf> {
    let named = std::env::var_os("PGPASSFILE").filter(|name| !name.is_empty());
    let usual = || std::env::home_dir().map(|home| home.join(".pgpass"));
    named.map(PathBuf::from).or_else(usual)
}

/// What is in the file; `None` if there is none.
fn read(file: &Path) -> Result<Option<Vec<u8>>, String> {
    let (mut opened, found) = match open_plain(file, Links::Followed) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| error.to_string())?,
    };
    if found.mode() & 0o077 != 0 {
        return Err(format!(
            "its group or others have access to it (mode {:04o}): chmod 600 it",
            found.mode() & 0o7777
        ));
    }
    let mut text = Vec::new();
    opened.read_to_end(&mut text).map_err(|error| error.to_string())?;
    Ok(Some(text))
}

/// The password of each line of the file, whatever it is for, so that it can be masked. None where the file
/// cannot be used.
pub fn every_password() -> Vec<String> {
    let text = usual_file().and_then(|file| read(&file).ok().flatten()).unwrap_or_default();
    let lines = text.split(|byte| matches!(byte, b'\n' | b'\r'));
    let password = |line: &[u8]| {
        let mut rest = line;
        for _ in 0..4 {
            rest = behind_any(rest)?;
        }
        String::from_utf8(unescaped(rest)).ok()
    };
    lines.filter_map(password).collect()
}

/// The rest of the line after its first field and colon.
fn behind_any(line: &[u8]) -> Option<&[u8]> {
    let mut bytes = line.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b':' => return line.get(at + 1..),
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
    None
}

/// The rest of the line after its first field and colon, if this field is a single star or this text.
fn behind<'a>(line: &'a [u8], text: &str) -> Option<&'a [u8]> {
    if let Some(rest) = line.strip_prefix(b"*:") {
        return Some(rest);
    }
    let mut rest = line;
    for expected in text.bytes() {
        // Before any byte, not only before those that need it.
        let field = rest.strip_prefix(b"\\").unwrap_or(rest);
        rest = field.strip_prefix(&[expected])?;
    }
    rest.strip_prefix(b":")
}

/// The password, which ends at the next colon or at the end of the line. A `\` escapes the byte behind it.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut password = Vec::new();
    let mut bytes = field.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b':' => break,
            b'\\' => password.push(*bytes.next().unwrap_or(byte)),
            byte => password.push(*byte),
        }
    }
    password
}

/// Logs why the file is not used, unless the last session logged the same reason: each session reads the file.
fn log_once(file: &Path, why: &str) {
    static TOLD: Mutex<Option<String>> = Mutex::new(None);
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if told.as_deref() != Some(why) {
        tracing::warn!(
            event = events::PASSFILE_IGNORED,
            file = %file.display(),
            error = why,
            "The password file of libpq is not used"
        );
        *told = Some(why.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn wanted(host: &str) -> Wanted {
        Wanted { host: host.into(), port: 5432, database: "la:ke".into(), user: r"m\e".into() }
    }

    /// tailrace finds the same passwords as libpq 15.
    #[test]
    fn lines_are_read_as_libpq_reads_them() {
        let same = r"db.example:5432:la\:ke:m\\e:";
        for (text, expected) in [
            (format!("{same}pass"), Some("pass")),
            (format!("{same}pass\n"), Some("pass")),
            (format!("{same}pass \r\n"), Some("pass ")),
            (format!("{same}pass\r"), Some("pass\r")),
            (same.to_owned(), Some("")),
            (format!(r"{same}a\:b\\c\d"), Some(r"a:b\cd")),
            (format!(r"{same}a\"), Some(r"a\")),
            (format!("{same}a:b"), Some("a")),
            (format!("{same}päss"), Some("päss")),
            (format!("{same}#pass"), Some("#pass")),
            (format!("#{same}pass"), None),
            (format!(" #\n{same}pass"), Some("pass")),
            (format!("\n\r\nmalformed\n::\n\\\n{same}one\n{same}two\n"), Some("one")),
            (format!("*:*:*:*:one\n{same}two\n"), Some("one")),
            (r"*:5432:la\:ke:m\\e:pass".into(), Some("pass")),
            // Where a colon is asked for, it may stand without a backslash; any byte may have one.
            (r"\d\b.example:5432:la:ke:m\\e:pass".into(), Some("pass")),
            (r"\*:5432:la\:ke:m\\e:pass".into(), None),
            (r"db.*:5432:la\:ke:m\\e:pass".into(), None),
            (r"DB.example:5432:la\:ke:m\\e:pass".into(), None),
            (r"db.example:05432:la\:ke:m\\e:pass".into(), None),
            (r"db.example::la\:ke:m\\e:pass".into(), None),
            (r":5432:la\:ke:m\\e:pass".into(), None),
            (r"db.example:5432:la\:ke:m\e:pass".into(), None),
            (r"db.example:5432:la\:ke:m\\e".into(), None),
            (r"db.example:5432:la\:ke:".into(), None),
            ("".into(), None),
        ] {
            let found = wanted("db.example").look_among(text.as_bytes());
            let found = found.map(|password| String::from_utf8(password).expect("UTF-8"));
            assert_eq!(found.as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_usual_folder_of_sockets_is_localhost() {
        let line = br"localhost:*:*:*:pass";
        for (host, is) in [
            ("localhost", true),
            ("/tmp", true),
            ("/var/run/postgresql", true),
            ("/srv/sockets", false),
            ("127.0.0.1", false),
        ] {
            assert_eq!(wanted(host).look_among(line).is_some(), is, "{host}");
        }
        assert!(wanted("/srv/sockets").look_among(b"/srv/sockets:*:*:*:pass").is_some());
        assert!(wanted("::1").look_among(br"\:\:1:*:*:*:pass").is_some());
    }

    #[test]
    fn a_file_that_others_may_read_is_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("pgpass");
        let found = || wanted("db.example").look_in(&file);
        assert_eq!(found(), Ok(None), "there is none");
        std::fs::write(&file, b"*:*:*:*:pass\n").expect("written");
        for (mode, expected) in [
            (0o600, Ok(Some("pass"))),
            (0o400, Ok(Some("pass"))),
            (0o640, Err("its group or others have access to it (mode 0640): chmod 600 it")),
            (0o602, Err("its group or others have access to it (mode 0602): chmod 600 it")),
        ] {
            std::fs::set_permissions(&file, Permissions::from_mode(mode)).expect("ours");
            let expected = expected.map(|some| some.map(str::to_owned)).map_err(str::to_owned);
            assert_eq!(found(), expected, "{mode:o}");
        }
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("ours");
        std::fs::write(&file, b"*:*:*:*:\xff\n").expect("written");
        assert_eq!(found(), Err("the password in it is not UTF-8".to_owned()));
        assert_eq!(
            wanted("db.example").look_in(folder.path()),
            Err("it is not a plain file".into())
        );
    }
}
