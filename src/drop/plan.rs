//! Plans a drop before the commit lock is taken: finds the files and vectors that the drop ends.

use std::borrow::Cow;
use std::collections::HashSet;

use super::prewarm::prewarm;
use super::request::{DropRequest, Late, LateRule};
use crate::catalog::busy::prepare_busy;
use crate::catalog::commit_guards::prepare_look;
use crate::catalog::commit_tail::prepare_write;
use crate::catalog::drop_write::DropWrite;
use crate::catalog::evidence::{PIECE, evidence_of};
use crate::catalog::finder::tuples::files_of;
use crate::catalog::restore::outset;
use crate::catalog::session::Session;
use crate::catalog::vectors::live_vectors;

/// Adds the files that were found after the outset was read to a drop, with their vectors, and prewarms the
/// pages that the write will touch ([`prewarm`]). `with_vector` are the files that may have a vector. A
/// vector that is registered later has an id at or above the counter.
pub async fn complete(
    session: &mut Session,
    drop: &mut DropWrite<'_>,
    mut files: Vec<(i64, i32)>,
    with_vector: &[(i64, i32)],
    is_prewarmed: bool,
) -> sqlx::Result<()> {
    let counter = drop.outset.counter;
    files.retain(|(id, _)| *id < counter);
    files.sort_unstable();
    files.dedup();
    let is_planned = |(id, _): &&(i64, i32)| *id < counter;
    let with_vector: Vec<_> = with_vector.iter().filter(is_planned).copied().collect();
    let mut vectors = live_vectors(session, drop.catalog_id, &with_vector).await?;
    vectors.retain(|vector| vector.delete_file_id < counter);
    (drop.files, drop.vectors) = (files, vectors);
    if is_prewarmed {
        prewarm(session, drop.catalog_id, &drop.files, &drop.vectors).await?;
    }
    Ok(())
}

/// Finds the files of a request without the commit lock, and has the server parse every statement
/// that is sent under the lock. `None` if the catalog is gone.
pub async fn of_request<'a>(
    session: &mut Session,
    request: &DropRequest<'a>,
    busy_first: bool,
    is_prewarmed: bool,
) -> sqlx::Result<Option<DropWrite<'a>>> {
    let table = request.table;
    prepare_look(session).await?;
    prepare_write(session).await?;
    if busy_first {
        prepare_busy(session).await?;
    }
    // Read first: see `DropWrite::outset`.
    let Some(outset) = outset(session, table.catalog_id).await? else { return Ok(None) };
    let mut files = request.found.to_vec();
    if !request.is_piece {
        let (catalog_id, table_id) = (table.catalog_id, table.table_id);
        let (tuples, lookup_keys, from) =
            (request.tuples, request.lookup_keys, request.found_below);
        let mut newer =
            files_of(session, catalog_id, table_id, tuples, lookup_keys, from, i64::MAX).await?;
        newer.retain(|(id, _)| *id < outset.counter);
        files.extend(examined(session, request, newer).await?);
    }
    let ambiguous = (0_i32..).zip(request.late.map_or(&[][..], |late| late.ambiguous));
    let mut drop = DropWrite {
        tuples: Cow::Borrowed(request.tuples),
        is_piece: request.is_piece,
        without_late: ambiguous.filter(|(_, doubt)| **doubt).map(|(number, _)| number).collect(),
        late_bound: request.late.and_then(|late| late.rule.bound()),
        examined_below: request.found_below,
        fence: request.fence,
        author: request.author,
        message: request.message,
        policy_revision: request.policy.as_ref().map(|policy| policy.revision),
        ..DropWrite::of_nothing((table.catalog_id, table.table_id, table.table_uuid), outset)
    };
    let all = files.clone();
    complete(session, &mut drop, files, &all, is_prewarmed).await?;
    Ok(Some(drop))
}

/// Those of the files that are not in `request.found` which the late rule allows to end, by their
/// own keys.
async fn examined(
    session: &mut Session,
    request: &DropRequest<'_>,
    mut newer: Vec<(i64, i32)>,
) -> sqlx::Result<Vec<(i64, i32)>> {
    let Some(Late { rule: LateRule { field_id, rule }, ambiguous }) = request.late else {
        return Ok(newer);
    };
    let is_ambiguous = |number: i32| {
        usize::try_from(number).ok().and_then(|at| ambiguous.get(at)).is_none_or(|doubt| *doubt)
    };
    let found: HashSet<i64> = request.found.iter().map(|(id, _)| *id).collect();
    newer.retain(|(id, number)| !found.contains(id) && !is_ambiguous(*number));
    let Some(field_id) = field_id else { return Ok(newer) };
    let ids: Vec<i64> = newer.iter().map(|(id, _)| *id).collect();
    let mut stay = HashSet::new();
    for piece in ids.chunks(PIECE) {
        let catalog_id = request.table.catalog_id;
        let files = evidence_of(session, catalog_id, piece, Some(field_id)).await?;
        stay.extend(files.iter().filter(|file| rule.is_newer(file)).map(|file| file.data_file_id));
    }
    newer.retain(|(id, _)| !stay.contains(id));
    Ok(newer)
}
