//! What the other tests stand on, against the catalog's contract.

pub mod lake;
pub mod standins;
