//! Tests of a pass: its parts, by the folders of `src/sweep`, and the whole.

pub mod calendar;
pub mod evidence;
pub mod pace;
pub mod pass;
pub mod triage;
pub mod waiting;
pub mod wakes;
