//! The log as processes have it.

pub mod log;
