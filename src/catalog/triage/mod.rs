//! What a pass asks before it works on any table: which tables have a policy, and which of them and of their
//! catalogs may have changed since the last pass. Each statement covers all catalogs at once, so the number of
//! statements does not grow with the number of catalogs. [`crate::sweep::triage`] decides what follows from
//! the answers.
//!
//! No statement here needs a lease. Those that write ([`catalogs::note_catalogs`],
//! [`shapes::note_unchanged`]) write the same whoever runs them and however often, and they change nothing
//! that a session with the lease wrote meanwhile.

pub mod catalogs;
pub mod outcome;
pub mod shapes;
pub mod tables;
pub mod work;
