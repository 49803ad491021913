//! Notifies systemd of the state of a `Type=notify` service. Without systemd, nothing is sent.

use std::env;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::events;

/// Messages that may wait while systemd does not read. More would tell it nothing new.
const QUEUE: usize = 8;

/// Notifies systemd from a thread of its own. A send waits while systemd does not read, and neither
/// a commit in flight nor the daemon's end may wait for that.
#[derive(Clone)]
pub struct Notifier(Option<SyncSender<NotifyState<'static>>>);

impl Notifier {
    /// One for the systemd that started this process, if one did.
    pub fn from_process() -> Self {
        if env::var_os("NOTIFY_SOCKET").is_none() {
            return Self(None);
        }
        let (sender, receiver) = sync_channel(QUEUE);
        let started =
            thread::Builder::new().name("notify".into()).spawn(move || send_all(&receiver));
        Self(started.is_ok().then_some(sender))
    }

    /// The daemon is up.
    pub fn ready(&self) {
        self.send(NotifyState::Ready);
    }

    /// The daemon is about to end.
    pub fn stopping(&self) {
        self.send(NotifyState::Stopping);
    }

    /// How often systemd has to hear from the watchdog, if it asked for one: twice as often as
    /// it checks.
    pub fn watchdog_interval(&self) -> Option<Duration> {
        let asked = self.0.as_ref().and_then(|_| sd_notify::watchdog_enabled());
        asked.map(|limit| limit / 2).filter(|every| !every.is_zero())
    }

    /// Tells systemd, every so often until `end`, that the daemon's runtime makes progress.
    pub async fn watchdog(self, every: Duration, end: CancellationToken) {
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = end.cancelled() => return,
                _ = ticks.tick() => self.send(NotifyState::Watchdog),
            }
        }
    }

    fn send(&self, state: NotifyState<'static>) {
        if let Some(queue) = &self.0 {
            // Full: systemd does not read, and has enough to read once it does.
            let _ = queue.try_send(state);
        }
    }
}

/// Sends what comes; a failure is logged once until a send succeeds again.
fn send_all(queue: &Receiver<NotifyState<'static>>) {
    let mut told = false;
    for state in queue {
        match sd_notify::notify(std::slice::from_ref(&state)) {
            Ok(()) => told = false,
            Err(error) if !told => {
                told = true;
                tracing::warn!(
                    event = events::NOTIFY_FAILED,
                    %state,
                    %error,
                    "systemd cannot be notified; it will take this daemon for dead"
                );
            }
            Err(_) => {}
        }
    }
}
