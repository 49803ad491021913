//! Tests of the command line: results, exit codes, connections.

mod connections;
mod drop;
mod exit_codes;
mod hostile;
mod init;
mod instants;
mod json;
mod manual;
mod passfile;
mod range;
mod spec;
mod streams;
mod unmatched;
