//! tailrace: partition retention for hoglake tables.
//!
//! The crate's map. A module imports only modules that stand after it, and no two files import each other, but
//! for a file and those of its own folder: `tests/suite/architecture.rs` fails on an import that does.
//!
//! | module | what it holds |
//! |---|---|
//! | [`cli`] | the command line, one file per command |
//! | [`daemon`] | the tasks of `tailrace run`, their start and their end |
//! | [`http`] | the interface of the daemon: drops, policies, plans, passes, health, metrics |
//! | [`scheduler`] | when a pass runs; what follows from how it ended |
//! | [`metrics`] | what is counted |
//! | [`health`] | the heartbeat, written and read |
//! | [`doctor`] | what an operator should know before trusting it; compaction debt with and without the drop window |
//! | [`verify`] | whether the invariants of retention hold, read-only |
//! | [`specs`] | a table's partition specs as they are shown, and who trusted one |
//! | [`claims`] | compaction claims on files that are about to be dropped, beside the passes |
//! | [`sweep`] | one pass: who has work, lease, calendar, look-ups, commits, report; what a plan says |
//! | [`mod@trace`] | what became of each drop, noted by passes and read |
//! | [`feed`] | a table's changes between two snapshots, ended files included |
//! | [`explicit`] | the explicit drop of enumerated tuples, and truncate: guards, receipts |
//! | [`mod@drop`] | the shared drop-commit: guards, commit, receipt |
//! | [`installation`] | our own schema: migrations, and the check that it fits, which each session begins with |
//! | [`policy`] | what a policy is; which one is in force; where it is stored |
//! | [`catalog`] | the only place that knows `hog_*` tables: identities, specs, the finder of live files, the commit lock and tail |
//! | [`telemetry`] | the log |
//! | [`config`] | every setting, from every place that it can come from |
//! | [`events`] | the names of what the log tells |
//! | [`files`] | files that somebody else may have made or changed: opened, judged |
//! | [`rules`] | pure: expiry, transform, keep, batches, duty cycle, backoff |

pub mod catalog;
pub mod claims;
pub mod cli;
pub mod config;
pub mod daemon;
pub mod doctor;
pub mod drop;
pub mod events;
pub mod explicit;
pub mod feed;
pub mod files;
pub mod health;
pub mod http;
pub mod installation;
pub mod metrics;
pub mod policy;
pub mod rules;
pub mod scheduler;
pub mod specs;
pub mod sweep;
pub mod telemetry;
pub mod trace;
pub mod verify;
