//! Checks that a file that a command is to write can be written, before the command does anything else.

use std::io::{self, ErrorKind};
use std::path::Path;

use tempfile::NamedTempFile;

use super::{FAILED, USAGE};
use crate::telemetry::{line, say};

/// An error if a file cannot be made in its folder, or if anything has its name already, including a symbolic link
/// without a target. Leaves nothing behind.
pub fn check(file: &Path) -> io::Result<()> {
    NamedTempFile::new_in(folder(file)).and(vacant(file))
}

/// The folder of a file; the file need not exist.
pub fn folder(file: &Path) -> &Path {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn vacant(file: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(file) {
        Ok(_) => Err(ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Reports why a file (`what` it is, such as "bundle") is not written, and returns the exit code.
pub fn refused(what: &str, file: &Path, error: &io::Error) -> u8 {
    let (name, folder) = (file.display().to_string(), folder(file).display());
    let (why, code) = match error.kind() {
        ErrorKind::AlreadyExists => {
            ("it exists, and nothing is written over it: name a new file".to_owned(), USAGE)
        }
        ErrorKind::NotFound => (format!("there is no folder {folder}"), FAILED),
        ErrorKind::PermissionDenied => {
            (format!("this user may not write in the folder {folder}"), FAILED)
        }
        _ => (error.to_string(), FAILED),
    };
    say(&format!("tailrace: cannot write the {what} {}: {}\n", line(&name), line(&why)));
    code
}
