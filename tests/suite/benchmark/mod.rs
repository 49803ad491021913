//! Tests of the parts of the benchmark that its results depend on. `cargo test` does not run the
//! benchmark itself, so they are tested here.

mod calendar;
mod filling;
mod finding;
mod names;
mod parts;
mod spent;
mod statistics;
