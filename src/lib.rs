//! tailrace: partition retention for hoglake tables.
//!
//! The crate's map, dependencies pointing downwards:
//!
//! | module | what it holds |
//! |---|---|
//! | [`demo`] | a private Postgres with a hoglake catalog, and stand-ins for the server's loops |

pub mod config;
pub mod demo;
