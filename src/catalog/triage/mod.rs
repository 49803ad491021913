//! What a pass asks before it works on anything: which tables are governed, and what of them and of their
//! catalogs may have come up since the last pass. Each statement is over all catalogs at once, so their
//! number does not grow with what is there; what follows from the answers,
//! [`crate::sweep::triage`] decides.
//!
//! None of them asks for a lease. They read, or write what says the same whoever writes it, and how often
//! ([`catalogs::note_catalogs`], [`shapes::note_unchanged`]): what a session with the lease
//! wrote meanwhile is left alone.

pub mod catalogs;
pub mod outcome;
pub mod shapes;
pub mod tables;
pub mod work;
