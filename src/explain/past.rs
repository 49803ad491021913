//! What ended files of a partition.

use super::report::Ending;
use crate::catalog::endings::{EndingRow, drops_of, endings};
use crate::catalog::session::Session;
use crate::catalog::tables::{Catalog, TableIdentity};
use crate::catalog::tuples::TupleOfSpec;
use crate::rules::instant::UtcInstant;
use crate::trace::{Asked, DropTrace, TracedPartition, trace};

/// So many snapshots are listed.
const ENDINGS: i64 = 10;

/// So many drops.
const DROPS: i64 = 5;

/// What was found.
pub struct Past {
    pub endings: Vec<Ending>,
    pub drops: Vec<DropTrace>,
}

/// Reads it: the newest first.
pub async fn read(
    connection: &mut Session,
    catalog: &Catalog,
    table: &TableIdentity,
    tuple: &TupleOfSpec,
    lookup_key: usize,
) -> anyhow::Result<Past> {
    let of = (table.catalog_id, table.table_id);
    let rows = endings(connection, of, tuple, lookup_key, ENDINGS).await?;
    let mut drops = Vec::new();
    for snapshot_id in drops_of(connection, of, tuple, DROPS).await? {
        let names = (table.namespace.as_str(), table.table.as_str());
        let asked = Asked { table: Some(names), before: snapshot_id + 1, limit: 1 };
        let traced = trace(connection, catalog, asked).await?.drops;
        let is_it = |drop: &DropTrace| {
            drop.snapshot_id == snapshot_id && drop.table_uuid == table.table_uuid
        };
        drops.extend(traced.into_iter().filter(is_it));
    }
    // The partition is asked about, and not what else a drop ended.
    for drop in &mut drops {
        let is_it = |one: &TracedPartition| {
            (one.spec_id, &one.partition_values) == (tuple.spec_id, &tuple.tuple.values)
        };
        if drop.partitions.iter().any(is_it) {
            drop.partitions.retain(is_it);
        }
    }
    Ok(Past { endings: rows.into_iter().map(ending).collect(), drops })
}

fn ending(row: EndingRow) -> Ending {
    let has = |kind: &str| row.kinds.iter().any(|known| known == kind);
    // The contract's changes ("The commit tail", "Changefeed").
    let kind = match (has("table_compacted"), has("table_deleted_from"), has("table_altered")) {
        (true, ..) => "compaction",
        (_, true, true) => "truncate",
        (_, true, false) => "drop",
        _ => "other",
    };
    Ending {
        snapshot_id: row.snapshot_id,
        at: row.at.map(UtcInstant::from),
        author: row.author,
        message: row.message,
        files: row.files,
        kind,
    }
}
