//! The shared drop-commit: ends every live file of the given tuples, and its deletion vector,
//! in one snapshot. The daemon's pass and the explicit drop both end here.
//!
//! [`request`] says what a pass asks and what may come back, [`plan`] and [`prewarm`] are what happens
//! before the commit lock is taken, [`guard`] is what must hold under it, [`hold`] holds it, [`commit`]
//! does it; [`tuples`] goes on past what is locked.
//!
//! # What a tuple passes through
//! From the look-up of a pass to the UPDATE there are seven types:
//! 1. `Candidate`: a text whose range has expired;
//! 2. [`LiveFile`](crate::catalog::live_file::LiveFile): a file that was found by it;
//! 3. [`ExpiredTuple`](crate::sweep::expired::ExpiredTuple): its tuple, with all files of it;
//! 4. [`Round`](crate::sweep::round::Round): the tuples at hand;
//! 5. [`Batch`](crate::rules::batches::Batch): which of them go in one commit, by index;
//! 6. [`DropRequest`]: that commit, as it is asked for;
//! 7. [`DropWrite`](crate::catalog::drop_write::DropWrite): what planning finds, and what is written. An explicit
//!    drop and a truncate begin here.

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
