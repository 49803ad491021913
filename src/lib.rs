//! tailrace: partition retention for hoglake tables.
//!
//! The crate's map, dependencies pointing downwards:
//!
//! | module | what it holds |
//! |---|---|
//! | [`daemon`] | the tasks of `tailrace run`, their start and their end |
//! | [`scheduler`] | when a pass runs; what follows from how it ended |
//! | [`health`] | the heartbeat, written and read |
//! | [`config`] | every setting, from every place that it can come from |
//! | [`telemetry`], [`events`] | the log, and the names of what it tells |
//! | [`demo`] | a private Postgres with a hoglake catalog, and stand-ins for the server's loops |

pub mod config;
pub mod daemon;
pub mod demo;
pub mod events;
pub mod health;
pub mod scheduler;
pub mod telemetry;
