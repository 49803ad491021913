//! The files of `src/rules`, compiled without the rest of tailrace.

#[path = "../../../src/rules/mod.rs"]
pub mod rules;
