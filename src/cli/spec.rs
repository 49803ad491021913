//! `tailrace spec list | trust`

use serde::Serialize;

use super::arguments::{TableName, author, message, session_user, table_name};
use super::ask::{can_ask, confirmed};
use super::plan::expired_text;
use super::text::spinner;
use super::{DONE, FAILED, Output, USAGE, database, out};
use crate::catalog::connect::Access;
use crate::catalog::errors::describe;
use crate::catalog::session::Session;
use crate::catalog::tables::{LiveTable, find_table};
use crate::config::Config;
use crate::policy::Mode;
use crate::specs::{
    SpecReport, SpecState, SpecsReport, Trust, Trustworthy, specs_of, trust, trustworthy,
};
use crate::sweep::Settings;
use crate::sweep::planning::{Released, plan_of_trust};
use crate::sweep::report::PartitionReport;
use crate::telemetry::{line, say};

#[derive(Debug, clap::Subcommand)]
pub enum SpecCommand {
    /// Show every partition spec that is known of a table, and who trusted it. Never writes.
    List(ListArgs),
    /// Record that the partition values of all files of a spec are values of its fields, and not
    /// values of an earlier spec that a writer stored under the id of this spec. Shows what would be
    /// dropped because of this, and asks for confirmation.
    Trust(TrustArgs),
}

#[derive(Debug, clap::Args)]
pub struct ListArgs {
    #[command(flatten)]
    table: TableArgs,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, clap::Args)]
pub struct TrustArgs {
    #[command(flatten)]
    table: TableArgs,
    /// The id of the spec; `tailrace spec list` shows it.
    #[arg(value_name = "SPEC")]
    spec: i64,
    /// Why they are values of this spec; recorded and shown.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    /// Who states this; the user of this session if not given.
    #[arg(long, value_name = "NAME", value_parser = author)]
    by: Option<String>,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// The record that a spec is trusted, as in the JSON output.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    catalog: &'a str,
    namespace: &'a str,
    table: &'a str,
    spec_id: i64,
    /// Whether this command recorded it; false where an earlier record exists, which is kept.
    recorded: bool,
    trusted: &'a Trust,
}

#[derive(Debug, clap::Args)]
struct TableArgs {
    /// The catalog.
    #[arg(value_name = "CATALOG")]
    catalog: String,
    /// The table.
    #[arg(value_name = "NS.TABLE", value_parser = table_name)]
    table: TableName,
}

fn reason(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("say why the values are right".to_owned()),
        text => message(text),
    }
}

pub async fn run(config: &Config, command: &SpecCommand) -> anyhow::Result<u8> {
    let access = match command {
        SpecCommand::List(_) => Access::ReadOnly,
        SpecCommand::Trust(_) => Access::ReadWrite,
    };
    let settings = Settings::from_config(config);
    let work = async |session: &mut Session| match command {
        SpecCommand::List(args) => list(session, args, &settings).await,
        SpecCommand::Trust(args) => trust_or_ask(session, args, &settings).await,
    };
    database(config)?.in_session(access, work).await
}

async fn find(connection: &mut Session, args: &TableArgs) -> anyhow::Result<LiveTable> {
    find_table(connection, &args.catalog, &args.table.namespace, &args.table.table).await
}

async fn list(
    connection: &mut Session,
    args: &ListArgs,
    settings: &Settings,
) -> anyhow::Result<u8> {
    let table = find(connection, &args.table).await?;
    let report = specs_of(connection, &table.identity, settings.stale_writer_window).await?;
    out::show(args.output, &report, text)?;
    Ok(DONE)
}

async fn trust_or_ask(
    connection: &mut Session,
    args: &TrustArgs,
    settings: &Settings,
) -> anyhow::Result<u8> {
    let table = find(connection, &args.table).await?;
    let window = settings.stale_writer_window;
    let found = trustworthy(connection, &table, args.spec, window).await?;
    if let Some(before) = &found.spec.trusted {
        return show(args, before, false);
    }
    let bar = spinner("planning");
    let released = plan_of_trust(connection, &table, args.spec, settings).await;
    bar.finish_and_clear();
    let released = match released {
        // With --yes nothing more is asked, whether or not it is known what is dropped.
        Err(error) if args.yes => Some(Err(describe(&error))),
        other => other?,
    };
    let meaning = meaning(args, &found, &released);
    if args.yes && args.output == Output::Text {
        out::text(&meaning)?;
    } else if !args.yes {
        // No transaction is open and no lock is held while a person reads this.
        say(&meaning);
        if !can_ask() {
            say("tailrace: nothing was recorded; there is no terminal to ask on: say --yes\n");
            return Ok(USAGE);
        }
        if !confirmed("Trust it?")? {
            say("tailrace: nothing was recorded\n");
            return Ok(FAILED);
        }
    }
    let user = session_user();
    let by = args.by.as_ref().unwrap_or(&user);
    let (trust, is_new) = trust(connection, &table, args.spec, (by, &args.reason), window).await?;
    show(args, &trust, is_new)
}

