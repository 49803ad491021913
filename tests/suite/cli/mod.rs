//! The command line: results, exit codes, connections.

mod connections;
mod drop;
mod exit_codes;
mod hostile;
mod json;
mod spec;
mod streams;
