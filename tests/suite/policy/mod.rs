//! Policies: the commands, the table property, and what happens to them when tables go.

mod binding;
mod commands;
mod incarnations;
mod modes;
mod orphaned;
mod properties;
mod refusals;
mod renamed;
mod reused;
mod tombstones;
mod unset;
