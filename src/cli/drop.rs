//! `tailrace drop`: drops an enumerated list of partitions, directly in the database.

mod known;
mod nearest;
pub mod partitions;
mod range;
mod range_parts;
mod shown;
mod stored;

use std::io::Read;
use std::path::PathBuf;

use anyhow::Context;
use clap::ArgGroup;
use serde::Serialize;
use uuid::Uuid;

use known::Known;
use partitions::Written;
use shown::Teller;

use super::arguments::{TableName, author, message, session_user, table_name, value_of};
use super::ask::{can_ask, confirmed};
use super::plan::instant;
use super::text::spinner;
use super::{DONE, FAILED, Output, USAGE, Usage, database, out};
use crate::catalog::connect::Access;
use crate::catalog::receipts::{self, RequestedTuple};
use crate::catalog::session::Session;
use crate::catalog::specs::TableShape;
use crate::config::Config;
use crate::explicit::call::{DropAnswer, DropBody, TableRef};
use crate::explicit::{Bounds, drop_partitions};
use crate::rules::expiry::within::Span;
use crate::rules::instant::UtcInstant;
use crate::telemetry::{line, say};

#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("what").required(true).args(["partitions", "from_file", "from"])))]
pub struct DropArgs {
    /// The catalog.
    #[arg(value_name = "CATALOG")]
    catalog: String,
    /// The table.
    #[arg(value_name = "NS.TABLE", value_parser = table_name)]
    table: TableName,
    /// A partition: its stored values as JSON (`["20713"]`), or a value for each field of the live spec
    /// (`team_id=42,day=2026-09-17`). In the second form an instant of an `identity` field matches every
    /// stored value that means this instant. May be given several times.
    #[arg(long = "partition", value_name = "PARTITION")]
    partitions: Vec<String>,
    /// A file of partitions, JSON lines or CSV with a header; `-` reads stdin.
    #[arg(long, value_name = "FILE")]
    from_file: Option<PathBuf>,
    /// All partitions that lie whole in a range of time, from this time on: RFC 3339, or a date, which is its midnight
    /// in UTC. The command resolves it to a list, shows the list, and drops exactly that.
    #[arg(long, value_name = "TIME", value_parser = instant, requires = "to")]
    from: Option<UtcInstant>,
    /// The end of the range; a partition that begins at this time is not in it.
    #[arg(long, value_name = "TIME", value_parser = instant, requires = "from")]
    to: Option<UtcInstant>,
    /// Of the range only partitions all of whose rows have this value in this column.
    #[arg(long = "where", value_name = "COLUMN=VALUE", value_parser = value_of, requires = "from")]
    value_of: Option<(String, String)>,
    /// Names this request, so that it can be repeated safely; a fresh one, printed first, if not given.
    #[arg(long, value_name = "UUID")]
    idempotency_key: Option<Uuid>,
    /// Only if the table still has this UUID.
    #[arg(long, value_name = "UUID")]
    expected_table_uuid: Option<Uuid>,
    /// Only if nothing came to the partitions after this snapshot.
    #[arg(long, value_name = "SNAPSHOT")]
    read_snapshot: Option<i64>,
    /// Tell consumers of the server's own feed to reconcile; appends prepared before conflict once.
    #[arg(long)]
    fence: bool,
    /// Only show what would be dropped.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    /// Match stored values that are exactly the given ones, even if no writer should have stored such values.
    #[arg(long)]
    literal: bool,
    /// The snapshot's author; the user of this session if not given.
    #[arg(long, value_name = "NAME", value_parser = author)]
    author: Option<String>,
    /// The snapshot's message.
    #[arg(long, value_name = "TEXT", value_parser = message)]
    message: Option<String>,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

pub async fn run(config: &Config, args: &DropArgs) -> anyhow::Result<u8> {
    let asks = !args.yes && !args.dry_run;
    if asks && !can_ask() {
        say(
            "tailrace: there is no terminal to ask on: say --yes, or --dry-run to see what would be dropped\n",
        );
        return Ok(USAGE);
    }
    database(config)?
        .in_session(Access::ReadWrite, async |session| {
            drop_or_ask(session, config, args, asks).await
        })
        .await
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
    let asked = read(connection, config, args).await?;
    for note in &asked.notes {
        say(&format!("tailrace: {}\n", line(note)));
    }
    if asked.written.is_empty() {
        return range::nothing(connection, args, &target).await;
    }
    let mut body = DropBody {
        partitions: asked.written.iter().map(|written| written.item.clone()).collect(),
        idempotency_key: args.idempotency_key.unwrap_or_else(Uuid::new_v4),
        expected_table_uuid: args.expected_table_uuid,
        read_snapshot: args.read_snapshot,
        author: args.author.clone(),
        message: args.message.clone(),
        dry_run: args.dry_run,
        fence: args.fence,
    };
    let author = session_user();
    let bounds = Bounds::from_config(config);
    let teller = Teller::of(&asked);
    if !args.dry_run {
        let key = body.idempotency_key;
        say(&format!(
            "idempotency key {key}: if this command is interrupted, repeat it with --idempotency-key {key}\n"
        ));
    }
    let mut is_described = false;
    if asks {
        let dry = DropBody { dry_run: true, ..body.clone() };
        let found = drop_partitions(connection, &target, &dry, &author, &bounds).await?;
        // No transaction is open and no lock is held while a person reads this.
        say(&teller.text(&found, "would be dropped"));
        if found.files_ended == 0 {
            say(&nearest::described(connection, &teller, &found).await);
            is_described = true;
            // With the key of an earlier request, that request may have dropped them.
            if args.idempotency_key.is_none() {
                say("tailrace: nothing was dropped\n");
                return Ok(DONE);
            }
        }
        if !confirmed("Drop them?")? {
            say("tailrace: nothing was dropped\n");
            return Ok(FAILED);
        }
        // The drop uses the spec for which the partitions were shown.
        for (item, shown) in body.partitions.iter_mut().zip(&found.partitions) {
            item.spec_id = Some(shown.spec_id);
        }
    }
    range::is_of_same_table(connection, args, asked.known.as_ref()).await?;
    let answer = drop_partitions(connection, &target, &body, &author, &bounds).await?;
    let shown = Shown { table: &target, idempotency_key: body.idempotency_key, answer: &answer };
    out::show(args.output, &shown, |shown| {
        teller.text(shown.answer, headline(shown.answer, args.dry_run))
    })?;
    if answer.undone {
        say(
            "tailrace: the catalog was restored to a time before this drop, and its data may be live \
             again: drop it with a fresh idempotency key\n",
        );
        return Ok(FAILED);
    }
    if answer.files_ended == 0 && !answer.replayed && !is_described {
        say(&nearest::described(connection, &teller, &answer).await);
    }
    Ok(DONE)
}

/// The JSON output: the answer of the HTTP interface, with the table, which HTTP has in the path.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    table: &'a TableRef,
    idempotency_key: Uuid,
    #[serde(flatten)]
    answer: &'a DropAnswer,
}

