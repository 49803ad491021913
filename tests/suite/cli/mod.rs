//! The command line: results, exit codes, connections.

mod connections;
mod exit_codes;
mod json;
mod streams;
