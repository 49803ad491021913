//! An embedded lake to run tailrace on: a throwaway Postgres, a hoglake catalog in it,
//! and stand-ins for the loops of the server. Tests, benchmarks and the demo run on it; it knows
//! nothing of tailrace.
//!
//! | module | what it holds |
//! |---|---|
//! | [`server`] | [`PrivateServer`](server::PrivateServer), a Postgres cluster that dies with us |
//! | [`binaries`] | where the Postgres programs of that cluster are looked for |
//! | [`lake`] | the catalog's tables, and writers that commit through real commit tails |
//! | [`standin`] | compaction, expiry, cleanup, hydrator, truncate and a consumer |

pub mod binaries;
pub mod lake;
pub mod server;
pub mod standin;
