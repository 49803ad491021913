//! The rows of the benchmark's table: one module for each family of rows.

mod claims;
mod cold;
mod day;
mod evidence;
mod explicit;
mod hold;
mod idle;
mod instants;
mod keep;
mod late;
mod many;
mod memory;
mod names;
mod others;
mod plan;
mod renew;
mod vectors;
mod wal;
mod writer;

use anyhow::{Result, bail};

use super::bench::Bench;
use super::finding::Finding;
use super::statistics::Sample;

pub use names::ALL;

/// What a row found.
pub struct Measured {
    /// What the row is about.
    pub title: &'static str,
    /// How it was measured, in sentences.
    pub how: String,
    /// The lines of the table.
    pub findings: Vec<Finding>,
}

/// Measures one row.
pub async fn measure(row: &str, bench: &mut Bench) -> Result<Measured> {
    match row {
        "hold" => hold::measure(bench).await,
        "evidence" => evidence::measure(bench).await,
        "cold" => cold::measure(bench).await,
        "idle" => idle::measure(bench).await,
        "strings" => idle::measure_beside_strings(bench).await,
        "hours" => idle::measure_by_hour(bench).await,
        "keep" => keep::measure(bench).await,
        "late" => late::measure(bench).await,
        "day" => day::measure(bench).await,
        "renew" => renew::measure(bench).await,
        "many" => many::measure(bench).await,
        "wal" => wal::measure(bench).await,
        "plan" => plan::measure(bench).await,
        "instants" => instants::measure(bench).await,
        "writer" => writer::measure(bench).await,
        "memory" => memory::measure(bench).await,
        "explicit" => explicit::measure(bench).await,
        "shield" => claims::measure(bench).await,
        "others" => others::measure(bench).await,
        other => bail!("no row is called {other:?}"),
    }
}

/// The median with the range around it.
fn spread(sample: &Sample) -> String {
    use super::finding::ms;
    format!("{} ({} to {})", ms(sample.median()), ms(sample.min()), ms(sample.max()))
}
