//! One pass: for each catalog the lease, for each of its tables with a policy the expired files
//! and their commits, and a report.
//!
//! [`pass`] begins with who has work: `intake` and `closer` ask, [`triage`] decides. It goes over catalogs, side by
//! side, `catalog` over the tables of one, in the time slices of a [`fair_queue`](crate::rules::fair_queue), if
//! [`clocks`] lets it; `table` works on one of them. `table_pass` finds what is dropped: what the [`calendar`] says is due,
//! what came since, and what a full pass reads, by what the [`memory`] has of it; `ask` says which values these are,
//! the [`finder`](crate::catalog::finder) finds their files, `sorter` judges, and what stays is counted by
//! [`kept`](crate::rules::kept). Batch by batch, [`batches`](crate::rules::batches) groups it, `commits` makes the
//! commits, and [`duty_cycle`](crate::rules::duty_cycle) says how long to rest in between, by the clock of [`pacing`].
//! What expired and stays is in [`waiting`]; [`radius`] says whether too much would be dropped otherwise than by time
//! alone; [`stalled`] finds tables whose newest partition is old. [`plan`] only tells, and remembers nothing; `find` finds for it. `house`
//! is what a pass does beside its tables. [`wakes`] says when the next one is due before its time.

pub(crate) mod ask;
pub mod calendar;
mod catalog;
pub mod clocks;
pub(crate) mod closer;
mod commits;
mod context;
pub mod evidence;
pub mod expired;
pub mod expired_batch;
pub mod find;
mod house;
mod intake;
mod lease;
pub mod memory;
pub mod pacing;
pub mod pass;
pub mod pass_lock;
pub mod plan;
pub mod plan_report;
pub mod planning;
pub mod radius;
pub mod report;
pub mod settings;
pub(crate) mod sorter;
pub mod stalled;
mod table;
mod table_pass;
pub mod triage;
pub mod waiting;
mod waits;
pub mod wakes;

pub use commits::AUTHOR;
pub use context::{Context, Progress};
pub use pacing::Pacing;
pub use pass::{LostOnTheWay, run_paced_pass, run_pass};
pub use settings::Kind;
pub use settings::{Scope, Settings};
