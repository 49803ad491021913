//! Generates `docs/cli.md` from the definition of the command line: every command with its
//! arguments.

use std::path::Path;

use clap::{Arg, Command, CommandFactory};

use super::Cli;

/// The text of the page before the list of commands.
const HEAD: &str = "# Commands\n\n\
    A test writes this page from the definition of the command line (`TAILRACE_BLESS=1 cargo test --lib docs_cli`):\n\
    it has the texts of `tailrace COMMAND --help`. Results go to stdout, the log to stderr.\n\n\
    | exit code | meaning |\n|---|---|\n\
    | 0 | done |\n\
    | 1 | failed |\n\
    | 2 | usage, configuration, or a hoglake server that is [refused](versions.md) |\n\
    | 3 | some tables failed (`oversize`, `poisoned`, `lock_timeout`, `clock_behind`, `clock_skew`, `unhealthy`, \
    `failed`), `sweep` did nothing because other passes run on its catalogs, `doctor` found a problem, or \
    `verify` found something or could not check everything |\n\n\
    ## JSON\n\n\
    With `--output json` a command prints one line on stdout: one object. In it, whatever can occur several times \
    is a list under its own name.\nKeys may be added in any version ([compatibility.md](compatibility.md)). An error is \
    text on stderr, with the exit code.\n\n\
    | command | lists and keys at the top |\n|---|---|\n\
    | `plan` | `as_of`, `tables` |\n\
    | `sweep` | `as_of`, `tables`, `failed_catalogs`, `skipped_catalogs` |\n\
    | `policy get`, `policy list` | `policies` |\n\
    | `policy history` | `catalog`, `namespace`, `table`, `changes`, `next_before` |\n\
    | `policy set` | `policies`, `before`, `expired`, `problem` |\n\
    | `policy unset` | `catalog`, `namespace`, `table`, `unset`, `forgotten`, `takes_over` |\n\
    | `pause`, `resume` | `pauses`; of `resume` also `still`, the pauses that still cover it |\n\
    | `hold list` | `holds`, each with `keeps` |\n\
    | `hold add` | the hold, `keeps`, `kept`, `dropped_before` |\n\
    | `hold release` | `released` |\n\
    | `explain` | the partition, `spec`, `readings`, `live`, `rule`, `outlook`, `blocked_by`, `endings`, `drops` |\n\
    | `spec list` | `catalog`, `namespace`, `table`, `table_uuid`, `specs` |\n\
    | `spec trust` | `catalog`, `namespace`, `table`, `spec_id`, `recorded`, `trusted` |\n\
    | `clock accept` | `catalog`, `accepted`, and the clocks |\n\
    | `drop` | `catalog`, `namespace`, `table`, `idempotency_key`, the answer of [HTTP](http.md) |\n\
    | `trace` | `catalogs`, each with `drops` and `stuck` |\n\
    | `doctor` | `as_of`, `findings` |\n\
    | `debt` | `as_of`, `lead_seconds`, `catalogs` |\n\
    | `verify` | `status`, `catalogs` |\n\
    | `init` | `role`, `schema`, `set_up`, `to_run`, `doctor`, `problem`, `written` |\n\
    | `migrate` | `applied`, `version` |\n\
    | `health` | `pid`, `written_at`, `state`, `last_pass_at`, `last_pass_ok` |\n\
    | `config` | `read`, `settings` |\n\n";

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

/// A text for a cell of a Markdown table.
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
