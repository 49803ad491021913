//! Tests of pure rules of `src/rules` through the program.

pub mod clock_guard;
