//! The command line: results, exit codes, connections.

mod connections;
mod drop;
mod exit_codes;
mod hostile;
mod instants;
mod json;
mod passfile;
mod spec;
mod streams;
mod unmatched;
