//! Tests of the log of a process where stderr takes no lines.

mod commands;
mod daemon;

use std::io::PipeWriter;
use std::process::Stdio;

use anyhow::Result;

/// The end of a pipe whose reader is gone.
fn unread() -> Result<PipeWriter> {
    let (reader, writer) = std::io::pipe()?;
    drop(reader);
    Ok(writer)
}

/// A device that is always full.
fn full() -> Result<Stdio> {
    Ok(std::fs::OpenOptions::new().write(true).open("/dev/full")?.into())
}
