//! Listens to the signals that stop the daemon or make it reload.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinError;
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

/// SIGHUP, which no longer ends the process once this exists. systemd would take such an end for a
/// clean one, and would not start the process again.
#[derive(Debug)]
pub struct Hangups(Signal);

impl Hangups {
    /// Begins to listen. None that comes after this call is lost.
    pub fn listen() -> io::Result<Self> {
        Ok(Self(signal(SignalKind::hangup())?))
    }

    /// Does something for each that comes, until `end`; off the threads of the runtime, for it reads
    /// files.
    pub async fn each<A>(mut self, act: A, end: CancellationToken)
    where
        A: Fn() + Clone + Send + 'static,
    {
        while let Some(Some(())) = end.run_until_cancelled(self.0.recv()).await {
            let done = tokio::task::spawn_blocking(act.clone()).await;
            if let Err(Ok(panic)) = done.map_err(JoinError::try_into_panic) {
                std::panic::resume_unwind(panic);
            }
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
