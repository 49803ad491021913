//! Simulations of the loops that a hoglake server runs, written from the catalog's contract. They
//! do enough for a lake to be maintained, and a test can run one at an exact moment beside another
//! writer. They are not the server's own code, and they know a server at migration V27 only.

mod cleanup;
mod compaction;
mod consumer;
mod expiry;
mod hydrator;
mod truncate;

pub use cleanup::{Cleaned, Cleanup};
pub use compaction::{Compacted, Compaction, Group};
pub use consumer::Consumer;
pub use expiry::{Expiry, FloorMove, PAGE, Purged};
pub use hydrator::HeldFiles;
pub use truncate::truncate;
