//! tailrace: partition retention for hoglake tables.
//!
//! The crate's map, dependencies pointing downwards:
//!
//! | module | what it holds |
//! |---|---|
//! | [`cli`] | the command line, one file per command |
//! | [`daemon`] | the tasks of `tailrace run`, their start and their end |
//! | [`scheduler`] | when a pass runs; what follows from how it ended |
//! | [`http`] | the interface of the daemon: drops, policies, plans, passes, health, metrics |
//! | [`turn`], [`metrics`] | one pass at a time in a process; what is counted |
//! | [`health`] | the heartbeat, written and read |
//! | [`config`] | every setting, from every place that it can come from |
//! | [`files`] | files that somebody else may have made or changed: opened, judged |
//! | [`telemetry`], [`events`] | the log, and the names of what it tells |
//! | [`verify`] | whether what must hold does, read-only |
//! | [`doctor`] | what an operator should know before trusting it |
//! | [`debt`] | compaction debt by the server's sample, with and without the drop window |
//! | [`specs`] | a table's partition specs as they are shown, and who trusted one |
//! | [`shield`] | claims on files that are about to be dropped, beside the passes |
//! | [`sweep`] | one pass: who has work, lease, calendar, look-ups, batches, commits, pace, report |
//! | [`mod@trace`] | what became of each drop, noted by passes and read |
//! | [`feed`] | a table's changes between two snapshots, ended files included |
//! | [`explicit`] | the explicit drop of enumerated tuples, and truncate: guards, receipts |
//! | [`mod@drop`] | the shared drop-commit: guards, commit, receipt |
//! | [`policy`] | what a policy is; where it is stored |
//! | [`installation`] | our own schema: migrations, and the check that it fits, which each session begins with |
//! | [`catalog`] | the only place that knows `hog_*` tables: identities, specs, discovery, the commit lock and tail |
//! | [`clock_guard`] | whether passes may act by the database's clock (pure) |
//! | [`backoff`] | how long to wait before something is tried again (pure) |
//! | [`window`] | policy + now -> what is expired, what will be and when (pure) |
//! | [`transform`] | stored partition text <-> the time range it covers (pure) |
//! | [`object`] | JSON that is an object, and nothing in the place of one (pure) |
//! | [`instant`] | instants and calendar arithmetic in UTC (pure) |

pub mod backoff;
pub mod catalog;
pub mod cli;
pub mod clock_guard;
pub mod config;
pub mod daemon;
pub mod debt;
pub mod doctor;
pub mod drop;
pub mod events;
pub mod explicit;
pub mod feed;
pub mod files;
pub mod health;
pub mod http;
pub mod installation;
pub mod instant;
pub mod metrics;
pub mod object;
pub mod policy;
pub mod scheduler;
pub mod shield;
pub mod specs;
pub mod sweep;
pub mod telemetry;
pub mod trace;
pub mod transform;
pub mod turn;
pub mod verify;
pub mod window;
