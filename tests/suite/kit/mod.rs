//! Tests of the kit, which the other tests use, against the catalog's contract.

pub mod lake;
pub mod simulated_loops;
