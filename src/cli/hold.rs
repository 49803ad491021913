//! `tailrace hold add | list | release`

use std::time::Duration;

use anyhow::{bail, ensure};
use serde::Serialize;

use super::arguments::{TableName, author, message, session_user, table_name, value_of};
use super::drop::partitions::read_one;
use super::plan::instant;
use super::text::{bytes, counted, spinner};
use super::{DONE, Output, Usage, database, out};
use crate::catalog::connect::Access;
use crate::catalog::session::Session;
use crate::catalog::specs::table_shape;
use crate::catalog::tables::find_table;
use crate::config::Config;
use crate::explicit::call::{PartitionItem, TableRef};
use crate::explicit::confirm;
use crate::explicit::holds::{self, HoldAnswer, HoldBody, HoldsAnswer, ListedHold};
use crate::guards::held::Keeps;
use crate::guards::hold::Hold;
use crate::guards::release::release as end;
use crate::rules::hold::HeldPartition;
use crate::rules::instant::UtcInstant;
use crate::telemetry::line;

/// Shown with each hold that is made.
const BINDS: &str = "The hold binds tailrace alone: the server's truncate, deletes of rows and DROP TABLE do \
    not heed it\n";

/// So many partitions are shown one by one.
const SHOWN: usize = 30;

#[derive(Debug, clap::Subcommand)]
pub enum HoldCommand {
    /// Hold partitions of a table, or all of it: no drop of tailrace ends them.
    Add(AddArgs),
    /// Show the holds, with what each keeps.
    List(ListArgs),
    /// Release a hold.
    Release(ReleaseArgs),
}

#[derive(Debug, clap::Args)]
pub struct AddArgs {
    /// The catalog.
    #[arg(value_name = "CATALOG")]
    catalog: String,
    /// The table.
    #[arg(value_name = "NS.TABLE", value_parser = table_name)]
    table: TableName,
    /// A partition, as `tailrace drop --partition` takes it: `["20713"]` or `team_id=42,day=2026-09-17`. May be given
    /// several times. Without it, and without --where, all of the table is held.
    #[arg(long = "partition", value_name = "PARTITION", conflicts_with = "value_of")]
    partitions: Vec<String>,
    /// Every partition that may have rows with this value in this column. A partition whose spec does not have the
    /// column as it is, is held too.
    #[arg(long = "where", value_name = "COLUMN=VALUE", value_parser = value_of)]
    value_of: Option<(String, String)>,
    /// Why.
    #[arg(long, value_name = "TEXT", value_parser = message)]
    reason: String,
    /// When the hold ends by itself: RFC 3339, or a date, which is its midnight in UTC.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    until: Option<UtcInstant>,
    /// Who makes it; the user of this session if not given.
    #[arg(long, value_name = "NAME", value_parser = author)]
    by: Option<String>,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Only this table's: the catalog.
    #[arg(value_name = "CATALOG", requires = "table")]
    catalog: Option<String>,
    /// Only this table's.
    #[arg(value_name = "NS.TABLE", value_parser = table_name)]
    table: Option<TableName>,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, clap::Args)]
