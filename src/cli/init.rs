//! `tailrace init`: sets up a first installation, from the database role to a configuration file.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use serde::Serialize;

use super::ask::{can_ask, confirmed};
use super::doctor::finding_text;
use super::text::{counted, spinner};
use super::{DONE, FAILED, Output, PROBLEM_FOUND, USAGE, Usage, database, new_file, out};
use crate::catalog::connect::Database;
use crate::catalog::errors::describe;
use crate::config::{Config, DatabaseUrl, KEYS, Key, Preset};
use crate::doctor::{Doctor, Level, Report, examine};
use crate::installation::first::{Before, SetUp, described, look, set_up};
use crate::sweep::Settings;
use crate::telemetry::{line, say};

/// What `--write` writes.
const CONFIG_FILE: &str = "configuration file";

#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// The URL to connect with as the role that owns hoglake's tables. As this owner, init creates what is missing
    /// of the role of database.url and the schema tailrace, and grants the rights. The owner's password may be in
    /// ~/.pgpass. Without this option init changes nothing in the database, and prints what the owner has to run.
    #[arg(long, value_name = "URL")]
    owner_url: Option<DatabaseUrl>,
    /// Write a configuration file with database.url, without its password.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// The state of the installation, as in the JSON output.
#[derive(Debug, Serialize)]
struct Answer {
    role: String,
    schema: String,
    /// What was done as the owner; null without `--owner-url`.
    set_up: Option<SetUp>,
    /// What the owner has to run; empty if it was run through `--owner-url`, if doctor finds no problem, or if the
    /// database could not be reached.
    to_run: Vec<String>,
    /// The report of doctor as the role; null where doctor failed.
    doctor: Option<Report>,
    /// Why doctor failed.
    problem: Option<String>,
    /// Whether it failed because the server refused the role.
    #[serde(skip)]
    was_refused: bool,
    /// The configuration file that was written.
    written: Option<PathBuf>,
}

pub async fn run(config: &Config, args: &InitArgs) -> anyhow::Result<u8> {
    // Checked first, because what follows changes the database.
    if let Some((file, error)) =
        args.write.as_ref().and_then(|file| Some((file, new_file::check(file).err()?)))
    {
        return Ok(new_file::refused(CONFIG_FILE, file, &error));
    }
    let ours = database(config)?;
    let role = ours.options.get_username().to_owned();
    // Postgres cuts off longer names, and keeps names that begin so for itself.
    if role.len() > 63 || role.starts_with("pg_") {
        let words = anyhow!(
            "database.url names the role {role}: name one of at most 63 bytes that does not begin with pg_"
        );
        return Err(Usage(words).into());
    }
    let mut answer = Answer {
        schema: ours.schema.clone(),
        role,
        set_up: None,
        to_run: Vec::new(),
        doctor: None,
        problem: None,
        was_refused: false,
        written: None,
    };
    if let Some(url) = &args.owner_url {
        match as_owner(config, args, url, &ours, &answer.role).await? {
            Ok(done) => answer.set_up = Some(done),
            Err(code) => return Ok(code),
        }
    }
    let bar = spinner("looking");
    let settings = Settings::from_config(config);
    let doctor = Doctor { database: &ours, settings: &settings, catalog: None };
    let report = examine(&doctor).await;
    bar.finish_and_clear();
    match report {
        Ok(report) => answer.doctor = Some(report),
        Err(error) => {
            answer.problem = Some(describe(&error));
            answer.was_refused = is_refused_role(&error);
        }
    }
    let is_ready = answer.doctor.as_ref().is_some_and(|report| !report.has_problem());
    // Of a server that cannot be reached nothing is known.
    let is_known = answer.doctor.is_some() || answer.was_refused;
    if !is_ready && is_known && args.owner_url.is_none() {
        // It is not known here whether a role that was refused exists.
        let has_role = answer.doctor.is_some();
        let before = Before { postgres: String::new(), has_role, can_log_in: has_role };
        answer.to_run = described(&before, &ours.schema, &answer.role);
    }
    let written = args.write.as_ref().map(|file| (file, write(config, file)));
    if let Some((file, Ok(()))) = &written {
        answer.written = Some(file.to_path_buf());
    }
    // Shown in any case: the database was changed.
    out::show(args.output, &answer, text)?;
    Ok(match written {
        Some((file, Err(error))) => new_file::refused(CONFIG_FILE, file, &error),
        _ if is_ready => DONE,
        _ => PROBLEM_FOUND,
    })
}

/// Asks for confirmation, and sets up what is missing. `Err` has the exit code if nothing was changed.
async fn as_owner(
    config: &Config,
    args: &InitArgs,
    url: &DatabaseUrl,
    ours: &Database,
    role: &str,
) -> anyhow::Result<Result<SetUp, u8>> {
    let mut owner = config.clone();
    owner.database.url = Some(url.clone());
    owner.database.password_file = None;
    let owner = database(&owner).map_err(Usage)?;
    let name = owner.options.get_username();
    let (place, other) = (owner.place(), ours.place());
    if place != other {
        let words = anyhow!(
            "--owner-url leads to {place}, and database.url to {other}: name the same host, port and database"
        );
        return Err(Usage(words).into());
    }
    let before = look(&owner, role).await.context("as the owner")?;
    if !args.yes {
        say(&format!(
            "Postgres {}, {place}, hoglake catalog in schema {}. To be run as role {name}:\n\n",
            before.postgres, ours.schema
        ));
        for statement in described(&before, &ours.schema, role) {
            say(&format!("  {}\n", line(&statement)));
        }
        say("\n");
        if !can_ask() {
            say("tailrace: nothing was changed; there is no terminal to ask on: say --yes\n");
            return Ok(Err(USAGE));
        }
        if !confirmed("Run them?")? {
            say("tailrace: nothing was changed\n");
            return Ok(Err(FAILED));
        }
    }
    let bar = spinner("setting up");
    let done = set_up(&owner, &before, role).await;
    bar.finish_and_clear();
    done.map(Ok)
}

