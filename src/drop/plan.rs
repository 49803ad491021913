//! What a drop finds before it takes the commit lock.

use std::borrow::Cow;
use std::collections::HashSet;

use super::request::{DropRequest, Late, LateRule};
use super::warm::warm;
use crate::catalog::busy::prepare_busy;
use crate::catalog::discovery::TupleOfSpec;
use crate::catalog::evidence::{PIECE, evidence_of};
use crate::catalog::files::files_of;
use crate::catalog::guard::prepare_read;
use crate::catalog::restore::{Outset, outset};
use crate::catalog::session::Session;
use crate::catalog::tail::prepare_write;
use crate::catalog::vectors::{PlannedVector, live_vectors};

/// What was found outside the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The files, as (file id, index of the tuple), by ascending id.
    pub files: Vec<(i64, i32)>,
    /// Their live vectors.
    pub vectors: Vec<PlannedVector>,
    /// What was read before anything was looked for. Nothing of the plan has an id at or above the counter:
    /// what has is found by its own key under the lock. So all of the plan was committed up to the head, and
    /// where that is still there then, no id of the plan was given out a second time.
    pub outset: Outset,
}

impl Plan {
    /// Completes a list of files that was found after the counter was read: finds their vectors.
    /// `with_vector` are the files that may have a
    /// vector; one that is registered from here on has an id at or above the counter.
    pub async fn of_files(
        connection: &mut Session,
        catalog_id: i64,
        mut files: Vec<(i64, i32)>,
        with_vector: &[(i64, i32)],
        outset: Outset,
    ) -> sqlx::Result<Self> {
        files.retain(|(id, _)| *id < outset.counter);
        files.sort_unstable();
        files.dedup();
        let is_planned = |(id, _): &&(i64, i32)| *id < outset.counter;
        let with_vector: Vec<_> = with_vector.iter().filter(is_planned).copied().collect();
        let mut vectors = live_vectors(connection, catalog_id, &with_vector).await?;
        vectors.retain(|vector| vector.delete_file_id < outset.counter);
        Ok(Plan { files, vectors, outset })
    }

    /// Has the pages that the write will touch in the server's memory, as [`warm`] says.
    pub async fn warm(&self, connection: &mut Session, catalog_id: i64) -> sqlx::Result<()> {
        warm(connection, catalog_id, &self.files, &self.vectors).await.map(|_| ())
    }

    /// Finds what a request is about, without any lock, and has every statement parsed that is sent
    /// under it; `None` if the catalog is gone.
    pub async fn of_request(
        connection: &mut Session,
        request: &DropRequest<'_>,
        busy_first: bool,
    ) -> sqlx::Result<Option<Self>> {
        let table = request.table;
        prepare_read(connection).await?;
        prepare_write(connection).await?;
        if busy_first {
            prepare_busy(connection).await?;
        }
        // Read first: see `Plan::outset`.
        let Some(outset) = outset(connection, table.catalog_id).await? else {
            return Ok(None);
        };
        let mut files = request.found.to_vec();
        if !request.is_piece {
            let mut newer = files_of(
                connection,
                table.catalog_id,
                table.table_id,
                request.tuples,
                request.lead,
                request.found_below,
                i64::MAX,
            )
            .await?;
            newer.retain(|(id, _)| *id < outset.counter);
            files.extend(examined(connection, request, newer).await?);
        }
        let all = files.clone();
        Self::of_files(connection, table.catalog_id, files, &all, outset).await.map(Some)
    }
}

/// Those of the files beside `request.found` that its rule lets go, by their own keys.
async fn examined(
    connection: &mut Session,
    request: &DropRequest<'_>,
    mut newer: Vec<(i64, i32)>,
) -> sqlx::Result<Vec<(i64, i32)>> {
    let Some(Late { rule: LateRule { field_id, rule }, doubtful }) = request.late else {
        return Ok(newer);
    };
    let is_doubtful = |number: i32| {
        usize::try_from(number).ok().and_then(|at| doubtful.get(at)).is_none_or(|doubt| *doubt)
    };
    let found: HashSet<i64> = request.found.iter().map(|(id, _)| *id).collect();
    newer.retain(|(id, number)| !found.contains(id) && !is_doubtful(*number));
    let Some(field_id) = field_id else { return Ok(newer) };
    let ids: Vec<i64> = newer.iter().map(|(id, _)| *id).collect();
    let mut stay = HashSet::new();
    for piece in ids.chunks(PIECE) {
        let catalog_id = request.table.catalog_id;
        let files = evidence_of(connection, catalog_id, piece, Some(field_id)).await?;
        stay.extend(files.iter().filter(|file| rule.is_newer(file)).map(|file| file.data_file_id));
    }
    newer.retain(|(id, _)| !stay.contains(id));
    Ok(newer)
}

/// What is asked for in the end: tuples, and files and vectors by index into them.
pub struct Asked<'a> {
    /// The tuples.
    pub tuples: Cow<'a, [TupleOfSpec]>,
    /// Their files.
    pub files: Cow<'a, [(i64, i32)]>,
    /// Their vectors.
    pub vectors: Cow<'a, [PlannedVector]>,
    /// Tuples of which no late file is ended.
    pub without_late: Vec<i32>,
}

impl<'a> Asked<'a> {
    /// The tuples that are not busy and what is theirs, renumbered. A busy tuple is not asked for at
    /// all, so that its late files stay with it.
    pub fn without_busy(request: &DropRequest<'a>, plan: &'a Plan, busy: &[i32]) -> Self {
        let tuples = request.tuples;
        let doubtful = request.late.map_or(&[][..], |late| late.doubtful);
        let doubtful = (0_i32..).zip(doubtful).filter(|(_, doubt)| **doubt).map(|(no, _)| no);
        if busy.is_empty() {
            return Asked {
                tuples: Cow::Borrowed(tuples),
                files: Cow::Borrowed(&plan.files),
                vectors: Cow::Borrowed(&plan.vectors),
                without_late: doubtful.collect(),
            };
        }
        let free: Vec<i32> = (0_i32..).take(tuples.len()).filter(|no| !busy.contains(no)).collect();
        let free_tuples = tuples.iter().zip(0_i32..).filter(|(_, no)| free.contains(no));
        let renumbered =
            |no: i32| free.binary_search(&no).ok().and_then(|at| i32::try_from(at).ok());
        let files = plan.files.iter().filter_map(|(id, no)| Some((*id, renumbered(*no)?)));
        let vectors = plan.vectors.iter().filter_map(|vector| {
            Some(PlannedVector { tuple_no: renumbered(vector.tuple_no)?, ..*vector })
        });
        Asked {
            tuples: free_tuples.map(|(tuple, _)| tuple.clone()).collect(),
            files: files.collect(),
            vectors: vectors.collect(),
            without_late: doubtful.filter_map(renumbered).collect(),
        }
    }
}
