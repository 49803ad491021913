//! Simulates the server's truncate.

use crate::lake::{Commit, Result, Table, kind};

/// Ends all live files of a table, and their vectors, and returns the snapshot. It carries
/// both a deletion and an alteration, so no consumer can pass it without a new reading; the
/// schema version moves, the table's statistics do not.
///
/// Takes the commit lock for as long as the updates take.
pub async fn truncate(table: &Table) -> Result<i64> {
    let mut commit = Commit::begin(&table.catalog).await?;
    commit.check_table_live(table.table_id).await?;
    let snapshot_id = commit.ddl_snapshot("truncate").await?;
    table.end_all_files(&mut commit, snapshot_id).await?;
    for kind in [kind::DELETED, kind::TABLE_ALTERED] {
        commit.change(snapshot_id, kind, table.table_id).await?;
    }
    commit.finish().await?;
    Ok(snapshot_id)
}
