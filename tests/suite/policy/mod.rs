//! Tests of policies: the commands, the table property, and what becomes of policies when their
//! tables are dropped.

mod binding;
mod commands;
mod history;
mod modes;
mod orphaned;
mod properties;
mod refusals;
mod renamed;
mod reused;
mod tombstones;
mod unset;
mod uuids;
