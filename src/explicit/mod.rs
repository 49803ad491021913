//! The explicit drop: an enumerated list of partition tuples, or a whole table, in one atomic
//! commit, guarded, and safe to retry. It ends in the same drop-commit as the daemon's pass.
//!
//! [`call`] says what can be asked and what is answered, [`problem`] what can be wrong,

//! [`execute`] does it.

pub mod call;
pub mod object;
pub mod problem;

use sqlx::PgConnection;

use call::{DropAnswer, DropBody, TableRef, TruncateAnswer, TruncateBody};
use problem::Problem;

/// What bounds an explicit drop.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The waits and the hold.
    pub limits: crate::drop::Limits,
    /// `drop.max_files`: more files than this are not ended in one commit.
    pub max_files: i64,
}

/// Drops the partitions of the body in one commit.
pub async fn drop_partitions(
    _connection: &mut PgConnection,
    _table: &TableRef,
    _body: &DropBody,
    _author: &str,
    _bounds: &Bounds,
) -> Result<DropAnswer, Problem> {
    Err(Problem::Internal)
}

/// Drops all files of a table in one commit.
pub async fn truncate(
    _connection: &mut PgConnection,
    _table: &TableRef,
    _expected_table_uuid: Option<uuid::Uuid>,
    _body: &TruncateBody,
    _author: &str,
    _bounds: &Bounds,
) -> Result<TruncateAnswer, Problem> {
    Err(Problem::Internal)
}
