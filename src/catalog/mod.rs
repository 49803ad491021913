//! The only place that knows the `hog_*` tables: identities, specs, discovery, the commit lock
//! and tail, and what this server has. SQL finds them through the session's search_path (see
//! [`connect`]), for they may live in any schema; our own objects are always `tailrace.*`.

pub mod busy;
pub mod changes;
pub mod checks;
pub mod claims;
pub mod clock;
pub mod clock_memory;
pub mod commit_lock;
pub mod connect;
pub mod deadline;
pub mod discovery;
pub mod explicit_guard;
pub mod failure;
pub mod files;
pub mod guard;
pub mod history;
pub mod inventory;
pub mod live_file;
pub mod purge;
pub mod receipts;
pub mod removals;
pub mod sample;
pub mod shape;
pub mod tables;
pub mod tail;
pub mod texts;
pub mod traces;
pub mod vectors;
pub mod walk;
pub mod warm;
