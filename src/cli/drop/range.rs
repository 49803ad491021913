//! Resolves a range of time to the list of the partitions that lie in it, which is then sent as any other list.

use std::collections::BTreeMap;

use anyhow::bail;
use uuid::Uuid;

use super::known::Known;
use super::partitions::Written;
use super::range_parts::{Inside, name, refuse_too_many};
use super::{Asked, DropArgs, Shown};
use crate::catalog::clock;
use crate::catalog::finder::pages::Pages;
use crate::catalog::finder::{Finder, list_expired};
use crate::catalog::live_file::{Counts, LiveFile};
use crate::catalog::receipts::{self, RequestedTuple};
use crate::catalog::session::Session;
use crate::catalog::tables::{catalogs, current_watermark, find_table};
use crate::catalog::triage::catalogs::schema_version;
use crate::catalog::values::has_lookup_index;
use crate::cli::arguments::TableName;
use crate::cli::text::{counted, spinner};
use crate::cli::{DONE, Output, Usage, out};
use crate::config::Config;
use crate::explicit::call::{DropAnswer, PartitionItem, TableRef};
use crate::policy::effective;
use crate::rules::column_value::{has_surely, may_have};
use crate::rules::expiry::within::{Place, Span};
use crate::rules::expiry::{Judge, Retention, StoredTuple};
use crate::sweep::Settings;
use crate::telemetry::say;

/// Longer than any partition of a time transform covers: one that only begins in the range is found, too.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(367 * 86_400);

/// What the range has.
#[derive(Default)]
struct Found {
    inside: Vec<Inside>,
    /// By why a partition is left out: how many of them, with how many files.
    left_out: BTreeMap<&'static str, (i64, i64)>,
}

/// Reads the request. One whose key has a receipt is what it was then, whatever the table is now.
pub async fn read(
    connection: &mut Session,
    config: &Config,
    args: &DropArgs,
    span: Span,
) -> anyhow::Result<Asked> {
    if span.to <= span.from {
        let why = format!("--from {} is not before --to {}", span.from, span.to);
        return Err(Usage(anyhow::Error::msg(why)).into());
    }
    if let Some(requested) = earlier(connection, args).await? {
        let written =
            requested.into_iter().map(|tuple| item(tuple.spec_id, tuple.partition_values));
        return Ok(Asked {
            written: written.collect(),
            known: None,
            has_instants: false,
            notes: Vec::new(),
        });
    }
    let known = Known::read(connection, &args.catalog, &args.table).await?;
    let settings = Settings::from_config(config);
    let bar = spinner("looking up what lies in the range");
    let found = find(connection, args, &known, &settings, &span).await;
    bar.finish_and_clear();
    let Found { mut inside, left_out } = found?;
    inside.sort_by(|a, b| {
        let order = |one: &Inside| (one.range.start, one.range.end, one.spec_id);
        order(a).cmp(&order(b)).then_with(|| a.values.cmp(&b.values))
    });
    let most_files = i64::try_from(config.drop.max_files.get()).unwrap_or(i64::MAX);
    refuse_too_many(args, &span, &inside, most_files)?;
    let mut notes: Vec<String> = left_out
        .into_iter()
        .map(|(why, (partitions, files))| {
            format!("{}, {}: {why}", counted(partitions, "partition"), counted(files, "file"))
        })
        .collect();
    if !notes.is_empty() {
        notes.insert(0, "kept, and to be named by --partition if they are meant:".to_owned());
    }
    let written = inside.into_iter().map(|one| item(one.spec_id, one.values)).collect();
    Ok(Asked { written, known: Some(known), has_instants: false, notes })
}

/// The partition by its stored values, whatever these are.
fn item(spec_id: i64, partition_values: Vec<Option<String>>) -> Written {
    PartitionItem { partition_values, spec_id: Some(spec_id), literal: true }.into()
}

/// What an earlier request with the key asked for.
async fn earlier(
    connection: &mut Session,
    args: &DropArgs,
) -> anyhow::Result<Option<Vec<RequestedTuple>>> {
    let Some(key) = args.idempotency_key.filter(|_| !args.dry_run) else { return Ok(None) };
    let all = catalogs(connection).await?;
    let Some(catalog) = all.iter().find(|catalog| catalog.name == args.catalog) else {
        return Ok(None);
    };
    let receipt = receipts::find(connection, catalog.catalog_id, key).await?;
    Ok(receipt.and_then(|receipt| receipt.request))
}

