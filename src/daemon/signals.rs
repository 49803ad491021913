//! The signals that the daemon listens to.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// SIGTERM and SIGINT, from now to the end of the process: a second one, or one that comes
/// when nobody listens any more, does nothing.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Begins to listen. None that comes after this call is lost.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The name of the first one that comes.
    pub async fn first(mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// SIGHUP, which does not end the process any more.
pub struct Hangups(Signal);

impl Hangups {
    /// Begins to listen. None that comes after this call is lost.
    pub fn listen() -> io::Result<Self> {
        Ok(Self(signal(SignalKind::hangup())?))
    }

    /// Does something for each that comes, until `end`.
    pub async fn each(mut self, act: impl Fn(), end: CancellationToken) {
        while let Some(Some(())) = end.run_until_cancelled(self.0.recv()).await {
            act();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn send(signal: &str) {
        let pid = std::process::id().to_string();
        let sent = tokio::process::Command::new("kill").args(["-s", signal, &pid]).status().await;
        assert!(sent.expect("there is a kill").success());
    }

    /// One test for all of it: a signal goes to the whole process.
    #[tokio::test]
    async fn the_first_signal_counts_and_later_ones_do_no_harm() {
        for (sent, name) in [("TERM", "SIGTERM"), ("INT", "SIGINT")] {
            let signals = Signals::listen().expect("listening");
            send(sent).await;
            assert_eq!(signals.first().await, name);
            send("TERM").await;
            send("INT").await;
        }
    }
}
