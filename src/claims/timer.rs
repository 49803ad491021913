//! When compaction claims are renewed: at the daemon's start, then every `compaction.renew_every`,
//! independently of the passes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{MissedTickBehavior, interval};

/// One renewal.
pub type Renewal = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// Renews again and again.
#[derive(Clone)]
pub struct Timer {
    /// From the start of one renewal to the start of the next.
    pub every: Duration,
    /// What a renewal does; it tells itself how it went.
    pub renewal: Renewal,
}

impl Timer {
    /// Never ends. A renewal that takes longer than `every` is followed by the next one at once,
    /// and those that were missed are not made up for.
    pub async fn run(self) {
        let mut ticks = interval(self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            (self.renewal)().await;
        }
    }
}
