//! tailrace: partition retention for hoglake tables.
//!
//! The crate's map, dependencies pointing downwards:
//!
//! | module | what it holds |
//! |---|---|
//! | [`demo`] | a private Postgres with a hoglake catalog, and stand-ins for the server's loops |
//! | [`window`] | policy + now -> what is expired, what will be and when (pure) |
//! | [`transform`] | stored partition text <-> the time range it covers (pure) |
//! | [`instant`] | instants and calendar arithmetic in UTC (pure) |

pub mod demo;
pub mod instant;
pub mod transform;
pub mod window;
