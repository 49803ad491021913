//! The drop that passes and explicit drops share: it ends every live file of the given tuples, and
//! the deletion vector of each, in one snapshot.
//!
//! | module | what it does |
//! |---|---|
//! | [`request`] | what a pass asks for, and the possible results |
//! | [`plan`], [`prewarm`] | the work before the commit lock is taken |
//! | [`guard`] | the conditions that are checked under the commit lock |
//! | [`hold`] | holds the commit lock |
//! | [`commit`] | makes one commit |
//! | [`tuples`] | leaves out tuples with locked rows, and commits the others |
//!
//! # The types of a tuple, from the look-up of a pass to the UPDATE
//! 1. `Candidate`: a partition value whose range has expired;
//! 2. [`LiveFile`](crate::catalog::live_file::LiveFile): a file that was found by the value;
//! 3. [`ExpiredTuple`](crate::sweep::expired::ExpiredTuple): the file's tuple, with all files of
//!    it;
//! 4. [`ExpiredBatch`](crate::sweep::expired_batch::ExpiredBatch): the tuples that were found so
//!    far;
//! 5. [`Batch`](crate::rules::batches::Batch): the tuples of one commit, by their indexes;
//! 6. [`DropRequest`]: the request for that commit;
//! 7. [`DropWrite`](crate::catalog::drop_write::DropWrite): what planning finds, and what is
//!    written. An explicit drop and a truncate begin here.

pub mod commit;
pub mod guard;
pub mod hold;
pub mod plan;
pub mod prewarm;
pub mod request;
pub mod tuples;

pub use guard::{PolicyGuard, Refusal};
pub use request::{Attempt, DropError, DropOutcome, DropRequest, Late, LateRule, Limits, Receipt};
pub use tuples::drop_tuples;
#[cfg(feature = "testing")]
pub use tuples::drop_tuples_unwarmed;
