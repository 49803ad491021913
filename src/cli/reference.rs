//! `docs/cli.md`: every command with its arguments, rendered from the command line itself.

use std::path::Path;

use clap::{Arg, Command, CommandFactory};

use super::Cli;

/// What stands before the commands.
const HEAD: &str = "# Commands\n\n\
    Written from the command line itself by a test (`TAILRACE_BLESS=1 cargo test --lib docs_cli`), so it says what\n\
    `tailrace COMMAND --help` says. Results go to stdout, the log to stderr.\n\n\
    | exit code | meaning |\n|---|---|\n\
    | 0 | done |\n\
    | 1 | failed |\n\
    | 2 | usage, configuration, or a hoglake server that is [refused](versions.md) |\n\
    | 3 | some tables failed (`oversize`, `poisoned`, `lock_timeout`, `clock_behind`, `clock_skew`, `unhealthy`, \
    `failed`), `doctor` found a problem, or `verify` found something or could not look everywhere |\n\n";

/// The page.
fn page() -> String {
    let mut command = Cli::command();
    command.build();
    let leaves = leaves(&command, "");
    let mut text = String::from(HEAD);
    text.push_str("| command | what for |\n|---|---|\n");
    for (name, command) in &leaves {
        let anchor = name.replace(' ', "-");
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        text.push_str(&format!("| [`{name}`](#{anchor}) | {} |\n", in_cell(&about)));
    }
    let global = command.get_arguments().filter(|arg| arg.is_global_set());
    text.push_str("\nEvery command takes:\n\n");
    global.for_each(|arg| text.push_str(&argument(arg)));
    for (name, command) in &leaves {
        text.push_str(&section(name, command));
    }
    text
}

/// Each command that does something, with its whole name.
fn leaves<'a>(command: &'a Command, before: &str) -> Vec<(String, &'a Command)> {
    let name = format!("{before} {}", command.get_name()).trim_start().to_owned();
    let below = command.get_subcommands().filter(|below| below.get_name() != "help");
    let found: Vec<_> = below.flat_map(|below| leaves(below, &name)).collect();
    if found.is_empty() { vec![(name, command)] } else { found }
}

fn section(name: &str, command: &Command) -> String {
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let mut text = format!("\n## {name}\n\n{about}\n\n```text\n{usage}\n```\n");
    let mut own = command
        .get_arguments()
        .filter(|arg| !arg.is_global_set() && arg.get_id() != "help" && arg.get_id() != "version")
        .peekable();
    if own.peek().is_some() {
        text.push('\n');
        own.for_each(|arg| text.push_str(&argument(arg)));
    }
    text
}

/// An argument as an item of a list.
fn argument(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let shown = arg.to_string();
    let mut text = format!(
        "- `{}`: {}.",
        shown.replace('`', ""),
        help.replace("\n\n", " ").trim_end_matches('.')
    );
    let listed: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| arg.get_action().takes_values() && !value.is_hide_set())
        .map(|value| match value.get_help() {
            Some(help) => format!("`{}` ({help})", value.get_name()),
            None => format!("`{}`", value.get_name()),
        })
        .collect();
    if !listed.is_empty() {
        text.push_str(&format!(" One of {}.", listed.join(", ")));
    }
    let preset: Vec<_> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if arg.get_action().takes_values() && !preset.is_empty() {
        text.push_str(&format!(" Default: `{}`.", preset.join(" ")));
    }
    text.push('\n');
    text
}

/// A text in the cell of a table.
fn in_cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[test]
fn docs_cli_is_the_command_line() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/cli.md");
    if std::env::var_os("TAILRACE_BLESS").is_some() {
        std::fs::write(&path, page()).expect("docs/cli.md can be written");
    }
    let file = std::fs::read_to_string(path).expect("docs/cli.md is there");
    assert_eq!(file, page(), "TAILRACE_BLESS=1 cargo test --lib docs_cli writes it anew");
}
