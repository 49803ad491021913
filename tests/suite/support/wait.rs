//! Waits for what other sessions do by polling, because there is no event to wait for.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Far longer than anything here takes: a condition that is not met by then never will be.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(10);

/// Returns once the condition holds.
pub async fn until(what: &str, mut condition: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let started = Instant::now();
    while !condition().await? {
        if started.elapsed() > PATIENCE {
            bail!("waited in vain until {what}");
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}
