//! The folder of a server, and the user that the server runs as: Postgres refuses to run as root.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use tempfile::TempDir;

use crate::binaries::open_to_others;

/// The longest folder name that leaves room for `/.s.PGSQL.65535` in a socket address,
/// which holds 107 bytes.
const LONGEST_FOLDER: usize = 107 - "/.s.PGSQL.65535".len() - 1;

/// The name of the data folder in the server's.
pub const DATA: &str = "data";

/// The user that the server runs as when we are root.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    pub uid: u32,
    pub gid: u32,
}

pub fn as_account(command: &mut Command, account: Option<Account>) {
    if let Some(account) = account {
        command.uid(account.uid).gid(account.gid);
    }
}

/// Makes a folder, and an empty cluster in it. Blocking.
pub fn make_cluster(bin_dir: &Path) -> Result<(TempDir, Option<Account>)> {
    let (folder, account) = make_folder()?;
    let mut command = Command::new(bin_dir.join("initdb"));
    command
        .arg("-D")
        .arg(folder.path().join(DATA))
        .args(["-U", "postgres", "--auth=trust", "--encoding=UTF8"])
        .args(["--locale=C", "--no-sync", "--no-instructions"])
        .current_dir(folder.path())
        .stdin(Stdio::null());
    as_account(&mut command, account);
    let output =
        command.output().with_context(|| format!("cannot run initdb in {}", bin_dir.display()))?;
    if !output.status.success() {
        bail!("initdb failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok((folder, account))
}

/// `nobody` of this machine, else the number that it has nearly everywhere.
fn nobody() -> Account {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    users
        .lines()
        .filter_map(|line| {
            let mut parts = line.split(':');
            let name = parts.next()?;
            let uid = parts.nth(1)?.parse().ok()?;
            let gid = parts.next()?.parse().ok()?;
            (name == "nobody").then_some(Account { uid, gid })
        })
        .next()
        .unwrap_or(Account { uid: 65534, gid: 65534 })
}

/// A folder short enough for a socket, owned by the user that the server will run as.
pub fn make_folder() -> Result<(TempDir, Option<Account>)> {
    let usual = std::env::temp_dir();
    let mut reason = anyhow!("no temporary folder");
    for base in [usual.as_path(), Path::new("/tmp")] {
        // Whoever can reach the socket is trusted, so nobody else may.
        let made = tempfile::Builder::new()
            .prefix("tailrace-")
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(base);
        let folder = match made {
            Ok(folder) => folder,
            Err(refusal) => {
                reason = anyhow!(refusal).context(format!("cannot use {}", base.display()));
                continue;
            }
        };
        if folder.path().as_os_str().len() > LONGEST_FOLDER {
            reason = anyhow!("{} is too long for a socket", base.display());
            continue;
        }
        // A new file belongs to whoever we are; the standard library has no other way to ask.
        if fs::metadata(folder.path())?.uid() != 0 {
            return Ok((folder, None));
        }
        if !open_to_others(base) {
            reason = anyhow!("only root can enter {}", base.display());
            continue;
        }
        let account = nobody();
        chown(folder.path(), Some(account.uid), Some(account.gid))?;
        return Ok((folder, Some(account)));
    }
    Err(reason.context("no folder for a private Postgres server"))
}
