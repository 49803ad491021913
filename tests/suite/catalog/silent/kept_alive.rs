//! Tests that TCP keepalives are on for a session, by what the operating system knows of its
//! connection.

use anyhow::{Context, Result};

use super::Lake;

/// A session that rests asks after half a minute whether the server is there. (Which options are set is
/// tested where they are, in `src/catalog/keepalive.rs`.)
#[tokio::test]
async fn a_session_that_rests_asks_whether_anybody_is_there() -> Result<()> {
    let lake = Lake::new().await?;
    let (proxy, through) = lake.network().await?;
    let _session = through.session().await?;
    let peer = format!("0100007F:{:04X}", proxy.port());
    // sl local_address rem_address st tx_queue:rx_queue tr:tm->when ...
    let connections = std::fs::read_to_string("/proc/net/tcp")?;
    let timers = connections
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find(|fields| fields.get(2) == Some(&peer.as_str()))
        .context("the connection")?;
    let (kind, hundredths) = timers[5].split_once(':').context("a timer")?;
    assert_eq!(kind, "02", "the timer of keepalives");
    let hundredths = u64::from_str_radix(hundredths, 16)?;
    assert!((2_000..=3_000).contains(&hundredths), "{hundredths}");
    Ok(())
}
