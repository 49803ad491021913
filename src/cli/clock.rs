//! `tailrace clock accept`: accepts the database's clock where passes refuse it and a person knows
//! that it is right.

use anyhow::Context;
use serde::Serialize;

use super::arguments::{author, message, session_user};
use super::ask::{can_ask, confirmed};
use super::{DONE, FAILED, Output, USAGE, database, out};
use crate::catalog::clock_memory::accept;
use crate::catalog::connect::Access;
use crate::catalog::session::Session;
use crate::catalog::tables::{Catalog, catalogs};
use crate::config::Config;
use crate::events;
use crate::rules::clock_guard::Reading;
use crate::rules::instant::UtcInstant;
use crate::sweep::Settings;
use crate::sweep::clocks::{Outlook, outlook, read_clock};
use crate::telemetry::{line, say};

#[derive(Debug, clap::Subcommand)]
pub enum ClockCommand {
    /// Accept the database's clock for the next pass over a catalog, even if it disagrees with this
    /// host's clock or has jumped. Snapshots that exist now no longer make passes end with
    /// `clock_behind`.
    Accept(AcceptArgs),
}

#[derive(Debug, clap::Args)]
pub struct AcceptArgs {
    /// The catalog.
    #[arg(value_name = "CATALOG")]
    catalog: String,
    /// Why the clock is right; recorded and shown.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    /// Who accepts it; the user of this session if not given.
    #[arg(long, value_name = "NAME", value_parser = author)]
    by: Option<String>,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

fn reason(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("say why the clock is right".to_owned()),
        text => message(text),
    }
}

/// The clocks, and what was recorded.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    catalog: &'a str,
    /// Whether anything was recorded.
    accepted: bool,
    database_time: UtcInstant,
    host_time: UtcInstant,
    /// Since when passes are refused.
    refused_since: Option<UtcInstant>,
    /// Why passes refuse the clock; `None` where they do not.
    refusal: Option<String>,
    /// The time of the newest snapshot, if the clock is behind it.
    newest_snapshot_time: Option<UtcInstant>,
    /// The clock is no longer compared with snapshots up to this one.
    trusted_head: Option<i64>,
    by: &'a str,
    reason: &'a str,
}

pub async fn run(config: &Config, command: &ClockCommand) -> anyhow::Result<u8> {
    let ClockCommand::Accept(args) = command;
    let settings = Settings::from_config(config);
    database(config)?
        .in_session(Access::ReadWrite, async |session| {
            accept_or_ask(session, &settings, args).await
        })
        .await
}

async fn accept_or_ask(
    connection: &mut Session,
    settings: &Settings,
    args: &AcceptArgs,
) -> anyhow::Result<u8> {
    let named = catalogs(connection).await?.into_iter().find(|known| known.name == args.catalog);
    let Catalog { catalog_id, name } =
        named.with_context(|| format!("there is no catalog {:?}", args.catalog))?;
    let clock = read_clock(connection, settings).await?;
    let seen = outlook(connection, catalog_id, &clock, settings.max_clock_skew).await?;
    let user = session_user();
    let by = args.by.as_ref().unwrap_or(&user);
    let mut answer = Answer {
        catalog: &name,
        accepted: false,
        database_time: clock.database,
        host_time: clock.host,
        refused_since: seen.known.memory.refused.map(|refused| refused.at),
        refusal: refusal(&seen),
        newest_snapshot_time: seen.behind.map(|behind| behind.newest_snapshot),
        trusted_head: seen.known.trusted_head,
        by,
        reason: &args.reason,
    };
    let is_anything = answer.refusal.is_some() || answer.newest_snapshot_time.is_some();
    if is_anything && !args.yes {
        say(&text(&answer));
        if !can_ask() {
            say("tailrace: there is no terminal to ask on: say --yes\n");
            return Ok(USAGE);
        }
        if !confirmed("Let the next pass act by the database's clock?")? {
            say("tailrace: nothing was accepted\n");
            return Ok(FAILED);
        }
    }
    if is_anything {
        let head = accept(connection, catalog_id, by, &args.reason).await?;
        answer.trusted_head = Some(head.with_context(|| format!("the catalog {name:?} is gone"))?);
        answer.accepted = true;
        log_accepted(&answer, &clock);
    }
    out::show(args.output, &answer, text)?;
    Ok(DONE)
}

/// Why passes refuse the clock: the reason of the last pass, else the reason a pass of this process would have.
fn refusal(seen: &Outlook) -> Option<String> {
    let here = seen.refusal.as_ref().map(ToString::to_string);
    seen.known.refusal.clone().or(here)
}

fn log_accepted(answer: &Answer<'_>, clock: &Reading) {
    tracing::info!(
        event = events::CLOCK_ACCEPTED,
        catalog = answer.catalog,
        database_time = %clock.database, host_time = %clock.host,
        refusal = answer.refusal,
        trusted_head = answer.trusted_head,
        by = answer.by,
        reason = answer.reason,
        "Somebody accepted the database's clock for one pass"
    );
}

/// The answer for people.
fn text(answer: &Answer<'_>) -> String {
    let Answer { catalog, database_time, host_time, .. } = answer;
    if answer.refusal.is_none() && answer.newest_snapshot_time.is_none() {
        return format!(
            "{}: no pass is refused, and the clock is not behind any snapshot: nothing to \
             accept\n",
            line(catalog)
        );
    }
    let mut text = format!("{}: the clocks say\n", line(catalog));
    text.push_str(&format!("  database  {database_time}\n  host      {host_time}\n"));
    if let Some(refusal) = &answer.refusal {
        let since = answer.refused_since.map(|since| format!(" since {since}"));
        let since = since.unwrap_or_default();
        text.push_str(&format!("  refused  {since}: {}\n", line(refusal)));
    }
    if let Some(newest) = answer.newest_snapshot_time {
        text.push_str(&format!("  behind    the newest snapshot, which says {newest}\n"));
    }
    if let (true, Some(head)) = (answer.accepted, answer.trusted_head) {
        text.push_str(&format!(
            "Accepted by {}: the next pass goes through, whatever the clocks say then, and the \
             snapshots up to {head} count no more\n",
            line(answer.by)
        ));
    }
    text
}