/// A request to drop partitions.
struct Asked {
    /// The partitions, by their stored values.
    written: Vec<Written>,
    known: Option<Known>,
    /// Whether the request has an instant, whose stored values were looked up.
    has_instants: bool,
    /// What of a range is left out, and why.
    notes: Vec<String>,
}

async fn read(connection: &mut Session, config: &Config, args: &DropArgs) -> anyhow::Result<Asked> {
    if let (Some(from), Some(to)) = (args.from, args.to) {
        return range::read(connection, config, args, Span { from, to }).await;
    }
    let given: Vec<String> = match &args.from_file {
        Some(path) if path.as_os_str() == "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("reading stdin")?;
            vec![text]
        }
        Some(path) => {
            let read = std::fs::read_to_string(path);
            vec![read.with_context(|| format!("reading {}", path.display())).map_err(Usage)?]
        }
        None => args.partitions.clone(),
    };
    // A repeated request must mean the same even if its table no longer exists. Stored values need the table
    // only for their description.
    let needs_table = !given.iter().all(|text| text.trim_start().starts_with(['[', '{']));
    let known = match Known::read(connection, &args.catalog, &args.table).await {
        Err(error) if needs_table => return Err(error),
        known => known.ok(),
    };
    let no_shape = TableShape::default();
    let shape = known.as_ref().map_or(&no_shape, |known| &known.shape);
    let mut written = match args.from_file {
        Some(_) => partitions::read_all(&given[0], shape).map_err(Usage)?,
        None => given
            .iter()
            .map(|text| partitions::read_one(text, shape))
            .collect::<anyhow::Result<_>>()
            .map_err(Usage)?,
    };
    if args.literal {
        for written in &mut written {
            written.item.literal = true;
            written.instants.clear();
        }
    }
    let has_instants = written.iter().any(|written| !written.instants.is_empty());
    let receipt = match (&known, args.idempotency_key.filter(|_| !args.dry_run)) {
        (Some(known), Some(key)) => {
            receipts::find(connection, known.identity.catalog_id, key).await?
        }
        _ => None,
    };
    let request = receipt.and_then(|receipt| receipt.request);
    if let (Some(known), true) = (&known, has_instants) {
        let bar = spinner("looking up what is stored");
        let found = stored::as_stored(connection, known, written, request.as_deref()).await;
        bar.finish_and_clear();
        written = found?;
    }
    // A repeated request means the same, even if the live spec has changed.
    for Written { item, typed, .. } in &mut written {
        let of_item = |tuple: &&RequestedTuple| tuple.partition_values == item.partition_values;
        let asked = request.iter().flatten().find(of_item);
        if let (Some(asked), true) = (asked, typed.is_some()) {
            item.spec_id = Some(asked.spec_id);
        }
    }
    Ok(Asked { written, known, has_instants, notes: Vec::new() })
}

fn headline(answer: &DropAnswer, dry_run: bool) -> &'static str {
    match (dry_run, answer.replayed, answer.committed) {
        (true, ..) => "would be dropped",
        _ if answer.undone => "dropped by an earlier request of this key, and undone by a restore",
        (_, true, _) => "dropped by an earlier request of this key",
        (_, _, true) => "dropped",
        (_, _, false) => "nothing matched",
    }
}
