//! What became of each drop: retained for older snapshots, purged, queued or gone, and since when.
//!
//! A pass notes in the history how far each drop has come ([`advance`](advance())). [`trace()`] reads that
//! and says what holds each drop up now ([`state`]). [`crate::catalog::drop_lifecycle`] argues why the notes
//! are true.

mod advance;
mod report;
pub mod state;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use anyhow::{Context, ensure};

pub use advance::advance;
use advance::by_table;
pub use report::{DropTrace, Drops, NamedBy, Naming, StuckObject, TraceReport, TracedPartition};
use state::Stage;

use crate::catalog::clock;
use crate::catalog::drop_lifecycle::queue::{files_left, queue};
use crate::catalog::drop_lifecycle::read::{
    DropRow, FloorRules, drops, floor_rules, newest, not_gone, reading, uuids,
};
use crate::catalog::drop_lifecycle::unindexed::{ROWS, has_ended_index, left};
use crate::catalog::live_file::Counts;
use crate::catalog::removal_queue::{has_path_indexes, stuck};
use crate::catalog::restore::restored;
use crate::catalog::session::Session;
use crate::catalog::specs::spec_book;
use crate::catalog::tables::Catalog;
use crate::catalog::tuples::TupleOfSpec;
use crate::rules::expiry::{Judge, Retention};
use crate::rules::instant::UtcInstant;

/// The most drops that are told at once.
pub const MOST: i64 = 1_000;

/// Which drops of a catalog are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Namespace and name of the table; all drops of the catalog if not given.
    pub table: Option<(&'a str, &'a str)>,
    /// Only drops whose snapshot is below this one.
    pub before: i64,
    /// So many, the newest first; never more than [`MOST`], but for drops of one snapshot, which come
    /// together.
    pub limit: i64,
}

/// What became of a catalog's drops, as of one moment. Writes nothing, locks nothing; what it
/// costs is bounded by the number of drops that are listed, not by the size of any table.
///
/// # Errors
/// The catalog is gone, or there is no table of that name and no drop of one that was, in words;
/// else as the driver reports them.
pub async fn trace(
    connection: &mut Session,
    catalog: &Catalog,
    asked: Asked<'_>,
) -> anyhow::Result<TraceReport> {
    let now = clock::now(connection).await?;
    let has_index = has_ended_index(connection).await?;
    let by_path = has_path_indexes(connection).await?;
    let mut transaction = reading(connection).await?;
    let report = read(&mut transaction, catalog, asked, (has_index, by_path), now).await?;
    transaction.commit().await?;
    Ok(report)
}

async fn read(
    connection: &mut Session,
    catalog: &Catalog,
    asked: Asked<'_>,
    (has_index, by_path): (bool, bool),
    now: UtcInstant,
) -> anyhow::Result<TraceReport> {
    let catalog_id = catalog.catalog_id;
    let rules = floor_rules(connection, catalog_id)
        .await?
        .with_context(|| format!("there is no catalog {:?}", catalog.name))?;
    let tables = match asked.table {
        None => None,
        Some((namespace, table)) => {
            let found = uuids(connection, catalog_id, namespace, table).await?;
            ensure!(
                !found.is_empty(),
                "there is no table {namespace}.{table} in catalog {:?}, and no drop of one that was",
                catalog.name
            );
            Some(found)
        }
    };
    let limit = asked.limit.clamp(1, MOST);
    let restored = restored(connection, catalog_id).await?;
    let restored = restored.as_ref();
    let ids = newest(connection, catalog_id, tables.as_deref(), asked.before, limit).await?;
    let rows = drops(connection, catalog_id, restored, &ids).await?;
    let left = rows_left(connection, catalog_id, &rows, &rules, has_index).await?;
    let marks = rows.iter().filter_map(|drop| drop.noted.purged).map(|(_, mark)| mark);
    let mut queue = queue(connection, catalog_id, marks).await?;
    let stuck = stuck(connection, catalog_id, by_path).await?;
    queue.stuck = stuck.iter().map(|stuck| stuck.removal_id).collect();
    let (not_gone, oldest_not_gone) = not_gone(connection, catalog_id, restored).await?;
    let mut report = TraceReport {
        catalog: catalog.name.clone(),
        as_of: now,
        floor: rules.floor,
        head: rules.head,
        snapshot_retention_seconds: rules.retention_seconds,
        undrained: queue.undrained,
        stuck: stuck.into_iter().map(|stuck| StuckObject::of(stuck, by_path)).collect(),
        not_gone,
        oldest_not_gone,
        drops: Vec::with_capacity(rows.len()),
        next_before: rows.last().map(|drop| drop.snapshot_id).filter(|_| ids.len() as i64 >= limit),
    };
    let mut judges = BTreeMap::new();
    for mut row in rows {
        let judge = match judges.entry(row.table_id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let book = spec_book(connection, catalog_id, row.table_id).await?;
                // It is there to show values to a person: no policy, no decision.
                let nothing = Retention { source_field_id: 0, keep: Duration::ZERO, now };
                new.insert(Judge::new(&book, nothing))
            }
        };
        let files_left = left.get(&row.snapshot_id).copied().filter(|_| !row.is_undone);
        let (stage, held_by) = state::judge(&row, &rules, files_left, &queue, now);
        if matches!(stage, Stage::Retained | Stage::Purging) {
            (row.noted.purged, row.noted.gone_at) = (None, None);
        }
        report.drops.push(DropTrace {
            partitions: partitions(&row, judge),
            files_left: match stage {
                Stage::Retained => Some(row.counts.files),
                Stage::Purging => files_left,
                Stage::Queued | Stage::Gone => Some(0),
                Stage::Undone => None,
            },
            held_by,
            ..DropTrace::of(row, stage)
        });
    }
    Ok(report)
}

fn partitions(row: &DropRow, judge: &Judge) -> Vec<TracedPartition> {
    let told = |(tuple, counts): &(TupleOfSpec, Counts)| TracedPartition {
        spec_id: tuple.spec_id,
        partition_values: tuple.tuple.values.clone(),
        display: judge.display(Some(tuple.spec_id), &tuple.tuple),
        counts: *counts,
    };
    row.partitions.iter().map(told).collect()
}

/// By snapshot, how many rows are left of the drops that the floor has passed. On a server without the
/// index, only of those of which no pass has noted that none is, and only where the table is small enough to
/// tell.
async fn rows_left(
    connection: &mut Session,
    catalog_id: i64,
    rows: &[DropRow],
    rules: &FloorRules,
    has_index: bool,
) -> sqlx::Result<BTreeMap<i64, i64>> {
    let in_question = rows.iter().filter(|drop| {
        drop.snapshot_id <= rules.floor
            && !drop.is_undone
            && (has_index || drop.noted.purged.is_none())
    });
    let ids = in_question.map(|drop| (drop.table_id, drop.snapshot_id));
    if has_index {
        let ids: Vec<i64> = ids.map(|(_, snapshot_id)| snapshot_id).collect();
        return files_left(connection, catalog_id, &ids).await;
    }
    let mut told = BTreeMap::new();
    for (table_id, snapshot_ids) in by_table(ids) {
        let left = left(connection, catalog_id, table_id, &snapshot_ids, ROWS).await?;
        told.extend(snapshot_ids.into_iter().filter_map(|id| Some((id, left.of(id)?))));
    }
    Ok(told)
}