pub struct ReleaseArgs {
    /// The hold's id.
    #[arg(value_name = "ID")]
    hold_id: i64,
    /// Who releases it; the user of this session if not given.
    #[arg(long, value_name = "NAME", value_parser = author)]
    by: Option<String>,
    /// Release it at once, and not after guard.policy_grace: you know what `tailrace hold list` shows.
    #[arg(long)]
    yes: bool,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// The hold that was released, as in the JSON output.
#[derive(Debug, Serialize)]
struct Released {
    released: Hold,
}

pub async fn run(config: &Config, command: &HoldCommand) -> anyhow::Result<u8> {
    let access = match command {
        HoldCommand::List(_) => Access::ReadOnly,
        HoldCommand::Add(_) | HoldCommand::Release(_) => Access::ReadWrite,
    };
    let limit = config.discovery.count_timeout.get();
    let work = async |session: &mut Session| match command {
        HoldCommand::Add(args) => add(session, args, limit).await,
        HoldCommand::List(args) => list(session, args, limit).await,
        HoldCommand::Release(args) => {
            let guard = &config.guard;
            let grace = confirm::grace(args.yes, guard.policy_grace.get(), guard.four_eyes)?;
            release(session, args, grace).await
        }
    };
    database(config)?.in_session(access, work).await
}

async fn add(
    session: &mut Session,
    args: &AddArgs,
    limit: std::time::Duration,
) -> anyhow::Result<u8> {
    let AddArgs { catalog, table, .. } = args;
    let (column, value) = args.value_of.clone().unzip();
    let partitions = match args.partitions.is_empty() {
        true => None,
        false => Some(read(session, args).await?),
    };
    let until = args.until.map(|until| until.to_string());
    let body = HoldBody { partitions, column, value, reason: args.reason.clone(), until };
    let of = TableRef {
        catalog: catalog.clone(),
        namespace: table.namespace.clone(),
        table: table.table.clone(),
    };
    let user = session_user();
    let by = args.by.as_ref().unwrap_or(&user);
    let bar = spinner("holding");
    let added = holds::add(session, &of, &body, by, limit).await;
    bar.finish_and_clear();
    out::show(args.output, &added?, added_text)?;
    Ok(DONE)
}

/// The partitions that the arguments name, by their stored values.
async fn read(session: &mut Session, args: &AddArgs) -> anyhow::Result<Vec<PartitionItem>> {
    let TableName { namespace, table } = &args.table;
    let live = find_table(session, &args.catalog, namespace, table).await?.identity;
    let shape = table_shape(session, live.catalog_id, live.table_id).await?;
    let mut items = Vec::with_capacity(args.partitions.len());
    for text in &args.partitions {
        let written = read_one(text, &shape).map_err(Usage)?;
        // One instant may be stored in several ways, of which this names one.
        ensure!(
            written.instants.is_empty(),
            "partition {text:?} has an instant, which may be stored in several ways: give the stored \
             values as JSON, as `tailrace drop --dry-run` lists them"
        );
        items.push(written.item);
    }
    Ok(items)
}

async fn list(
    session: &mut Session,
    args: &ListArgs,
    limit: std::time::Duration,
) -> anyhow::Result<u8> {
    let table = match (&args.catalog, &args.table) {
        (Some(catalog), Some(TableName { namespace, table })) => Some(TableRef {
            catalog: catalog.clone(),
            namespace: namespace.clone(),
            table: table.clone(),
        }),
        _ => None,
    };
    let bar = spinner("looking up what is held");
    let listed = holds::list(session, table.as_ref(), limit).await;
    bar.finish_and_clear();
    out::show(args.output, &listed?, listed_text)?;
    Ok(DONE)
}

async fn release(session: &mut Session, args: &ReleaseArgs, grace: Duration) -> anyhow::Result<u8> {
    let user = session_user();
    let by = args.by.as_ref().unwrap_or(&user);
    let Some(released) = end(session, args.hold_id, by, grace).await? else {
        bail!("there is no hold {}: see `tailrace hold list`", args.hold_id);
    };
    let answer = Released { released };
    out::show(args.output, &answer, |Released { released }| {
        let Hold { catalog, namespace, table, .. } = released;
        let when = match grace.is_zero() {
            true => "The next pass drops what of it has expired",
            false => {
                "It keeps that until then; repeat it with --yes to let the next pass drop what of it has expired"
            }
        };
        format!(
            "{}\n{when}\n",
            line(&format!("Released on {catalog} {namespace}.{table}: {}", released.describe()))
        )
    })?;
    Ok(DONE)
}

fn added_text(answer: &HoldAnswer) -> String {
    let Hold { catalog, namespace, table, .. } = &answer.hold;
    let mut lines = vec![
        format!("{catalog} {namespace}.{table}: {}", answer.hold.describe()),
        format!("It keeps {}", keeps(&answer.keeps)),
    ];
    for kept in answer.kept.iter().take(SHOWN) {
        let files = counted(kept.counts.files, "file");
        lines.push(format!(
            "  {}  {files}, {}",
            of(kept.partition.as_ref()),
            bytes(kept.counts.bytes)
        ));
    }
    let more = answer.keeps.partitions - answer.kept.len().min(SHOWN) as i64;
    if more > 0 {
        lines.push(format!("  ... {} more", counted(more, "partition")));
    }
    for gone in &answer.dropped_before {
        let (partition, at) = (of(Some(&gone.partition)), UtcInstant::from(gone.dropped_at));
        lines.push(format!(
            "Dropped before it: {partition} in snapshot {} at {at}",
            gone.snapshot_id
        ));
    }
    let text: String = lines.iter().map(|text| format!("{}\n", line(text))).collect();
    text + BINDS
}

fn listed_text(answer: &HoldsAnswer) -> String {
    if answer.holds.is_empty() {
        return "Nothing is held\n".to_owned();
    }
    let mut lines = Vec::new();
    for ListedHold { hold, keeps: kept } in &answer.holds {
        let Hold { catalog, namespace, table, .. } = hold;
        lines.push(format!("{catalog} {namespace}.{table}: {}", hold.describe()));
        lines.push(match kept {
            Some(kept) => format!("  keeps {}", keeps(kept)),
            None => "  keeps nothing: the table is gone; release it".to_owned(),
        });
    }
    lines.iter().map(|text| format!("{}\n", line(text))).collect()
}

fn keeps(keeps: &Keeps) -> String {
    let Keeps { partitions, counts, complete } = keeps;
    let at_least = if *complete { "" } else { "at least " };
    format!(
        "{at_least}{}, {}, {}",
        counted(*partitions, "partition"),
        counted(counts.files, "file"),
        bytes(counts.bytes)
    )
}

/// A partition by its stored values.
fn of(partition: Option<&HeldPartition>) -> String {
    match partition {
        None => "files of no partition".to_owned(),
        Some(HeldPartition { spec_id, values }) => {
            format!("spec {spec_id} {}", serde_json::to_string(values).unwrap_or_default())
        }
    }
}
