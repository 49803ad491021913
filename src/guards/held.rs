//! Which live partitions of a table holds keep, and what they amount to.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use super::hold::Hold;
use crate::catalog::checks::drops::recorded_drops;
use crate::catalog::finder::tuples::{Search, count_files};
use crate::catalog::live_file::Counts;
use crate::catalog::session::Session;
use crate::catalog::specs::spec_book;
use crate::catalog::table_files::{PIECE, Place, next_piece};
use crate::catalog::tuples::TupleOfSpec;
use crate::rules::expiry::{SpecBook, StoredTuple};
use crate::rules::hold::{Held, HeldPartition, HoldScope};
use crate::rules::instant::UtcInstant;

/// A drop is looked at that was made so long before a hold.
const JUST_BEFORE: Duration = Duration::from_secs(3600);

/// So many of the newest drops of the catalog are looked at.
const DROPS: i64 = 1_000;

/// What a hold keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Keeps {
    /// How many partitions with live files; files of no partition count as one.
    pub partitions: i64,
    /// Their files, vectors, rows and bytes.
    #[serde(flatten)]
    pub counts: Counts,
    /// Whether all of the table was looked at; else there may be more.
    pub complete: bool,
}

/// A partition that a hold keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct KeptPartition {
    /// Which; null for files of no spec.
    pub partition: Option<HeldPartition>,
    /// Its files, vectors, rows and bytes.
    #[serde(flatten)]
    pub counts: Counts,
}

/// A partition that a hold would have kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DroppedBefore {
    /// Which.
    #[serde(flatten)]
    pub partition: HeldPartition,
    /// The snapshot of the drop, in which the partition's files ended.
    pub snapshot_id: i64,
    /// When that was.
    pub dropped_at: DateTime<Utc>,
}

/// The live partitions that a hold keeps, by spec and values, as far as they are found in `limit`; whether all of
/// the table was looked at.
///
/// Listed partitions are looked up. For another hold the table's files are read in pieces, each a statement of its
/// own; what is written meanwhile may be missed.
pub async fn kept_by(
    connection: &mut Session,
    hold: &Hold,
    limit: Duration,
) -> sqlx::Result<(Vec<KeptPartition>, bool)> {
    let (catalog_id, table_id) = (hold.catalog_id, hold.table_id);
    let book = spec_book(connection, catalog_id, table_id).await?;
    if let HoldScope::Partitions(partitions) = &hold.scope {
        let (tuples, lookup_keys): (Vec<_>, Vec<_>) =
            partitions.iter().map(|partition| tuple_of(partition, &book)).unzip();
        let search =
            Search { catalog_id, table_id, tuples: &tuples, lookup_keys: &lookup_keys, from_id: 0 };
        let counts = count_files(connection, &search).await?;
        let kept = counts.into_iter().filter_map(|(at, counts)| {
            let partition = partitions.get(usize::try_from(at).ok()?)?.clone();
            (counts.files > 0).then_some(KeptPartition { partition: Some(partition), counts })
        });
        return Ok((kept.collect(), true));
    }
    let held = Held::of([(hold.hold_id, hold.scope.clone())]);
    let mut kept: BTreeMap<Option<HeldPartition>, Counts> = BTreeMap::new();
    let (mut after, began) = (Place::START, Instant::now());
    let is_whole = loop {
        let (files, next) = next_piece(connection, catalog_id, table_id, after, PIECE).await?;
        for file in files {
            if held.by(&book, file.spec_id, &file.tuple).is_some() {
                let counts = file.counts();
                let values = file.tuple.values;
                let partition = file.spec_id.map(|spec_id| HeldPartition { spec_id, values });
                *kept.entry(partition).or_default() += counts;
            }
        }
        match next {
            None => break true,
            Some(_) if began.elapsed() > limit => break false,
            Some(next) => after = next,
        }
    };
    let kept = kept.into_iter().map(|(partition, counts)| KeptPartition { partition, counts });
    Ok((kept.collect(), is_whole))
}

/// The sum over what [`kept_by`] found.
pub fn sum(kept: &[KeptPartition], complete: bool) -> Keeps {
    let mut keeps = Keeps { partitions: kept.len() as i64, complete, ..Keeps::default() };
    kept.iter().for_each(|one| keeps.counts += one.counts);
    keeps
}

/// The partitions that a hold would have kept and that were dropped within the hour before it, newest first.
pub async fn dropped_before(
    connection: &mut Session,
    hold: &Hold,
) -> sqlx::Result<Vec<DroppedBefore>> {
    let (catalog_id, table_id) = (hold.catalog_id, hold.table_id);
    let book = spec_book(connection, catalog_id, table_id).await?;
    let held = Held::of([(hold.hold_id, hold.scope.clone())]);
    let drops = recorded_drops(connection, catalog_id, 0, i64::MAX, DROPS).await?;
    let is_recent = |at: DateTime<Utc>| UtcInstant::from(at).plus(JUST_BEFORE) >= hold.held_at;
    let mut found = Vec::new();
    for drop in drops {
        if drop.table_id != table_id || !is_recent(drop.dropped_at) {
            continue;
        }
        for TupleOfSpec { spec_id, tuple } in drop.tuples.into_iter().flatten() {
            if held.by(&book, Some(spec_id), &tuple).is_some() {
                found.push(DroppedBefore {
                    partition: HeldPartition { spec_id, values: tuple.values },
                    snapshot_id: drop.snapshot_id,
                    dropped_at: drop.dropped_at,
                });
            }
        }
    }
    Ok(found)
}

/// The tuple, and the position of a value by which its files are found: a time or a column as it is where it has
/// one, for many files share a bucket or a null.
fn tuple_of(partition: &HeldPartition, book: &SpecBook) -> (TupleOfSpec, usize) {
    let HeldPartition { spec_id, values } = partition;
    let fields = book.specs.get(spec_id).filter(|fields| fields.len() == values.len());
    let keys = match fields {
        Some(fields) => fields.iter().map(|field| field.key_index).collect(),
        None => (0..).take(values.len()).collect(),
    };
    let is_bucket = |at: usize| fields.is_some_and(|fields| fields[at].transform == "bucket");
    let cost = |at: &usize| (values[*at].is_none(), is_bucket(*at));
    let lookup_key = (0..values.len()).min_by_key(cost).unwrap_or(0);
    let tuple = StoredTuple { keys, values: values.clone() };
    (TupleOfSpec { spec_id: *spec_id, tuple }, lookup_key)
}
