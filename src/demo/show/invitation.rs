//! What to try on a lake that is left running.

use std::env;
use std::fmt::Write;
use std::path::Path;

use super::scene::{CATALOG, NAMESPACE, UNGOVERNED};
use super::screen;
use crate::demo::server::PrivateServer;

/// The database of the demo.
pub const DATABASE: &str = "demo";

/// What every command that can be copied begins with.
const PROMPT: &str = "   $ ";

/// Shows how to connect and what to try.
pub fn show(server: &PrivateServer) -> anyhow::Result<()> {
    let program = env::current_exe()?;
    let folder = program.parent().filter(|folder| !on_path(folder));
    let beside = server.bin_dir().join("psql");
    let psql = if beside.is_file() { beside.to_string_lossy().into_owned() } else { "psql".into() };
    let folder = folder.map(|folder| folder.to_string_lossy().into_owned());
    screen::text(&text(&server.url(DATABASE), &psql, folder.as_deref()))?;
    Ok(())
}

fn on_path(folder: &Path) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|part| part == folder))
}

/// The text for a database, a psql, and the folder of our program where the shell would not
/// find it.
fn text(url: &str, psql: &str, folder: Option<&str>) -> String {
    let url = quoted(url);
    let table = format!("{NAMESPACE}.{UNGOVERNED}");
    let set = format!("tailrace policy set {CATALOG} {table} --field 'day(timestamp)' --keep 5d");
    let mut text =
        String::from("\nIt is left running: Ctrl-C here ends it, and removes all of it.\n");
    let mut say = |about: &str, commands: &[&str]| {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n   {about}\n");
        for command in commands {
            let _ = writeln!(text, "{PROMPT}{command}");
        }
    };
    say("Look into the database:", &[&format!("{} {url}", quoted(psql))]);
    let path = folder.map(|folder| format!("export PATH={}:\"$PATH\"", quoted(folder)));
    // DATABASE_URL is heeded too, but this one wins over whatever is set already.
    let url = format!("export TAILRACE__DATABASE__URL={url}");
    let exports: Vec<&str> = path.as_deref().into_iter().chain([url.as_str()]).collect();
    say("For the rest, in another shell, once:", &exports);
    say("What would go now, and when the next partition does:", &["tailrace plan"]);
    say("The policies:", &["tailrace policy list"]);
    say(
        "A policy that only observes, for the table that has none, and a pass:",
        &[&format!("{set} --mode observe"), "tailrace sweep"],
    );
    say(
        "The same in earnest; ask for the plan first:",
        &[&set, &format!("tailrace plan --table {table}"), "tailrace sweep --output json"],
    );
    say("The daemon, a pass now and one every 10 minutes, until Ctrl-C:", &["tailrace run"]);
    text.push('\n');
    text
}

/// As a shell takes it literally.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:".contains(c);
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_quoted_where_a_shell_would_read_more_into_them() {
        let shown = text("postgres://u@localhost:5432/demo?host=%2Ftmp%2Fx", "psql", Some("/a b"));
        let commands: Vec<&str> =
            shown.lines().filter_map(|line| line.strip_prefix(PROMPT)).collect();
        let url = "'postgres://u@localhost:5432/demo?host=%2Ftmp%2Fx'";
        assert_eq!(commands[0], format!("psql {url}"));
        assert_eq!(commands[1], "export PATH='/a b':\"$PATH\"");
        assert_eq!(commands[2], format!("export TAILRACE__DATABASE__URL={url}"));
        assert_eq!(commands[3], "tailrace plan");
        assert_eq!(commands.len(), 11);
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert!(!text("u", "psql", None).contains("PATH="));
    }
}
