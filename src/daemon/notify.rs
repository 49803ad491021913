//! What systemd wants to hear from a `Type=notify` service. Without systemd, nothing is said.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::events;

/// The daemon is up.
pub fn ready() {
    tell(NotifyState::Ready);
}

/// The daemon is about to end.
pub fn stopping() {
    tell(NotifyState::Stopping);
}

/// How often systemd has to hear from the watchdog, if it asked for one: twice as often as it
/// checks.
pub fn watchdog_interval() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|limit| limit / 2).filter(|every| !every.is_zero())
}

/// Tells systemd, every so often until `end`, that the daemon's runtime makes progress.
pub async fn watchdog(every: Duration, end: CancellationToken) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut heard = true;
    loop {
        tokio::select! {
            () = end.cancelled() => return,
            _ = ticks.tick() => {}
        }
        // Told once: what follows, the restart by systemd, speaks for itself.
        if heard {
            heard = tell(NotifyState::Watchdog);
        } else {
            heard = sd_notify::notify(&[NotifyState::Watchdog]).is_ok();
        }
    }
}

/// Whether it could be said.
fn tell(state: NotifyState<'_>) -> bool {
    let sent = sd_notify::notify(std::slice::from_ref(&state));
    if let Err(error) = &sent {
        tracing::warn!(
            event = events::NOTIFY_FAILED,
            %state,
            %error,
            "systemd cannot be told; it will take this daemon for dead"
        );
    }
    sent.is_ok()
}
