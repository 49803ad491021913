//! `tailrace drop`: an enumerated list of partitions, directly in the database.

mod partitions;

use std::io::{BufRead, IsTerminal, Read};
use std::path::PathBuf;

use anyhow::{Context, bail};
use uuid::Uuid;

use super::text::{bytes, columns, count, counted};
use super::{DONE, FAILED, Output, TableName, USAGE, database, out, policy, table_name};
use crate::catalog::connect::close;
use crate::catalog::session::Session;
use crate::catalog::shape::table_shape;
use crate::catalog::tables::find_table;
use crate::config::Config;
use crate::explicit::call::{DropAnswer, DropBody, PartitionItem, TableRef};
use crate::explicit::{Bounds, drop_partitions};
use crate::telemetry::{self, say};

#[derive(Debug, clap::Args)]
pub struct DropArgs {
    /// The catalog.
    #[arg(value_name = "CATALOG")]
    catalog: String,
    /// The table.
    #[arg(value_name = "NS.TABLE", value_parser = table_name)]
    table: TableName,
    /// A partition: stored texts as JSON (`["20713"]`), or every field with a value
    /// (`team_id=42,day=2026-09-17`). May be given often.
    #[arg(long = "partition", value_name = "PARTITION")]
    partitions: Vec<String>,
    /// A file of partitions, JSON lines or CSV with a header; `-` reads stdin.
    #[arg(long, value_name = "FILE", conflicts_with = "partitions")]
    from_file: Option<PathBuf>,
    /// Names this request, so that it can be repeated safely; a fresh one, printed first, if not given.
    #[arg(long, value_name = "UUID")]
    idempotency_key: Option<Uuid>,
    /// Only if the table is still this incarnation.
    #[arg(long, value_name = "UUID")]
    expected_table_uuid: Option<Uuid>,
    /// Only if nothing came to the partitions after this snapshot.
    #[arg(long, value_name = "SNAPSHOT")]
    read_snapshot: Option<i64>,
    /// Tell consumers of the server's own feed to reconcile; appends prepared before conflict once.
    #[arg(long)]
    fence: bool,
    /// Only show what would go.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    /// These very texts are meant, even though no writer should have stored them.
    #[arg(long)]
    literal: bool,
    /// The snapshot's author; the user of this session if not given.
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// The snapshot's message.
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

pub async fn run(config: &Config, args: &DropArgs) -> anyhow::Result<u8> {
    let asks = !args.yes && !args.dry_run;
    if asks && !can_ask() {
        say(
            "tailrace: there is no terminal to ask on: say --yes, or --dry-run to see what would go\n",
        );
        return Ok(USAGE);
    }
    let database = database(config)?;
    let mut connection = database.session().await?;
    let result = drop_or_ask(&mut connection, config, args, asks).await;
    close(connection).await;
    result
}

async fn drop_or_ask(
    connection: &mut Session,
    config: &Config,
    args: &DropArgs,
    asks: bool,
) -> anyhow::Result<u8> {
    let TableName { namespace, table } = &args.table;
    let target = TableRef {
        catalog: args.catalog.clone(),
        namespace: namespace.clone(),
        table: table.clone(),
    };
    let body = DropBody {
        partitions: read(connection, args).await?,
        idempotency_key: args.idempotency_key.unwrap_or_else(Uuid::new_v4),
        expected_table_uuid: args.expected_table_uuid,
        read_snapshot: args.read_snapshot,
        author: args.author.clone(),
        message: args.message.clone(),
        dry_run: args.dry_run,
        fence: args.fence,
    };
    let author = policy::session_user();
    let bounds = Bounds::from_config(config);
    if !args.dry_run {
        let key = body.idempotency_key;
        say(&format!("idempotency key {key}: repeat with it if this is cut off\n"));
    }
    if asks {
        let dry = DropBody { dry_run: true, ..body.clone() };
        let found = drop_partitions(connection, &target, &dry, &author, &bounds).await?;
        // Nothing is open or locked while somebody reads this.
        say(&text(&found, "would go"));
        if !confirmed("Drop them?")? {
            say("tailrace: nothing was dropped\n");
            return Ok(FAILED);
        }
    }
    let answer = drop_partitions(connection, &target, &body, &author, &bounds).await?;
    out::show(args.output, &answer, |answer| text(answer, headline(answer, args.dry_run)))?;
    if answer.undone {
        say(
            "tailrace: the catalog was restored to a time before this drop, and its data may be live \
             again: drop it with a fresh idempotency key\n",
        );
        return Ok(FAILED);
    }
    Ok(DONE)
}

async fn read(connection: &mut Session, args: &DropArgs) -> anyhow::Result<Vec<PartitionItem>> {
    // A request that is repeated must read the same although its table may be gone: stored texts
    // need no table.
    let given: Vec<String> = match &args.from_file {
        Some(path) if path.as_os_str() == "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("reading stdin")?;
            vec![text]
        }
        Some(path) => vec![
            std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?,
        ],
        None => args.partitions.clone(),
    };
    if given.is_empty() {
        bail!("no partition is named: say --partition or --from-file");
    }
    let needs_table = !given.iter().all(|text| text.trim_start().starts_with(['[', '{']));
    let shape = if needs_table {
        let TableName { namespace, table } = &args.table;
        let live = find_table(connection, &args.catalog, namespace, table).await?.identity;
        table_shape(connection, live.catalog_id, live.table_id).await?
    } else {
        Default::default()
    };
    let mut items = match args.from_file {
        Some(_) => partitions::read_all(&given[0], &shape)?,
        None => given
            .iter()
            .map(|text| partitions::read_one(text, &shape))
            .collect::<anyhow::Result<_>>()?,
    };
    if args.literal {
        items.iter_mut().for_each(|item| item.literal = true);
    }
    Ok(items)
}

/// Whether somebody is there to be asked.
pub(super) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks, and says whether the answer is yes.
pub(super) fn confirmed(question: &str) -> anyhow::Result<bool> {
    say(&format!("{question} [y/N] "));
    telemetry::flush();
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn headline(answer: &DropAnswer, dry_run: bool) -> &'static str {
    match (dry_run, answer.replayed, answer.committed) {
        (true, ..) => "would go",
        _ if answer.undone => {
            "went with an earlier request of this key, and was undone by a restore"
        }
        (_, true, _) => "went with an earlier request of this key",
        (_, _, true) => "went",
        (_, _, false) => "nothing matched",
    }
}

/// An answer for people.
fn text(answer: &DropAnswer, headline: &str) -> String {
    let mut text = format!(
        "snapshot {}: {headline}: {}, {}, {}, {}\n",
        answer.snapshot_id,
        counted(answer.files_ended, "file"),
        counted(answer.delete_files_ended, "vector"),
        counted(answer.records, "record"),
        bytes(answer.bytes)
    );
    let rows: Vec<_> = answer
        .partitions
        .iter()
        .map(|partition| {
            vec![
                serde_json::to_string(&partition.partition_values).unwrap_or_default(),
                format!("spec {}", count(partition.spec_id)),
                counted(partition.files_ended, "file"),
                bytes(partition.bytes),
            ]
        })
        .collect();
    text.push_str(&columns(&rows, &[2, 3], "  "));
    text
}
