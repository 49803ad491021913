//! Tests of the log of processes.

pub mod log;
