//! The parts of the benchmark that decide: its own program has no tests, for nothing runs it here.

mod finding;
mod parts;
mod statistics;
