//! Finds the Postgres server programs.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// The environment variable that names the folder of the server programs.
pub const ENV_BIN: &str = "TAILRACE_PG_BIN";

/// The folder inside the project that `scripts/ensure-postgres.sh` fills.
const LOCAL: &str = ".postgres";

/// Where Debian's packages put one folder per major version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// Where Homebrew puts one folder per major version, on arm64 and on x86_64.
const HOMEBREW: [&str; 2] = ["/opt/homebrew/opt", "/usr/local/opt"];

/// The folder that holds `initdb` and `postgres`, the first of: `TAILRACE_PG_BIN`,
/// `.postgres/bin` of the project or of a folder above the working directory, the newest
/// `/usr/lib/postgresql/*/bin`, the newest `postgresql@*/bin` of Homebrew, and `PATH`.
///
/// A folder that only its owner can enter is passed over when we run as root, because
/// the server then runs as another user.
///
/// # Errors
/// If `TAILRACE_PG_BIN` names a folder without the programs, or if none is found; the
/// text says what to do.
pub fn find_binaries() -> Result<PathBuf> {
    if let Some(named) = env::var_os(ENV_BIN).filter(|value| !value.is_empty()) {
        let named = PathBuf::from(named);
        if !holds_server(&named) {
            bail!(
                "{ENV_BIN} is {}, but there is no `initdb` and `postgres` in it",
                named.display()
            );
        }
        return Ok(named);
    }
    match candidates().into_iter().find(|folder| usable(folder)) {
        Some(folder) => Ok(folder),
        None => bail!(
            "no Postgres server programs found: run scripts/ensure-postgres.sh, install the \
             package `postgresql` (15 or newer), or set {ENV_BIN} to the folder that holds \
             `initdb` and `postgres`"
        ),
    }
}

fn candidates() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let starts = [env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from), env::current_dir().ok()];
    for start in starts.into_iter().flatten() {
        found.extend(start.ancestors().map(|above| above.join(LOCAL).join("bin")));
    }
    found.extend(debian_folders(Path::new(DEBIAN)));
    for folder in HOMEBREW.map(Path::new) {
        let majors = (15..=18).rev();
        found.extend(majors.map(|major| folder.join(format!("postgresql@{major}")).join("bin")));
    }
    if let Some(path) = env::var_os("PATH") {
        found.extend(env::split_paths(&path));
    }
    found
}

/// The `bin` folders of all installed majors, the newest first.
fn debian_folders(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root) else {
        return Vec::new();
    };
    let mut majors: Vec<(u32, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let major = entry.file_name().to_str()?.parse().ok()?;
            Some((major, entry.path().join("bin")))
        })
        .collect();
    majors.sort_by_key(|(major, _)| std::cmp::Reverse(*major));
    majors.into_iter().map(|(_, folder)| folder).collect()
}

fn holds_server(folder: &Path) -> bool {
    ["initdb", "postgres"].iter().all(|program| folder.join(program).is_file())
}

fn usable(folder: &Path) -> bool {
    holds_server(folder) && open_to_others(folder)
}

/// Whether a user who owns none of it can enter this folder.
pub(super) fn open_to_others(folder: &Path) -> bool {
    let Ok(real) = folder.canonicalize() else {
        return false;
    };
    real.ancestors()
        .all(|part| fs::metadata(part).is_ok_and(|about| about.permissions().mode() & 0o001 != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_major_comes_first_and_others_are_ignored() -> Result<()> {
        let root = tempfile::tempdir()?;
        for name in ["9", "15", "18", "common"] {
            fs::create_dir(root.path().join(name))?;
        }
        let expected: Vec<PathBuf> =
            ["18", "15", "9"].iter().map(|major| root.path().join(major).join("bin")).collect();
        assert_eq!(debian_folders(root.path()), expected);
        Ok(())
    }

    #[test]
    fn a_folder_of_its_owner_alone_is_not_open() -> Result<()> {
        let root = tempfile::tempdir()?;
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o700))?;
        assert!(!open_to_others(root.path()));
        assert!(open_to_others(Path::new("/usr/lib")));
        Ok(())
    }
}
