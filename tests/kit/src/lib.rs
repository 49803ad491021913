//! An embedded lake to run tailrace on: a private Postgres, a hoglake catalog in it, and simulated
//! loops of the server. Tests, benchmarks and the demo run on it. It does not depend on tailrace.
//!
//! | module | what it holds |
//! |---|---|
//! | [`server`] | [`PrivateServer`](server::PrivateServer), a Postgres cluster that ends with this process |
//! | [`binaries`] | finds the Postgres programs of that cluster |
//! | [`pooler`] | [`Pooler`](pooler::Pooler), a pgbouncer in front of it |
//! | [`lake`] | the catalog's tables, and writers that commit through real commit tails |
//! | [`simulated_loops`] | compaction, expiry, cleanup, hydrator, truncate and a consumer |

pub mod binaries;
pub mod lake;
pub mod pooler;
pub mod server;
pub mod simulated_loops;
