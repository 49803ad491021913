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
use crate::trace::{
    Asked, DropTrace, Drops, MOST, NamedBy, Naming, StuckObject, TraceReport, trace,
};

/// How many drops of each catalog are shown without `--all`.
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
        .in_session(Access::ReadOnly, async |session| show(session, args).await)
        .await?;
    Ok(DONE)
}

async fn show(connection: &mut Session, args: &TraceArgs) -> anyhow::Result<()> {
    let mut found = catalogs(connection).await?;
    if let Some(name) = &args.catalog {
        found.retain(|catalog| catalog.name == *name);
        ensure!(!found.is_empty(), "there is no catalog {name:?}");
    }
    let mut answer = Drops { catalogs: Vec::new() };
    for catalog in &found {
        answer.catalogs.push(drops_of(connection, catalog, args).await?);
    }
    let words = |answer: &Drops| answer.catalogs.iter().map(text).collect::<Vec<_>>().join("\n");
    Ok(out::show(args.output, &answer, words)?)
}

/// Reads the drops to show, page by page.
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

/// The report for people: a head, and two lines for each drop.
pub fn text(report: &TraceReport) -> String {
    let retention = match report.snapshot_retention_seconds {
        None => "no retention: nothing is ever purged".to_owned(),
        Some(seconds) => format!("retention {}", length(seconds)),
    };
    let mut text = format!(
        "{} as of {}\n  expiry floor {}, head {}, {retention}, {} queued\n",
        telemetry::line(&report.catalog),
        second(report.as_of),
        report.floor,
        report.head,
        counted(report.undrained, "object"),
    );
    match report.oldest_not_gone {
        Some(oldest) => text.push_str(&format!(
            "  {} not complete yet, the oldest of {}\n",
            counted(report.not_gone, "drop"),
            second(oldest)
        )),
        None => text.push_str("  the objects of every drop that is remembered are deleted\n"),
    }
    text.push_str(&drops_text(&report.drops));
    if report.next_before.is_some() {
        text.push_str("  there may be older ones: --all shows them\n");
    }
    text.push_str(&stuck_text(&report.stuck));
    text
}

/// The drops in columns. Lines below each drop have its partitions, its stage, and why it does not reach the
/// next stage.
pub(super) fn drops_text(drops: &[DropTrace]) -> String {
    if drops.is_empty() {
        return String::new();
    }
    let heading = ["SNAPSHOT", "DROPPED AT", "FILES", "BYTES", "STATE", "TABLE"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(drops.iter().map(line));
    let table = columns(&rows, &[0, 2, 3], "  ");
    let mut lines = table.lines();
    let mut text = lines.next().map(|heading| format!("{heading}\n")).unwrap_or_default();
    for (line, drop) in lines.zip(drops) {
        text.push_str(&format!("{line}\n"));
        for words in [partitions(drop)].into_iter().chain(whereabouts(drop)) {
            text.push_str(&format!("            {}\n", telemetry::line(&words)));
        }
    }
    text
}

/// The objects that the server cannot delete, for people.
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
                format!("queued {}", second(stuck.queued_at)),
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
        NamedBy::Unknown => {
            return "a server before V17 does not say which row names it".to_owned();
        }
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
        second(drop.dropped_at),
        count(drop.files_ended),
        bytes(drop.bytes),
        drop.stage.name().to_owned(),
        drop.table.clone().unwrap_or_else(|| drop.table_uuid.to_string()),
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

/// The stage of the drop, since when, and why it does not reach the next stage.
fn whereabouts(drop: &DropTrace) -> Vec<String> {
    let at = |seen: Option<UtcInstant>| seen.map(|at| format!(" by {}", second(at)));
    let first = match drop.stage {
        Stage::Retained => None,
        Stage::Purging => Some(match drop.files_left {
            Some(left) => format!("{} left", counted(left, "row")),
            None => "rows cannot be counted on this server".to_owned(),
        }),
        Stage::Queued => Some(format!("rows gone{}", at(drop.purged_seen_at).unwrap_or_default())),
        Stage::Gone => {
            let [rows, objects] =
                [drop.purged_seen_at, drop.gone_seen_at].map(|seen| at(seen).unwrap_or_default());
            return vec![format!("rows gone{rows}"), format!("objects gone{objects}")];
        }
        Stage::Undone => return vec!["the catalog was restored to a time before it".to_owned()],
    };
    first.into_iter().chain(drop.held_by.iter().map(hold)).collect()
}

fn hold(hold: &Hold) -> String {
    match hold {
        Hold::Retention { seconds: None, .. } => {
            "for ever: the catalog has no snapshot_retention_seconds".to_owned()
        }
        Hold::Retention { until: Some(until), .. } => format!("retention until {}", second(*until)),
        Hold::Retention { seconds: Some(seconds), until: None } => {
            format!("retention of {}", length(*seconds))
        }
        Hold::Consumer(consumer) => format!(
            "consumer {} is at {} since {}",
            shortened(&consumer.consumer_id),
            consumer.committed_snapshot,
            second(consumer.updated_at)
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

/// An instant without its fraction of a second, for display.
fn second(at: UtcInstant) -> String {
    let time = at.to_chrono().map(|time| time.format("%Y-%m-%dT%H:%M:%SZ").to_string());
    time.unwrap_or_else(|| at.to_string())
}

fn length(seconds: i64) -> String {
    let length = std::time::Duration::from_secs(seconds.unsigned_abs());
    humantime::format_duration(length).to_string()
}