/// Writes a new configuration file with the settings of the database.
fn write(config: &Config, file: &Path) -> io::Result<()> {
    let mut new = OpenOptions::new().write(true).create_new(true).open(file)?;
    new.write_all(config_file(config).as_bytes())
}

/// Whether the server refused to let the role in (SQLSTATE class 28): there is no such role, it may not log in, or
/// its password is missing or wrong.
fn is_refused_role(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<sqlx::Error>());
    causes.any(|cause| {
        let code = cause.as_database_error().and_then(|answer| answer.code());
        code.is_some_and(|code| code.starts_with("28"))
    })
}

/// The text of a configuration file: the keys of the section `database` that differ from the defaults.
fn config_file(config: &Config) -> String {
    let mut text = String::from(
        "# Settings that differ from the defaults; `tailrace config` prints all that are in force.\n\
         # The password is not here: docs/configuration.md says where it is looked for.\n\n\
         [database]\n",
    );
    let database = &config.database;
    let url = database.url.as_ref().map(DatabaseUrl::without_secrets);
    let file = database.password_file.as_ref().map(|file| file.display().to_string());
    let schema = Some(database.schema.as_str().to_owned());
    for (key, value) in [("url", url), ("password_file", file), ("schema", schema)] {
        let is_default = |key: &Key| {
            matches!(key.preset, Preset::Default(preset)
            if value.as_ref().is_some_and(|value| preset == toml_text(value)))
        };
        let listed = KEYS.iter().find(|listed| listed.path() == format!("database.{key}"));
        if let (Some(value), false) = (&value, listed.is_some_and(is_default)) {
            text.push_str(&format!("{key} = {}\n", toml_text(value)));
        }
    }
    text
}

fn toml_text(value: &str) -> String {
    toml::Value::String(value.to_owned()).to_string()
}

/// The state of the installation, for people.
fn text(answer: &Answer) -> String {
    let Answer { role, set_up, to_run, doctor, problem, written, .. } = answer;
    let mut text = String::new();
    if let Some(SetUp { role_created, migrated, grants, left_out }) = set_up {
        text.push_str(&format!(
            "role      {}\n",
            match role_created {
                true => format!("{role} was created; it has no password yet"),
                false => format!("{role} was there"),
            }
        ));
        text.push_str(&format!(
            "schema    tailrace is at version {}, {} applied\n",
            migrated.version,
            counted(migrated.applied as i64, "migration")
        ));
        text.push_str(&format!("rights    {} run\n", counted(*grants as i64, "grant")));
        for statement in left_out {
            text.push_str(&format!(
                "          no such table on this server: {}\n",
                line(statement)
            ));
        }
    }
    if !to_run.is_empty() {
        text.push_str(
            "The owner of hoglake's tables has to run what is still missing of this; with --owner-url\n\
             it is run from here:\n\n",
        );
        to_run.iter().for_each(|statement| text.push_str(&format!("  {}\n", line(statement))));
        text.push('\n');
    }
    if let Some(report) = doctor {
        let found = |level| report.findings.iter().filter(move |found| found.level == level);
        text.push_str(&format!(
            "doctor    {}, {}; `tailrace doctor` shows all\n",
            counted(found(Level::Problem).count() as i64, "problem"),
            counted(found(Level::Warning).count() as i64, "warning")
        ));
        found(Level::Problem)
            .for_each(|finding| text.push_str(&finding_text(finding, out::width())));
    }
    if let Some(problem) = problem {
        text.push_str(&format!("doctor    could not look: {}\n", line(problem)));
    }
    if let Some(file) = written {
        text.push_str(&format!("settings  written to {}\n", line(&file.display().to_string())));
    }
    text.push_str(&next(answer));
    text
}

/// What to do next, for people.
fn next(answer: &Answer) -> String {
    let config = match &answer.written {
        Some(file) => format!(" --config {}", file.display()),
        None => String::new(),
    };
    match (&answer.problem, &answer.doctor) {
        (Some(_), _) | (_, None) if !answer.was_refused => {
            format!("\nNext: repair that, then run `tailrace{config} doctor`\n")
        }
        (Some(_), _) | (_, None) => format!(
            "\nNext: let tailrace connect as {}: give the role a password (psql: \\password {0}), write\n\
             it into ~/.pgpass or the file of database.password_file, then run `tailrace{config} doctor`\n",
            line(&answer.role)
        ),
        (None, Some(report)) if report.has_problem() => {
            format!("\nNext: mend the problems, then run `tailrace{config} doctor`\n")
        }
        _ => format!(
            "\nNext: `tailrace{config} plan`, then a policy that only observes:\n  \
             tailrace{config} policy set CATALOG NS.TABLE --field 'day(timestamp)' --keep 30d \
             --mode observe\n"
        ),
    }
}
