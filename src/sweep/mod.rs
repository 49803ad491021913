//! One pass: for each catalog the lease, for each of its tables with a policy the plan and the
//! commits, and a report.
//!
//! [`pass`] goes over catalogs and tables, `table` works on one, `work` makes its commits, [`plan`] decides what goes,
//! [`batch`] groups it, `pace` rests in between.

pub mod batch;
pub mod census;
pub mod cursor;
mod effective;
mod enforce;
mod lease;
mod lookup;
mod pace;
pub mod pass;
pub mod plan;
pub mod plan_report;
pub mod planning;
pub mod reach;
pub mod report;
pub mod round;
pub mod settings;
mod sorter;
mod table;
mod work;

pub use pass::{Progress, run_pass};
pub use settings::{Scope, Settings};
