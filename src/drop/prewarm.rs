//! Warming: the pages that a commit will write to are read before it takes the commit lock.
//!
//! On a server that has them at hand this costs one look at a few files of the batch; where that
//! look finds pages that had to be read, all of the batch's are, in bounded statements. No
//! transaction stays open between them.

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

/// The longest that a batch is warmed. On a disk that slow what is left is read under the lock, and
/// where that takes too long, the next try finds more of it.
const LONGEST: Duration = Duration::from_secs(60);

/// What warming a batch did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Warmed {
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
pub async fn warm(
    connection: &mut Session,
    catalog_id: i64,
    files: &[(i64, i32)],
    vectors: &[PlannedVector],
) -> sqlx::Result<Warmed> {
    let mut warmed = Warmed::default();
    if files.is_empty() {
        return Ok(warmed);
    }
    let indexes = leaf_indexes(connection).await?;
    let file_ids: Vec<i64> = files.iter().map(|(id, _)| *id).collect();
    let vector_ids: Vec<i64> = vectors.iter().map(|vector| vector.delete_file_id).collect();
    let until = Instant::now() + LONGEST;
    for (rows, ids) in [(&FILES, file_ids), (&VECTORS, vector_ids)] {
        let warming = Warming { catalog_id, rows, indexes: &indexes, ids: &ids, until };
        match warming.run(connection, &mut warmed).await {
            Err(error) if Failure::of(&error) == Failure::StatementCancelled => break,
            other => other?,
        }
    }
    if warmed.rows > 0 {
        tracing::debug!(rows = warmed.rows, "pages were cold, and were read before the commit");
    }
    Ok(warmed)
}

struct Warming<'a> {
    catalog_id: i64,
    rows: &'static Rows,
    indexes: &'a [String],
    ids: &'a [i64],
    until: Instant,
}

impl Warming<'_> {
    async fn run(&self, connection: &mut Session, warmed: &mut Warmed) -> sqlx::Result<()> {
        let Warming { catalog_id, rows, indexes, ids, until } = *self;
        if ids.len() <= SAMPLE {
            return match ids {
                [] => Ok(()),
                few => read_pages(connection, catalog_id, rows, indexes, few).await,
            };
        }
        let sample: Vec<i64> = ids.iter().step_by(ids.len() / SAMPLE).copied().collect();
        let plan = explain_pages(connection, catalog_id, rows, indexes, &sample).await?;
        let read = blocks_read(&plan);
        warmed.sample_blocks += read;
        if read * ROWS_PER_COLD_PAGE < sample.len() as i64 {
            return Ok(());
        }
        for piece in ids.chunks(PIECE) {
            if Instant::now() >= until {
                break;
            }
            read_pages(connection, catalog_id, rows, indexes, piece).await?;
            warmed.rows += piece.len();
        }
        Ok(())
    }
}
