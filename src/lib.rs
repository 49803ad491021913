//! tailrace: partition retention for hoglake tables.
//!
//! The table lists the modules of the crate. A module imports only modules below it in the table,
//! and no two files import each other, except a file and the files of its own folder. The test
//! `tests/suite/architecture.rs` fails on any other import.
//!
//! | module | what it holds |
//! |---|---|
//! | [`cli`] | the command line, one file per command |
//! | [`daemon`] | the tasks of `tailrace run`, their start and their end |
//! | [`http`] | the interface of the daemon: drops, policies, plans, passes, health, metrics |
//! | [`scheduler`] | when a pass runs; what follows from how it ended |
//! | [`metrics`] | the metrics for Prometheus |
//! | [`health`] | the heartbeat, written and read |
//! | [`doctor`] | findings on the server, the database, the rights and the policies; compaction debt with and without the drop window |
//! | [`verify`] | whether the invariants of retention hold, read-only |
//! | [`explain`] | why one partition is here, or what ended it |
//! | [`specs`] | a table's partition specs as they are shown, and who trusted one |
//! | [`approvals`] | approves partitions that are held for their number |
//! | [`claims`] | compaction claims on files that are about to be dropped, beside the passes |
//! | [`sweep`] | one pass: tables with work, lease, calendar, look-ups, commits, report; and the plan |
//! | [`mod@trace`] | what became of each drop, noted by passes and read |
//! | [`feed`] | a table's changes between two snapshots, ended files included |
//! | [`explicit`] | the explicit drop of enumerated tuples, and truncate: guards, receipts; holds on demand |
//! | [`mod@drop`] | the drop that passes and explicit drops share: guards, commit, receipt |
//! | [`installation`] | the schema `tailrace`: migrations, and the check of each new session that the schema fits |
//! | [`policy`] | policies: their parts, where they are stored, which one is in force |
//! | [`guards`] | pauses and holds, which no drop passes, approvals, and the revision that proves it under the commit lock |
//! | [`catalog`] | the only place that knows `hog_*` tables: identities, specs, the finder of live files, the commit lock and tail |
//! | [`telemetry`] | the log |
//! | [`config`] | all settings, and the layers that they come from |
//! | [`events`] | the names of the log events |
//! | [`files`] | opening files that other users may have made or can change |
//! | [`rules`] | pure: expiry, transform, keep, batches, duty cycle, backoff |

pub mod approvals;
pub mod catalog;
pub mod claims;
pub mod cli;
pub mod config;
pub mod daemon;
pub mod doctor;
pub mod drop;
pub mod events;
pub mod explain;
pub mod explicit;
pub mod feed;
pub mod files;
pub mod guards;
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
