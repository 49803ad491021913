//! The parts of the benchmark that decide: its own program has no tests, for nothing runs it here.

mod calendar;
mod filling;
mod finding;
mod names;
mod parts;
mod spent;
mod statistics;
