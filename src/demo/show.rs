//! `tailrace demo`: all of it, on a lake of its own.

/// Runs the demo.
pub async fn run(_keep: bool) -> anyhow::Result<()> {
    anyhow::bail!("not yet")
}
