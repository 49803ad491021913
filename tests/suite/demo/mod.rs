//! Tests of the demo (`examples/demo`) as a process.

mod keeping;
mod program;
#[cfg(target_os = "linux")]
mod terminal;
mod to_the_end;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;
use tempfile::TempDir;

use program::program;

/// What decides on colour beside the terminal.
const COLORS: [&str; 3] = ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"];

/// A folder for temporary files in which the demo, and nothing else, leaves what it leaves.
/// As with the usual one, everybody may make files in it and remove their own: as root the
/// server is another user.
fn temporary() -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777))?;
    Ok(folder)
}

/// The demo with its temporary files in a folder, untouched by this process's settings.
fn demo(temporary: &Path, args: &[&str]) -> Result<Command> {
    let mut command = Command::new(program()?);
    command.args(args).env("TMPDIR", temporary).stdin(Stdio::null());
    let settings = ["RUST_LOG", "DATABASE_URL", "TAILRACE_ENV", "TAILRACE__DATABASE__URL"];
    for variable in settings.iter().chain(&COLORS) {
        command.env_remove(variable);
    }
    Ok(command)
}

/// What of a demo is left: files in its folder, and processes with its name in their commands.
fn left_over(temporary: &Path) -> Result<Vec<String>> {
    let mut left = Vec::new();
    for entry in fs::read_dir(temporary)? {
        left.push(entry?.path().to_string_lossy().into_owned());
    }
    let name = temporary.to_string_lossy().into_owned();
    for process in fs::read_dir("/proc")? {
        // One that ends while we look has no command line any more.
        let command = fs::read(process?.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        if command.contains(&name) {
            left.push(command);
        }
    }
    Ok(left)
}
