//! Where it is stored: `tailrace.calendar`. Rows are written only in the session that holds the catalog's
//! lease.

mod read;
mod write;

pub use read::{all, due, has_more_values, upcoming};
pub use write::{clear, end_far_pauses, end_pauses, fold_into_days, put, remove, remove_due, set};
