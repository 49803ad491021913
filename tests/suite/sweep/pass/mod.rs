//! Tests of the pass on real catalogs.

mod basics;
mod batches;
mod clock;
mod evolution;
mod large;
mod lease;
mod many;
mod matching;
mod modes;
mod servers;
mod stale_writers;
mod truth_table;
mod undatable;
mod vectors;
