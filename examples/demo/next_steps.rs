//! What to try on a lake that is left running.

use std::env;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tailrace_kit::server::PrivateServer;

use super::lake::{CATALOG, NAMESPACE, UNGOVERNED};
use super::pages::Page;

/// The database of the demo.
pub const DATABASE: &str = "demo";

/// What every command that can be copied begins with.
const PROMPT: &str = "$ ";

/// How to connect and what to try.
pub fn page(server: &PrivateServer) -> anyhow::Result<Page> {
    let program = tailrace(&env::current_exe()?)?;
    let path = env::var_os("PATH").unwrap_or_default();
    let path: Vec<PathBuf> = env::split_paths(&path).collect();
    let folder = program.parent().filter(|folder| !path.iter().any(|part| part == folder));
    let folder = folder.map(|folder| folder.to_string_lossy().into_owned());
    // Not every build of the server comes with its client.
    let psql = [server.bin_dir().to_owned()].into_iter().chain(path).map(|part| part.join("psql"));
    let psql = psql.into_iter().find(|psql| psql.is_file());
    let psql = psql.map(|psql| psql.to_string_lossy().into_owned());
    let text = text(&server.url(DATABASE), psql.as_deref(), folder.as_deref());
    Ok(Page::new("The lake is left running: Ctrl-C here removes all of it", &text))
}

/// The program `tailrace` that was built with the example that runs: examples have a folder of
/// their own beside it.
fn tailrace(example: &Path) -> anyhow::Result<PathBuf> {
    let program = example.ancestors().nth(2).map(|folder| folder.join("tailrace"));
    program.filter(|program| program.is_file()).with_context(|| {
        format!(
            "no program `tailrace` beside {}: build it with cargo build --bin tailrace --example demo",
            example.display()
        )
    })
}

/// The text for a database, the psql if there is one, and the folder of our program where the
/// shell would not find it.
fn text(url: &str, psql: Option<&str>, folder: Option<&str>) -> String {
    let url = quoted(url);
    let table = format!("{NAMESPACE}.{UNGOVERNED}");
    // The second half of a command stands on a line of its own, for a terminal of 80 columns.
    let set =
        format!("tailrace policy set {CATALOG} {table} \\\n    --field 'day(timestamp)' --keep 5d");
    let mut text = String::new();
    let mut say = |about: &str, commands: &[&str]| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{about}");
        for command in commands {
            let _ = writeln!(text, "{PROMPT}{command}");
        }
    };
    match psql {
        Some(psql) => say("Look into the database:", &[&format!("{} {url}", quoted(psql))]),
        None => say(&format!("Look into the database with any client: {url}"), &[]),
    }
    let path = folder.map(|folder| format!("export PATH={}:\"$PATH\"", quoted(folder)));
    // DATABASE_URL is heeded too, but this one wins over whatever is set already.
    let url = format!("export TAILRACE__DATABASE__URL={url}");
    let exports: Vec<&str> = path.as_deref().into_iter().chain([url.as_str()]).collect();
    say("In another shell, once, for all that follows:", &exports);
    say("What a pass would drop now, and when the next partition expires:", &["tailrace plan"]);
    say("The policies:", &["tailrace policy list"]);
    say(
        "A policy that only observes, for the table that has none, and a pass:",
        &[&format!("{set} --mode observe"), "tailrace sweep"],
    );
    say(
        "The same policy enforced, its plan, and a pass that drops:",
        &[
            &format!("{set} --mode enforce --yes"),
            &format!("tailrace plan --table {table}"),
            "tailrace sweep --output json",
        ],
    );
    say("The daemon, a pass now and one every 10 minutes, until Ctrl-C:", &["tailrace run"]);
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
        let shown =
            text("postgres://u@localhost:5432/demo?host=%2Ftmp%2Fx", Some("psql"), Some("/a b"));
        let commands: Vec<&str> =
            shown.lines().filter_map(|line| line.strip_prefix(PROMPT)).collect();
        let url = "'postgres://u@localhost:5432/demo?host=%2Ftmp%2Fx'";
        assert_eq!(commands[0], format!("psql {url}"));
        assert_eq!(commands[1], "export PATH='/a b':\"$PATH\"");
        assert_eq!(commands[2], format!("export TAILRACE__DATABASE__URL={url}"));
        assert_eq!(commands[3], "tailrace plan");
        assert_eq!(commands.len(), 11);
        // The title with a blank line before these, and the line of a terminal's prompt.
        assert!(shown.lines().count() <= 21, "{shown}");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        let bare = text("u", None, None);
        assert!(bare.contains("with any client: u\n") && !bare.contains("PATH="), "{bare}");
    }
}
