//! Prewarming: reads the pages that a commit will write to, before the commit lock is taken.
//!
//! First the pages of a sample of the batch are read. Where too many of these were not in the
//! server's memory, the pages of the whole batch are read, in bounded statements. The pages of a
//! small batch are read without a sample. No transaction stays open between the statements.

use std::time::{Duration, Instant};

use crate::catalog::errors::Failure;
use crate::catalog::prewarm::{
    FILES, Rows, VECTORS, blocks_read, explain_pages, leaf_indexes, read_pages,
};
use crate::catalog::session::Session;
use crate::catalog::vectors::PlannedVector;

/// How many rows are looked at to find out whether a batch is cold; a smaller one is simply read.
const SAMPLE: usize = 64;

/// How many rows one statement reads the pages of.
const PIECE: usize = 500;

/// A batch is cold if of so many rows of the sample one page had to be read.
const ROWS_PER_COLD_PAGE: i64 = 16;

/// The longest that a batch is prewarmed. On a disk that slow what is left is read under the lock, and
/// where that takes too long, the next try finds more of it.
const LONGEST: Duration = Duration::from_secs(60);

/// What prewarming a batch did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Prewarmed {
    /// Rows whose pages were read because the sample was cold.
    pub rows: usize,
    /// Blocks that the sample found missing.
    pub sample_blocks: i64,
}

/// Reads the pages of the files and vectors that a commit will end, if they are cold.
///
/// A file that is gone costs nothing. The session must not be in a transaction.
///
/// # Errors
/// As the driver reports them; not if a statement took too long, which only leaves pages cold.
pub async fn prewarm(
    connection: &mut Session,
    catalog_id: i64,
    files: &[(i64, i32)],
    vectors: &[PlannedVector],
) -> sqlx::Result<Prewarmed> {
    let mut prewarmed = Prewarmed::default();
    if files.is_empty() {
        return Ok(prewarmed);
    }
    let indexes = leaf_indexes(connection).await?;
    let file_ids: Vec<i64> = files.iter().map(|(id, _)| *id).collect();
    let vector_ids: Vec<i64> = vectors.iter().map(|vector| vector.delete_file_id).collect();
    let until = Instant::now() + LONGEST;
    for (rows, ids) in [(&FILES, file_ids), (&VECTORS, vector_ids)] {
        let prewarming = Prewarming { catalog_id, rows, indexes: &indexes, ids: &ids, until };
        match prewarming.run(connection, &mut prewarmed).await {
            Err(error) if Failure::of(&error) == Failure::StatementCancelled => break,
            other => other?,
        }
    }
    if prewarmed.rows > 0 {
        tracing::debug!(rows = prewarmed.rows, "pages were cold, and were read before the commit");
    }
    Ok(prewarmed)
}

struct Prewarming<'a> {
    catalog_id: i64,
    rows: &'static Rows,
    indexes: &'a [String],
    ids: &'a [i64],
    until: Instant,
}

impl Prewarming<'_> {
    async fn run(&self, connection: &mut Session, prewarmed: &mut Prewarmed) -> sqlx::Result<()> {
        let Prewarming { catalog_id, rows, indexes, ids, until } = *self;
        if ids.len() <= SAMPLE {
            return match ids {
                [] => Ok(()),
                few => read_pages(connection, catalog_id, rows, indexes, few).await,
            };
        }
        let sample: Vec<i64> = ids.iter().step_by(ids.len() / SAMPLE).copied().collect();
        let plan = explain_pages(connection, catalog_id, rows, indexes, &sample).await?;
        let read = blocks_read(&plan);
        prewarmed.sample_blocks += read;
        if read * ROWS_PER_COLD_PAGE < sample.len() as i64 {
            return Ok(());
        }
        for piece in ids.chunks(PIECE) {
            if Instant::now() >= until {
                break;
            }
            read_pages(connection, catalog_id, rows, indexes, piece).await?;
            prewarmed.rows += piece.len();
        }
        Ok(())
    }
}
