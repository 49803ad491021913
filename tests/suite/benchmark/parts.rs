//! The files of the benchmark that are tested here.

#[path = "../../../benches/scale/calendar.rs"]
pub mod calendar;
#[path = "../../../benches/scale/filling.rs"]
pub mod filling;
#[path = "../../../benches/scale/finding.rs"]
pub mod finding;
#[path = "../../../benches/scale/rows/names.rs"]
pub mod names;
#[path = "../../../benches/scale/spent.rs"]
pub mod spent;
#[path = "../../../benches/scale/statistics.rs"]
pub mod statistics;
