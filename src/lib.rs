//! tailrace: partition retention for hoglake tables.
//!
//! The crate's map, dependencies pointing downwards:
//!
//! | module | what it holds |
//! |---|---|
//! | [`demo`] | a private Postgres with a hoglake catalog, and stand-ins for the server's loops |
//! | [`drop`] | the shared drop-commit: guards, commit, receipt |
//! | [`policy`] | what a policy is; where it is stored |
//! | [`catalog`] | the only place that knows `hog_*` tables: identities, specs, discovery, the commit lock and tail |
//! | [`window`] | policy + now -> what is expired, what will be and when (pure) |
//! | [`transform`] | stored partition text <-> the time range it covers (pure) |
//! | [`instant`] | instants and calendar arithmetic in UTC (pure) |

pub mod catalog;
pub mod demo;
pub mod drop;
pub mod instant;
pub mod policy;
pub mod transform;
pub mod window;
