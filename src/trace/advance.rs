//! What a pass notes of drops whose objects are not all deleted yet.

use std::collections::BTreeSet;

use uuid::Uuid;

use crate::catalog::drop_lifecycle::unindexed::{
    ROWS, ROWS_OF_PASS, has_ended_index, left, passed_by_table,
};
use crate::catalog::drop_lifecycle::{
    OpenCatalog, Passed, note_gone, note_names, note_purged, noting, open_catalogs, passed,
    without_rows,
};
use crate::catalog::errors::{Failure, said};
use crate::catalog::session::Session;
use crate::events;
use crate::rules::instant::UtcInstant;

/// Notes, in every catalog, how far its drops have come by `now`. Only reads the catalogs; locks
/// nothing but rows of the drop history, and looks at a bounded number of drops of each catalog, the
/// oldest first, each by index. Two daemons may do it at once: what is noted is noted once. Nothing is
/// noted of the catalogs `but`, those that were restored among them: first the pass that has the lease
/// settles that. What is noted while one is being restored bears a time after the restore, and is taken back
/// then.
///
/// All catalogs are looked at together. Where that fails, each is by itself, so that one with which something
/// is the matter keeps no other from it.
///
/// # Errors
/// As the driver reports them, where that is no matter of one catalog; what was noted of other catalogs by
/// then stays.
pub async fn advance(
    connection: &mut Session,
    now: UtcInstant,
    but: &BTreeSet<i64>,
) -> sqlx::Result<()> {
    let has_index = has_ended_index(connection).await?;
    let mut open = open_catalogs(connection).await?;
    open.retain(|catalog| !but.contains(&catalog.catalog_id));
    if open.is_empty() {
        return Ok(());
    }
    match noted(connection, &open, has_index, now).await {
        Ok(()) => return Ok(()),
        Err(error) if Failure::of(&error) == Failure::ConnectionLost => return Err(error),
        Err(error) => tracing::debug!(%error, "drops of all catalogs were not looked at together"),
    }
    for catalog in &open {
        match noted(connection, std::slice::from_ref(catalog), has_index, now).await {
            Ok(()) => {}
            Err(error) if Failure::of(&error) == Failure::ConnectionLost => return Err(error),
            Err(error) => tracing::warn!(
                event = events::TRACE_FAILED,
                catalog_id = catalog.catalog_id,
                error = said(&error),
                "What became of the drops of a catalog could not be noted"
            ),
        }
    }
    Ok(())
}

/// Notes it of these catalogs, or of none of them.
async fn noted(
    connection: &mut Session,
    catalogs: &[OpenCatalog],
    has_index: bool,
    now: UtcInstant,
) -> sqlx::Result<()> {
    let mut transaction = noting(connection).await?;
    note_names(&mut transaction, catalogs).await?;
    let purged = match has_index {
        true => {
            let passed = passed(&mut transaction, catalogs).await?;
            without_rows(&mut transaction, &passed).await?
        }
        false => {
            let mut purged = Vec::new();
            for catalog in catalogs {
                let passed = passed_by_table(&mut transaction, catalog).await?;
                let without =
                    without_rows_unindexed(&mut transaction, catalog.catalog_id, &passed).await?;
                let without: BTreeSet<i64> = without.into_iter().collect();
                let is_purged = |drop: &&Passed| without.contains(&drop.snapshot_id);
                purged.extend(passed.iter().filter(is_purged).map(|drop| drop.drop_id));
            }
            purged
        }
    };
    if !purged.is_empty() {
        note_purged(&mut transaction, &purged, now).await?;
    }
    note_gone(&mut transaction, catalogs, now).await?;
    transaction.commit().await
}

/// As [`without_rows`], table by table, up to a number of rows in all. What a table is too large for
/// stays as it is. Where there are more tables than can be read, each pass begins with another one.
async fn without_rows_unindexed(
    connection: &mut Session,
    catalog_id: i64,
    passed: &[Passed],
) -> sqlx::Result<Vec<i64>> {
    let mut tables = by_table(passed.iter().map(|drop| (drop.table_id, drop.snapshot_id)));
    if !tables.is_empty() {
        let first = Uuid::new_v4().as_u128() % tables.len() as u128;
        tables.rotate_left(usize::try_from(first).unwrap_or(0));
    }
    let (mut purged, mut read) = (Vec::new(), 0_i64);
    for (table_id, snapshot_ids) in tables {
        if read >= ROWS_OF_PASS {
            break;
        }
        let left = left(connection, catalog_id, table_id, &snapshot_ids, ROWS).await?;
        purged.extend(snapshot_ids.into_iter().filter(|id| left.of(*id) == Some(0)));
        read += left.read;
    }
    Ok(purged)
}

/// Snapshots by table, the tables in the order in which they come first.
pub(super) fn by_table(drops: impl Iterator<Item = (i64, i64)>) -> Vec<(i64, Vec<i64>)> {
    let mut tables: Vec<(i64, Vec<i64>)> = Vec::new();
    for (table_id, snapshot_id) in drops {
        match tables.iter_mut().find(|(known, _)| *known == table_id) {
            Some((_, snapshot_ids)) => snapshot_ids.push(snapshot_id),
            None => tables.push((table_id, vec![snapshot_id])),
        }
    }
    tables
}
