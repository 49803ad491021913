//! The HTTP interface of the daemon: the explicit drop, policies, plans, passes, health, metrics.
//!
//! | module | what it holds |
//! |---|---|
//! | [`server`] | connections: their bounds and timeouts, their end |
//! | [`connections`] | which connection gives way where there are as many as may be |
//! | [`routes`] | every path, and the document that describes them |
//! | [`observe`] | what happens to each request: who it is, its id, its log line |
//! | [`tokens`], [`same_origin`] | who may |
//! | [`failure`] | what goes wrong, as hoglake's clients know it |
//! | [`extract`] | paths, queries and bodies, each refused in that shape |
//! | [`state`], [`sessions`], [`passes`] | what requests share: database sessions, drops, passes |
//! | [`drops`], [`drops_trace`], [`changes`], [`policies`], [`maintenance`], [`probes`] | the handlers |
//!
//! A slow or huge client harms nobody else: heads, bodies and answers have timeouts, bodies a
//! size, and connections, database sessions and drops a number; of the connections the one that has
//! waited longest for its client gives way to a new one, and of the sessions some are kept for those
//! who change something. Whatever holds a session runs in
//! a task of its own: neither a client that goes away nor a shutdown drops it where it stands.

pub mod changes;
pub mod connections;
pub mod drops;
pub mod drops_trace;
pub mod extract;
pub mod failure;
pub mod maintenance;
pub mod observe;
pub mod passes;
pub mod policies;
pub mod probes;
pub mod routes;
pub mod same_origin;
pub mod server;
pub mod sessions;
pub mod state;
mod stream;
#[cfg(test)]
mod tests;
pub mod tokens;
pub mod verify;

pub use server::Server;
pub use state::{Context, State};
