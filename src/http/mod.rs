//! The HTTP interface of the daemon: the explicit drop, policies, plans, passes, health, metrics.
//!
//! | module | what it holds |
//! |---|---|
//! | [`server`] | accepting and serving connections: limits, timeouts, the end |
//! | [`connections`] | which connection is closed for a new one where the limit is reached |
//! | [`routes`] | the list of all routes, and the OpenAPI document |
//! | [`observe`] | for each request: the caller, the id, the log line, the metric |
//! | [`tokens`], [`same_origin`] | who may use the interface |
//! | [`failure`] | errors, in the shape of hoglake's errors |
//! | [`extract`] | paths, queries and bodies; a wrong one is refused with such an error |
//! | [`state`], [`sessions`], [`passes`] | what requests share: database sessions, drops, passes |
//! | [`drops`], [`drops_trace`], [`changes`], [`policies`], [`maintenance`], [`probes`] | the handlers |
//!
//! A slow or huge client does not affect other clients. Heads, bodies and answers have timeouts.
//! The size of bodies is limited, and so are the numbers of connections, database sessions and
//! drops. Where the limit of connections is reached, a new one replaces the one that has waited
//! longest for its client. Some sessions are reserved for requests that change something. Work that
//! holds a session runs in a task of its own, so it is not interrupted when the client goes away or
//! the daemon stops.

pub mod approvals;
pub mod changes;
pub mod connections;
pub mod drops;
pub mod drops_trace;
pub mod explanations;
pub mod extract;
pub mod failure;
pub mod holds;
pub mod maintenance;
pub mod observe;
pub mod passes;
pub mod pauses;
pub mod policies;
pub mod policy_history;
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
