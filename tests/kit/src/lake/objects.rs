//! Objects on disk. They hold placeholder bytes, padded with a hole to the size that the catalog
//! gives, so that a lake of large files takes little space.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Component, Path, PathBuf};

/// What an object begins with, if it is long enough.
const PLACEHOLDER: &[u8] = b"a placeholder for a file of the tailrace demo lake\n";

/// The folder that a catalog's `data_path` names, if it is one of this machine.
pub(crate) fn local_folder(data_path: &str) -> Option<PathBuf> {
    let path = Path::new(data_path);
    path.is_absolute().then(|| path.to_owned())
}

/// Whether a path lies in a folder, going by its text alone, and never leads out of it.
pub(crate) fn contains(folder: &Path, path: &Path) -> bool {
    path.starts_with(folder) && path.components().all(|part| part != Component::ParentDir)
}

/// Writes an object of `bytes` bytes. Blocking.
pub(crate) fn write_object(path: &Path, bytes: u64) -> io::Result<()> {
    let mut file = match File::create_new(path) {
        Err(refusal) if refusal.kind() == ErrorKind::NotFound => {
            fs::create_dir_all(path.parent().unwrap_or(path))?;
            File::create_new(path)?
        }
        other => other?,
    };
    let head = usize::try_from(bytes).unwrap_or(usize::MAX);
    file.write_all(&PLACEHOLDER[..PLACEHOLDER.len().min(head)])?;
    file.set_len(bytes)
}

/// Removes an object and says whether it was there. Blocking.
pub(crate) fn remove_object(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(refusal) if refusal.kind() == ErrorKind::NotFound => Ok(false),
        Err(refusal) => Err(refusal),
    }
}
