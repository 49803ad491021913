//! The benchmark's own files.

#[path = "../../../benches/scale/finding.rs"]
pub mod finding;
#[path = "../../../benches/scale/statistics.rs"]
pub mod statistics;