async fn find(
    connection: &mut Session,
    args: &DropArgs,
    known: &Known,
    settings: &Settings,
    span: &Span,
) -> anyhow::Result<Found> {
    let source_field_id = time_column(connection, args, known, settings).await?;
    let of_column = match &args.value_of {
        None => None,
        Some((path, value)) => match known.shape.leaf_by_path(path) {
            Some(column) => Some((column.field_id, value.as_str())),
            None => bail!(Usage(anyhow::anyhow!("the table has no column {path:?}"))),
        },
    };
    let now = clock::now(connection).await?;
    let keep = std::time::Duration::ZERO;
    let retention = Retention { source_field_id, keep, now: span.to.plus(LONGEST) };
    let judge = Judge::new(&known.book, retention);
    let finder =
        Finder { table: &known.identity, judge: &judge, scan_limits: &settings.scan_limits };
    let mut tuples: BTreeMap<(Option<i64>, StoredTuple), Counts> = BTreeMap::new();
    let mut add = |file: LiveFile| {
        let counts = file.counts();
        *tuples.entry((file.spec_id, file.tuple)).or_default() += counts;
    };
    if let Some(files) = finder.small_table(connection).await? {
        files.into_iter().for_each(&mut add);
    } else {
        let mut pages = pages(connection, finder, settings, span).await?;
        while let Some(files) = pages.next(connection).await? {
            files.into_iter().for_each(&mut add);
        }
    }
    let mut found = Found::default();
    for ((spec_id, tuple), counts) in tuples {
        let surely = |(column, value)| has_surely(&known.book, spec_id, &tuple, column, value);
        let why = match judge.place(spec_id, &tuple, span, now) {
            Place::Outside => continue,
            Place::Inside(range) if of_column.is_none_or(surely) => {
                let Some(spec_id) = spec_id else { continue };
                let (values, files) = (tuple.values, counts.files);
                found.inside.push(Inside { spec_id, values, range, files });
                continue;
            }
            Place::Inside(_) if is_another(known, spec_id, &tuple, of_column) => continue,
            Place::Inside(_) => "not certain to have the value of --where in all of their rows",
            Place::Partly => "only partly in the range",
            Place::Ambiguous => "their values may mean another time, or something else",
            Place::Unknown => "their time is unknown",
        };
        let left_out = found.left_out.entry(why).or_default();
        *left_out = (left_out.0 + 1, left_out.1 + counts.files);
    }
    Ok(found)
}

/// Whether a tuple certainly has another value than the one that is asked for.
fn is_another(
    known: &Known,
    spec_id: Option<i64>,
    tuple: &StoredTuple,
    of_column: Option<(i64, &str)>,
) -> bool {
    of_column.is_some_and(|(column, value)| !may_have(&known.book, spec_id, tuple, column, value))
}

/// The files of partitions that may lie in the range: by their partition values, or all of the table's where the
/// server has no index of these, or there are too many.
async fn pages<'a>(
    connection: &mut Session,
    finder: Finder<'a>,
    settings: &Settings,
    span: &Span,
) -> anyhow::Result<Pages<'a>> {
    if !has_lookup_index(connection).await? {
        return Ok(finder.in_pieces());
    }
    let Some(mut values) = list_expired(connection, &finder, settings.max_values).await? else {
        return Ok(finder.in_pieces());
    };
    values.retain(|value| finder.judge.may_meet(value.key_index, &value.text, span));
    Ok(finder.with_values(&values))
}

/// The column whose time the range is of: the only one by whose time the table was ever partitioned, or that of its
/// policy.
async fn time_column(
    connection: &mut Session,
    args: &DropArgs,
    known: &Known,
    settings: &Settings,
) -> anyhow::Result<i64> {
    let fields = known.book.specs.values().chain(known.book.disputed.values().flatten()).flatten();
    let of_time = fields.filter(|field| !known.book.transforms_of(field).is_empty());
    let mut columns: Vec<i64> = of_time.map(|field| field.source_field_id).collect();
    columns.sort_unstable();
    columns.dedup();
    match columns.as_slice() {
        [] => bail!("table {} was never partitioned by a time", name(args)),
        [only] => return Ok(*only),
        _ => {}
    }
    let live =
        find_table(connection, &args.catalog, &args.table.namespace, &args.table.table).await?;
    let policy = effective::look(connection, &live, settings.policy_limits).await?.ok().flatten();
    if let Some(policy) = policy.filter(|policy| columns.contains(&policy.source_field_id)) {
        return Ok(policy.source_field_id);
    }
    let names: Vec<_> = columns.iter().map(|column| known.shape.path_of(*column)).collect();
    bail!(
        "table {} was partitioned by the times of several columns ({}), and has no policy that says which one \
         counts: name the partitions by --partition",
        name(args),
        names.join(", ")
    )
}

/// Says that the range has no partition to drop. Nothing is sent, and the key is not used up.
pub async fn nothing(
    connection: &mut Session,
    args: &DropArgs,
    target: &TableRef,
) -> anyhow::Result<u8> {
    say("tailrace: nothing was dropped: no partition lies whole in the range\n");
    if args.output == Output::Json {
        let table = Known::read(connection, &args.catalog, &args.table).await?.identity;
        let head = current_watermark(connection, table.catalog_id).await?;
        let schema_version = schema_version(connection, table.catalog_id).await?;
        let answer = DropAnswer {
            snapshot_id: head.map_or(0, |head| head.through_snapshot),
            schema_version: schema_version.unwrap_or_default(),
            committed: false,
            replayed: false,
            undone: false,
            files_ended: 0,
            delete_files_ended: 0,
            records: 0,
            bytes: 0,
            partitions: Vec::new(),
        };
        let idempotency_key = args.idempotency_key.unwrap_or_else(Uuid::new_v4);
        let shown = Shown { table: target, idempotency_key, answer: &answer };
        out::show(args.output, &shown, |_| String::new())?;
    }
    Ok(DONE)
}

/// Refuses a list that was resolved on another table than the one that has the name now: by its specs the values may
/// mean another time.
pub async fn is_of_same_table(
    connection: &mut Session,
    args: &DropArgs,
    known: Option<&Known>,
) -> anyhow::Result<()> {
    let (Some(known), true) = (known, args.from.is_some()) else { return Ok(()) };
    let TableName { namespace, table } = &args.table;
    let live = find_table(connection, &args.catalog, namespace, table).await?;
    anyhow::ensure!(
        live.identity.table_uuid == known.identity.table_uuid,
        "table {} was replaced while the range was looked up; nothing was dropped, run the command again",
        name(args)
    );
    Ok(())
}