fn show(args: &TrustArgs, trusted: &Trust, recorded: bool) -> anyhow::Result<u8> {
    let TableArgs { catalog, table: TableName { namespace, table } } = &args.table;
    let answer = Answer { catalog, namespace, table, spec_id: args.spec, recorded, trusted };
    out::show(args.output, &answer, |answer| match answer.recorded {
        true => format!("{} is trusted since {}\n", name(args), answer.trusted.at),
        false => format!("{}\n", already(args, answer.trusted)),
    })?;
    Ok(DONE)
}

fn name(args: &TrustArgs) -> String {
    let TableArgs { catalog, table: TableName { namespace, table } } = &args.table;
    line(&format!("{catalog} {namespace}.{table}: spec {}", args.spec)).into_owned()
}

fn already(args: &TrustArgs, trust: &Trust) -> String {
    format!("{} is trusted already, and that record stays: {}", name(args), in_line(trust))
}

fn in_line(trust: &Trust) -> String {
    line(&format!("{} by {}: {}", trust.at, trust.by, trust.reason)).into_owned()
}

/// The text that explains what it means to trust a spec, and shows what would then be dropped.
fn meaning(
    args: &TrustArgs,
    found: &Trustworthy,
    released: &Option<Result<Released, String>>,
) -> String {
    let mut text = format!(
        "{} is {}\n\
         To trust it is to vouch that every file of this spec, those still to be written included, has \
         its partition values by these fields, and none by an earlier spec. Files that are kept as \
         ambiguous_spec because a value may be one of another field are then dropped by their values \
         alone. If a writer stored such values, its rows are deleted.\n",
        name(args),
        line(&found.fields)
    );
    let released = match released {
        None => {
            return text + "No policy is in force for the table: nothing would be dropped now.\n";
        }
        Some(Err(problem)) => {
            return text + &format!("Not known what would be dropped: {}\n", line(problem));
        }
        Some(Ok(released)) => released,
    };
    let Released { policy, tuples, may_be } = released;
    text.push_str(&format!(
        "Under the policy {} keep {}, {}: ",
        line(&policy.field.to_string()),
        policy.keep,
        policy.mode
    ));
    if tuples.is_empty() {
        return text + "nothing that is kept now would be dropped\n";
    }
    text.push_str(match policy.mode {
        Mode::Enforce => "kept now, and dropped by the next pass:\n",
        Mode::Observe | Mode::Paused => "expired then, but not dropped in this mode:\n",
    });
    let partitions: Vec<_> =
        tuples.iter().map(|tuple| PartitionReport::of(tuple, tuple.counts)).collect();
    text.push_str(&expired_text(&partitions));
    for words in may_be {
        text.push_str(&format!("  may also be  {}\n", line(words)));
    }
    text
}

/// The specs for people.
fn text(report: &SpecsReport) -> String {
    let SpecsReport { catalog, namespace, table, specs, .. } = report;
    if specs.is_empty() {
        let words = format!("{catalog} {namespace}.{table} has no partition spec");
        return format!("{}\n", line(&words));
    }
    let name = format!("{catalog} {namespace}.{table}");
    let mut text = format!("{}\n", line(&name));
    specs.iter().for_each(|spec| text.push_str(&spec_text(spec)));
    let mut disputed: Vec<_> =
        specs.iter().filter(|spec| spec.disputed).map(|spec| spec.spec_id).collect();
    disputed.dedup();
    for spec_id in disputed {
        text.push_str(&format!(
            "spec {spec_id} was seen with several definitions: its files are kept as unknown_spec\n"
        ));
    }
    text
}

fn spec_text(spec: &SpecReport) -> String {
    let state = match spec.state {
        SpecState::Live => "live",
        SpecState::Ended => "ended",
        SpecState::CopyOnly => "known by its copy only",
    };
    let began = match spec.began_with_table {
        Some(true) => ", began with its table",
        Some(false) => ", began later than its table",
        None => "",
    };
    let mark = match (spec.mark, spec.mark_due_at) {
        (Some(mark), _) => {
            let noted = mark.noted_at.map_or(String::new(), |at| format!(", noted {at}"));
            format!("row {}{noted}", mark.row_id)
        }
        (None, Some(due)) => format!("due {due}"),
        (None, None) => "none".to_owned(),
    };
    let seen = spec.seen_at.map_or("not yet".to_owned(), |at| at.to_string());
    let lines = [
        format!("  spec {}: {}: {state}{began}", spec.spec_id, spec.fields.join(", ")),
        format!("    seen     {seen}"),
        format!("    mark     {mark}"),
        format!("    trusted  {}", spec.trusted.as_ref().map_or("no".to_owned(), in_line)),
    ];
    lines.iter().map(|text| format!("{}\n", line(text))).collect()
}
