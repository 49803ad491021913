//! `tailrace pause` and `tailrace resume`

use anyhow::bail;
use serde::Serialize;

use super::arguments::{TableName, author, message, session_user, table_name};
use super::{DONE, Output, USAGE, database, out};
use crate::catalog::connect::Access;
use crate::catalog::session::Session;
use crate::config::Config;
use crate::explicit::confirm;
use crate::guards::pause::{self, Pause, PauseError, PauseScope};
use crate::guards::resume::resume as end;
use crate::telemetry::{line, say};

#[derive(Debug, clap::Args)]
struct ScopeArgs {
    /// The catalog; every catalog if not given.
    #[arg(value_name = "CATALOG")]
    catalog: Option<String>,
    /// The table; all of the catalog's if not given.
    #[arg(value_name = "NS.TABLE", value_parser = table_name)]
    table: Option<TableName>,
}

impl ScopeArgs {
    fn scope(&self) -> PauseScope<'_> {
        match (&self.catalog, &self.table) {
            (Some(catalog), Some(TableName { namespace, table })) => {
                PauseScope::Table(catalog, namespace, table)
            }
            (Some(catalog), None) => PauseScope::Catalog(catalog),
            (None, _) => PauseScope::All,
        }
    }
}

#[derive(Debug, clap::Args)]
pub struct PauseArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    /// Why.
    #[arg(long, value_name = "TEXT", value_parser = message, required_unless_present = "list")]
    reason: Option<String>,
    /// Who pauses; the user of this session if not given.
    #[arg(long, value_name = "NAME", value_parser = author)]
    by: Option<String>,
    /// Only show the pauses that are in force.
    #[arg(long, conflicts_with_all = ["reason", "by", "catalog", "table"])]
    list: bool,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, clap::Args)]
pub struct ResumeArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    /// Who resumes; the user of this session if not given.
    #[arg(long, value_name = "NAME", value_parser = author)]
    by: Option<String>,
    /// Let drops go on at once, and not after guard.policy_grace: you know what `tailrace plan` shows.
    #[arg(long)]
    yes: bool,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// The pauses, as in the JSON output.
#[derive(Debug, Serialize)]
struct Answer {
    /// What was paused or resumed, or all pauses.
    pauses: Vec<Pause>,
    /// The pauses that still cover what was resumed; left out by `pause`.
    #[serde(skip_serializing_if = "Option::is_none")]
    still: Option<Vec<Pause>>,
}

pub async fn pause(config: &Config, args: &PauseArgs) -> anyhow::Result<u8> {
    let access = if args.list { Access::ReadOnly } else { Access::ReadWrite };
    let Some(reason) = args.reason.as_deref().filter(|_| !args.list) else {
        return database(config)?
            .in_session(access, async |session| list(session, args.output).await)
            .await;
    };
    if reason.trim().is_empty() {
        say("tailrace: the reason is empty: say why, for whoever reads it later\n");
        return Ok(USAGE);
    }
    let user = session_user();
    let by = args.by.as_ref().unwrap_or(&user);
    database(config)?
        .in_session(access, async |session| {
            let paused = pause::pause(session, args.scope.scope(), by, reason).await;
            let (pause, is_new) = paused.map_err(|error| match error {
                PauseError::NotFound(text) => anyhow::Error::msg(text),
                PauseError::Database(error) => error.into(),
            })?;
            let answer = Answer { pauses: vec![pause], still: None };
            out::show(args.output, &answer, |answer| {
                let before = if is_new { "" } else { "It is paused already, and that pause stays: " };
                let words = answer.pauses.iter().map(|pause| format!("{before}{}", pause.describe()));
                let mut text = lines(words);
                text.push_str(
                    "No pass, drop or truncate of tailrace ends files of it until `tailrace resume`\n",
                );
                text
            })?;
            Ok(DONE)
        })
        .await
}

async fn list(session: &mut Session, output: Output) -> anyhow::Result<u8> {
    let answer = Answer { pauses: pause::all(session).await?, still: None };
    out::show(output, &answer, |answer| match answer.pauses.as_slice() {
        [] => "Nothing is paused\n".to_owned(),
        pauses => lines(pauses.iter().map(Pause::describe)),
    })?;
    Ok(DONE)
}

pub async fn resume(config: &Config, args: &ResumeArgs) -> anyhow::Result<u8> {
    let user = session_user();
    let by = args.by.as_ref().unwrap_or(&user);
    let guard = &config.guard;
    let grace = confirm::grace(args.yes, guard.policy_grace.get(), guard.four_eyes)?;
    database(config)?
        .in_session(Access::ReadWrite, async |session| {
            let pauses = end(session, args.scope.scope(), by, grace).await?;
            let mut still = still_covering(pause::all(session).await?, &args.scope);
            still.retain(|pause| !pauses.contains(pause));
            if pauses.is_empty() {
                let others = match still.as_slice() {
                    [] => String::new(),
                    others => format!("; {}", describe(others)),
                };
                bail!("there is no pause of that scope{others}: see `tailrace pause --list`");
            }
            let answer = Answer { pauses, still: Some(still) };
            out::show(args.output, &answer, |answer| {
                let resumed =
                    answer.pauses.iter().map(|pause| format!("Resumed: {}", pause.describe()));
                let still = answer.still.iter().flatten();
                let still = still.map(|pause| format!("Still: {}", pause.describe()));
                let waits = (!grace.is_zero()).then(|| {
                    "Drops go on when the pause ends; see `tailrace plan`, and repeat it with --yes to let \
                     them go on at once"
                        .to_owned()
                });
                lines(resumed.chain(still).chain(waits))
            })?;
            Ok(DONE)
        })
        .await
}

/// The pauses that are wider than the scope, and those of its parts.
fn still_covering(all: Vec<Pause>, scope: &ScopeArgs) -> Vec<Pause> {
    let covers = |pause: &Pause| {
        let catalog = match (&pause.catalog, &scope.catalog) {
            (Some(paused), Some(named)) => paused == named,
            _ => true,
        };
        let table = match (&pause.namespace, &pause.table, &scope.table) {
            (Some(namespace), Some(table), Some(named)) => {
                (namespace, table) == (&named.namespace, &named.table)
            }
            _ => true,
        };
        catalog && table
    };
    all.into_iter().filter(covers).collect()
}

fn describe(pauses: &[Pause]) -> String {
    pauses.iter().map(Pause::describe).collect::<Vec<_>>().join("; ")
}

fn lines(of: impl Iterator<Item = String>) -> String {
    of.map(|text| format!("{}\n", line(&text))).collect()
}
