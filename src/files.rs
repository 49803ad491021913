//! Opens files that other users may have made or can change. A file is opened once, and the open
//! file is checked, so that nobody can replace it between the check and the read.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Bits of a mode: the group, or others, may write.
pub const OTHERS_WRITE: u32 = 0o022;
/// Bit of a folder's mode: who may write in it may replace its own files alone.
const STICKY: u32 = 0o1000;

/// The user that this process acts as.
pub fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether a link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// A link is followed to what it leads to.
    Followed,
    /// A link is an error.
    Refused,
}

/// Opens a plain file to read it. Never waits, as it would for the writer of a named pipe.
///
/// # Errors
/// It is not there, not ours to read, or not a plain file.
pub fn open_plain(path: &Path, links: Links) -> io::Result<(File, Metadata)> {
    let links = match links {
        Links::Followed => OFlags::empty(),
        Links::Refused => OFlags::NOFOLLOW,
    };
    // The bits are those of the C interface, where flags are of this type.
    let flags = (links | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    match found.is_file() {
        true => Ok((file, found)),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file")),
    }
}

/// The owner of a file or folder, where that is neither this process's user, `own`, nor root.
pub fn stranger(owner: u32, own: u32) -> Option<String> {
    (owner != own && owner != 0)
        .then(|| format!("belongs to user {owner}, and this process is user {own}"))
}

/// Who other than this process's user and root may write a file, or put another one in its place, and
/// what to do about it.
///
/// Looked at are the file, the folder that it is in, and the folder of the link that leads to it; not
/// what these folders are in.
///
/// # Errors
/// A folder cannot be looked at.
pub fn who_else_writes(path: &Path, file: &Metadata) -> io::Result<Option<String>> {
    let own = own_uid();
    if let Some(whose) = stranger(file.uid(), own) {
        return Ok(Some(format!("it {whose}: chown it to that one, or to root")));
    }
    if let Some(who) = writers(file.mode()) {
        return Ok(Some(format!("{who} may write it (mode {}): chmod go-w it", octal(file))));
    }
    let real = std::fs::canonicalize(path)?;
    for folder in [folder_of(&real), folder_of(path)] {
        let found = std::fs::metadata(&folder)?;
        let name = folder.display();
        if let Some(whose) = stranger(found.uid(), own) {
            return Ok(Some(format!(
                "its folder {name} {whose}: chown that to that one or to root, or move the file"
            )));
        }
        // In a sticky one a file can be replaced by its owner and the folder's alone.
        if let Some(who) = writers(found.mode()).filter(|_| found.mode() & STICKY == 0) {
            return Ok(Some(format!(
                "{who} may write in its folder {name} (mode {}), and so put another file in its place: \
                 chmod go-w that folder, or move the file",
                octal(&found)
            )));
        }
    }
    Ok(None)
}

/// Who but the owner may write, by a mode.
fn writers(mode: u32) -> Option<&'static str> {
    match mode & OTHERS_WRITE {
        0 => None,
        0o020 => Some("its group"),
        0o002 => Some("everybody"),
        _ => Some("its group and everybody else"),
    }
}

fn octal(found: &Metadata) -> String {
    format!("{:04o}", found.mode() & 0o7777)
}

/// The folder that a path is in.
pub fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("ours");
    }

    fn told(path: &Path) -> Option<String> {
        let (_, found) = open_plain(path, Links::Followed).expect("a plain file");
        who_else_writes(path, &found).expect("folders can be looked at")
    }

    #[test]
    fn whoever_may_write_a_file_or_its_folder_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("tokens");
        std::fs::write(&file, "").expect("written");
        let name = folder.path().display();
        for (of_file, of_folder, expected) in [
            (0o600, 0o700, None),
            // As a secret of Kubernetes is mounted, and one of a group.
            (0o644, 0o1777, None),
            (0o440, 0o3777, None),
            (0o640, 0o755, None),
            (0o664, 0o700, Some("its group may write it (mode 0664): chmod go-w it".to_owned())),
            (0o646, 0o700, Some("everybody may write it (mode 0646): chmod go-w it".to_owned())),
            (
                0o666,
                0o700,
                Some(
                    "its group and everybody else may write it (mode 0666): chmod go-w it"
                        .to_owned(),
                ),
            ),
            (
                0o600,
                0o770,
                Some(format!(
                    "its group may write in its folder {name} (mode 0770), and so put another file in \
                     its place: chmod go-w that folder, or move the file"
                )),
            ),
            (
                0o600,
                0o707,
                Some(format!(
                    "everybody may write in its folder {name} (mode 0707), and so put another file in \
                     its place: chmod go-w that folder, or move the file"
                )),
            ),
        ] {
            mode(&file, of_file);
            mode(folder.path(), of_folder);
            assert_eq!(told(&file), expected, "{of_file:o} in {of_folder:o}");
        }
    }

    /// Kubernetes mounts a secret as links, of which the last one changes.
    #[test]
    fn a_link_is_judged_by_where_it_is_and_where_it_leads() {
        let folder = tempfile::tempdir().expect("a folder");
        let (data, links) = (folder.path().join("data"), folder.path().join("links"));
        let (file, link) = (data.join("tokens"), links.join("tokens"));
        for made in [&data, &links] {
            std::fs::create_dir(made).expect("made");
            mode(made, 0o755);
        }
        std::fs::write(&file, "").expect("written");
        mode(&file, 0o644);
        symlink(&file, &link).expect("linked");
        assert_eq!(told(&link), None);
        for loose in [&data, &links] {
            mode(loose, 0o777);
            let why = told(&link).expect("refused");
            assert!(
                why.contains(&format!("in its folder {} (mode 0777)", loose.display())),
                "{why}"
            );
            mode(loose, 0o755);
        }
        mode(&file, 0o666);
        assert!(told(&link).is_some());
        assert!(open_plain(&link, Links::Refused).is_err());
        assert!(open_plain(&data, Links::Followed).is_err(), "a folder is no plain file");
    }

    #[test]
    fn root_and_this_user_are_no_strangers() {
        assert_eq!((stranger(0, 1000), stranger(1000, 1000), stranger(0, 0)), (None, None, None));
        let other = "belongs to user 1001, and this process is user 1000";
        assert_eq!(stranger(1001, 1000).as_deref(), Some(other));
        assert!(stranger(1000, 0).is_some(), "root goes by nobody's word but its own");
    }

    /// A pipe that nobody writes to would be waited for, for ever.
    #[test]
    fn a_pipe_is_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("there is a mkfifo").success());
        let refused = open_plain(&pipe, Links::Followed).expect_err("a pipe");
        assert_eq!(refused.to_string(), "it is not a plain file");
    }
}
