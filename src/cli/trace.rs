//! `tailrace trace`

use anyhow::ensure;

use super::arguments::{TableName, table_name};
use super::text::{bytes, columns, count, counted};
use super::{DONE, Output, database, out};
use crate::catalog::connect::Access;
use crate::catalog::session::Session;
use crate::catalog::tables::{Catalog, catalogs};
use crate::config::Config;
use crate::rules::expiry::shortened;
use crate::rules::instant::UtcInstant;
use crate::telemetry;
use crate::trace::state::{Hold, Stage};
use crate::trace::{Asked, DropTrace, MOST, NamedBy, Naming, StuckObject, TraceReport, trace};

/// How many drops of a catalog are shown where not all are asked for.
const SHOWN: i64 = 30;

#[derive(Debug, clap::Args)]
pub struct TraceArgs {
    /// Only this catalog.
    #[arg(value_name = "CATALOG")]
    catalog: Option<String>,
    /// Only this table, also under a name that it had when it was dropped.
    #[arg(value_name = "NS.TABLE", value_parser = table_name)]
    table: Option<TableName>,
    /// Show every drop that is remembered, not the newest 30 of each catalog alone.
    #[arg(long)]
    all: bool,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

pub async fn run(config: &Config, args: &TraceArgs) -> anyhow::Result<u8> {
    database(config)?
        .in_session(Access::ReadOnly, async |session| tell(session, args).await)
        .await?;
    Ok(DONE)
}

async fn tell(connection: &mut Session, args: &TraceArgs) -> anyhow::Result<()> {
    let mut found = catalogs(connection).await?;
    if let Some(name) = &args.catalog {
        found.retain(|catalog| catalog.name == *name);
        ensure!(!found.is_empty(), "there is no catalog {name:?}");
    }
    let mut reports = Vec::new();
    for catalog in &found {
        reports.push(drops_of(connection, catalog, args).await?);
    }
    let words =
        |reports: &Vec<TraceReport>| reports.iter().map(text).collect::<Vec<_>>().join("\n");
    Ok(out::show(args.output, &reports, words)?)
}

/// The drops that are asked for, page by page.
async fn drops_of(
    connection: &mut Session,
    catalog: &Catalog,
    args: &TraceArgs,
) -> anyhow::Result<TraceReport> {
    let table = args.table.as_ref().map(|name| (name.namespace.as_str(), name.table.as_str()));
    let limit = if args.all { MOST } else { SHOWN };
    let mut report = trace(connection, catalog, Asked { table, before: i64::MAX, limit }).await?;
    while let (true, Some(before)) = (args.all, report.next_before) {
        let mut page = trace(connection, catalog, Asked { table, before, limit }).await?;
        page.drops.splice(..0, report.drops);
        report = page;
    }
    Ok(report)
}

/// The report for people: a head, and a line for each drop.
pub fn text(report: &TraceReport) -> String {
    let retention = match report.snapshot_retention_seconds {
        None => "no retention: nothing is ever purged".to_owned(),
        Some(seconds) => format!("retention {}", length(seconds)),
    };
    let mut text = format!(
        "{} as of {}: floor {}, head {}, {retention}, {} queued\n",
        telemetry::line(&report.catalog),
        report.as_of,
        report.floor,
        report.head,
        counted(report.undrained, "object"),
    );
    match report.oldest_not_gone {
        Some(oldest) => text.push_str(&format!(
            "  {} of the catalog not gone yet, the oldest of {oldest}\n",
            counted(report.not_gone, "drop")
        )),
        None => text.push_str("  every drop of the catalog that is remembered is gone\n"),
    }
    let rows: Vec<Vec<String>> = report.drops.iter().map(line).collect();
    text.push_str(&columns(&rows, &[0, 4, 5], "  "));
    if report.next_before.is_some() {
        text.push_str("  there may be older ones: --all shows them\n");
    }
    text.push_str(&stuck_text(&report.stuck));
    text
}

/// What the server cannot delete, for people.
fn stuck_text(stuck: &[StuckObject]) -> String {
    if stuck.is_empty() {
        return String::new();
    }
    let mut text =
        "  stuck in the server's queue, which skips a path that a row names:\n".to_owned();
    let rows: Vec<Vec<String>> = stuck
        .iter()
        .map(|stuck| {
            vec![
                shortened(&stuck.path),
                format!("queued {}", stuck.queued_at),
                counted(stuck.attempts.into(), "attempt"),
                named_by(&stuck.named_by),
            ]
        })
        .collect();
    text.push_str(&columns(&rows, &[2], "    "));
    text
}

fn named_by(named_by: &NamedBy) -> String {
    let (kind, naming) = match named_by {
        NamedBy::DataFile(naming) => ("data file", naming),
        NamedBy::Vector(naming) => ("vector", naming),
        NamedBy::NoFile => return "named by no file or vector".to_owned(),
        NamedBy::Unknown => return "which row names it cannot be told before V17".to_owned(),
    };
    let Naming { file_id, table, table_id, end_snapshot } = naming;
    let table = table.clone().unwrap_or_else(|| format!("table {table_id}"));
    let state = match end_snapshot {
        None => "live".to_owned(),
        Some(snapshot_id) => format!("ended in snapshot {snapshot_id}"),
    };
    format!("named by {kind} {file_id} of {table}, {state}")
}

fn line(drop: &DropTrace) -> Vec<String> {
    vec![
        drop.snapshot_id.to_string(),
        drop.dropped_at.to_string(),
        drop.table.clone().unwrap_or_else(|| drop.table_uuid.to_string()),
        partitions(drop),
        counted(drop.files_ended, "file"),
        bytes(drop.bytes),
        drop.stage.name().to_owned(),
        whereabouts(drop),
    ]
}

fn partitions(drop: &DropTrace) -> String {
    match drop.partitions.first() {
        None => "the whole table".to_owned(),
        Some(first) if drop.partitions_ended == 1 => shortened(&first.display),
        Some(first) => {
            format!("{} and {} more", shortened(&first.display), count(drop.partitions_ended - 1))
        }
    }
}

/// Where the drop is, since when, and why it goes no further.
fn whereabouts(drop: &DropTrace) -> String {
    let held = || drop.held_by.iter().map(hold).collect::<Vec<_>>().join("; ");
    let at = |seen: Option<UtcInstant>| seen.map(|at| format!(" {at}")).unwrap_or_default();
    match drop.stage {
        Stage::Retained => held(),
        Stage::Purging => match drop.files_left {
            Some(left) => format!("{} left: {}", counted(left, "row"), held()),
            None => format!("rows cannot be counted on this server: {}", held()),
        },
        Stage::Queued => match drop.purged_seen_at {
            Some(_) => format!("rows gone by{}: {}", at(drop.purged_seen_at), held()),
            None => format!("rows gone: {}", held()),
        },
        Stage::Gone => {
            format!("rows by{}, objects by{}", at(drop.purged_seen_at), at(drop.gone_seen_at))
        }
        Stage::Undone => "the catalog was restored to a time before it".to_owned(),
    }
}

fn hold(hold: &Hold) -> String {
    match hold {
        Hold::Retention { seconds: None, .. } => {
            "for ever: the catalog has no snapshot_retention_seconds".to_owned()
        }
        Hold::Retention { until: Some(until), .. } => format!("retention until {until}"),
        Hold::Retention { seconds: Some(seconds), until: None } => {
            format!("retention of {}", length(*seconds))
        }
        Hold::Consumer(consumer) => format!(
            "consumer {} is at {} since {}",
            shortened(&consumer.consumer_id),
            consumer.committed_snapshot,
            consumer.updated_at
        ),
        Hold::Expiry => "the server's expiry has not moved the floor past it".to_owned(),
        Hold::Purge => "the server's expiry has not purged them".to_owned(),
        Hold::Queue { objects, stuck } => {
            let stuck = match stuck {
                0 => String::new(),
                stuck => format!(", {} of them stuck", count(*stuck)),
            };
            format!("{} up to its last in the server's queue{stuck}", counted(*objects, "object"))
        }
        Hold::Pass => "the next pass will note it".to_owned(),
    }
}

fn length(seconds: i64) -> String {
    let length = std::time::Duration::from_secs(seconds.unsigned_abs());
    humantime::format_duration(length).to_string()
}
