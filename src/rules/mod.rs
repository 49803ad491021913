//! The rules: pure decisions without IO. The time, the clock's readings and random numbers are arguments.
//!
//! | module | what it decides |
//! |---|---|
//! | [`expiry`] | whether a file has expired, what proves it, and when it will |
//! | [`kept`] | what stays, counted by its reason |
//! | [`blast_radius`] | how much of a table goes at once otherwise than by time alone |
//! | [`column_value`] | what a tuple says about the values of a column in its rows |
//! | [`hold`] | which tuples a hold keeps |
//! | [`keep`] | how long a partition stays, as a policy says it |
//! | [`transform`] | which range of time a stored partition value covers |
//! | [`clock_guard`] | whether passes may act by the database's clock |
//! | [`batches`] | which tuples are dropped in one commit, and how one is split that is too large |
//! | [`duty_cycle`] | how long to leave the commit lock alone after a hold |
//! | [`fair_queue`] | who works next, and for how long |
//! | [`backoff`] | how long to wait before something is tried again |
//! | [`scan_limits`] | how much one step of looking for expired files takes on |
//! | [`object`] | whether JSON is an object, and nothing in the place of one |
//! | [`instant`] | instants and calendar arithmetic in UTC |

pub mod backoff;
pub mod batches;
pub mod blast_radius;
pub mod clock_guard;
pub mod column_value;
pub mod duty_cycle;
pub mod expiry;
pub mod fair_queue;
pub mod hold;
pub mod instant;
pub mod keep;
pub mod kept;
pub mod object;
pub mod scan_limits;
pub mod transform;
