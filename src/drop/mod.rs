//! The shared drop-commit: ends every live file of the given tuples, and its deletion vector,
//! in one snapshot. The daemon's pass and the explicit drop both end here.
//!
//! [`request`] says what is asked and what may come back, [`plan`] and [`warm`] are what happens
//! before the commit lock is taken, [`hold`] holds it, [`commit`] does it.

pub mod commit;
pub mod hold;
pub mod plan;
pub mod request;
pub mod warm;

pub use commit::{drop_tuples, drop_tuples_unwarmed};
pub use request::{
    Attempt, DropError, DropOutcome, DropRequest, Late, LateRule, Limits, PolicyGuard, Receipt,
    Refusal,
};
