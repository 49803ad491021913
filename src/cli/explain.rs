//! `tailrace explain`

use anyhow::ensure;

use super::arguments::{TableName, table_name};
use super::drop::partitions::read_one;
use super::text::{bytes, counted, last, spinner, wrapped};
use super::trace::drops_text;
use super::{DONE, Output, Usage, database, out};
use crate::catalog::connect::Access;
use crate::catalog::session::Session;
use crate::catalog::specs::table_shape;
use crate::catalog::tables::find_table;
use crate::config::Config;
use crate::explain::explain;
use crate::explain::report::{Block, Ending, Explanation, Outlook, Rule, SpecSummary};
use crate::specs::SpecState;
use crate::sweep::Settings;
use crate::telemetry::line;

#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// The catalog.
    #[arg(value_name = "CATALOG")]
    catalog: String,
    /// The table.
    #[arg(value_name = "NS.TABLE", value_parser = table_name)]
    table: TableName,
    /// The partition: its stored values as JSON (`["20713"]`), a JSON object with its `spec_id` too, or a value for each
    /// field of the live spec (`team_id=42,day=2026-09-17`).
    #[arg(long, value_name = "PARTITION")]
    partition: String,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

pub async fn run(config: &Config, args: &ExplainArgs) -> anyhow::Result<u8> {
    let settings = Settings::from_config(config);
    let bar = spinner("looking it up");
    let explained = database(config)?
        .in_session(Access::ReadOnly, async |session| read(session, args, &settings).await)
        .await;
    bar.finish_and_clear();
    out::show(args.output, &explained?, text)?;
    Ok(DONE)
}

async fn read(
    session: &mut Session,
    args: &ExplainArgs,
    settings: &Settings,
) -> anyhow::Result<Explanation> {
    let TableName { namespace, table } = &args.table;
    let live = find_table(session, &args.catalog, namespace, table).await?;
    let shape = table_shape(session, live.identity.catalog_id, live.identity.table_id).await?;
    let written = read_one(&args.partition, &shape).map_err(Usage)?;
    // One instant may be stored in several ways, of which this names one.
    ensure!(
        written.instants.is_empty(),
        "partition {:?} has an instant, which may be stored in several ways: give the stored values as JSON, as \
         `tailrace drop --dry-run` lists them",
        args.partition
    );
    explain(session, live, &written.item, settings).await
}

/// The explanation for people.
fn text(explained: &Explanation) -> String {
    let Explanation { catalog, namespace, table, display, spec_id, .. } = explained;
    let values = serde_json::to_string(&explained.partition_values).unwrap_or_default();
    let mut text = format!(
        "{}\n",
        line(&format!(
            "{catalog} {namespace}.{table}, partition {display}: spec {spec_id}, {values}"
        ))
    );
    let mut say = |label: &str, words: String| {
        text.push_str(&wrapped(&format!("  {label:<13}"), &line(&words), out::width()));
    };
    say("as of", explained.as_of.to_string());
    say(
        "spec",
        match &explained.spec {
            None => "not known, or seen with several definitions".to_owned(),
            Some(SpecSummary { fields, state, trusted }) => {
                let state = match state {
                    SpecState::Live => "live",
                    SpecState::Ended => "ended: the table has another one since",
                    SpecState::CopyOnly => "deleted by the server; tailrace has a copy",
                };
                let trusted = trusted.as_ref().map(|trust| format!(", trusted by {}", trust.by));
                format!("{}; {state}{}", fields.join(", "), trusted.unwrap_or_default())
            }
        },
    );
    if !explained.readings.is_empty() {
        say("may mean", explained.readings.join("; "));
    }
    say("ends", explained.range_end.map_or("unknown".to_owned(), |end| end.to_string()));
    let live = &explained.live;
    say("live", format!("{}, {}", counted(live.files, "file"), bytes(live.bytes)));
    match &explained.rule {
        None => say("policy", "none is followed".to_owned()),
        Some(Rule { field, keep, keep_last, mode, source, revision, since, cutoff, pending }) => {
            let since = since.map(|since| format!(" since {since}")).unwrap_or_default();
            let last = last(*keep_last);
            say(
                "policy",
                format!("{field} keep {keep}{last}, {mode} ({source}, revision {revision}){since}"),
            );
            if let Some(pending) = pending {
                say("waits", pending.describe());
            }
            say("cutoff", format!("{cutoff}: what ended by then has expired"));
        }
    }
    if let Some(at) = explained.expires_at {
        say("expires", at.to_string());
    }
    let outlook = match explained.outlook {
        Outlook::NoFiles => "it has no live file: there is nothing to drop",
        Outlook::NoPolicy => "it stays: no policy is followed",
        Outlook::Never => "it stays: its time is unknown to the policy",
        Outlook::NotExpired => "it has not expired",
        Outlook::Blocked => "it has expired, and is kept",
        Outlook::NextPass => "it has expired, and the next pass drops it",
    };
    say("outlook", outlook.to_owned());
    for Block { by, what, until } in &explained.blocked_by {
        let until = until.map(|until| format!(" (until {until})")).unwrap_or_default();
        say("blocked by", format!("{by}: {what}{until}"));
    }
    for Ending { snapshot_id, at, author, message, files, kind } in &explained.endings {
        let at = at.map(|at| format!(" at {at}")).unwrap_or_default();
        let author = author.as_ref().map(|author| format!(" by {author}")).unwrap_or_default();
        let message = message.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
        let files = counted(*files, "file");
        say("ended", format!("{files} in snapshot {snapshot_id}{at}{author} ({kind}){message}"));
    }
    if !explained.drops.is_empty() {
        text.push_str(
            "  drops of tailrace that ended files of it, and how far their objects are:\n",
        );
        text.push_str(&drops_text(&explained.drops));
    }
    text
}
