//! The daemon (`tailrace run`): starts its tasks, watches them, and stops them.

mod notify;
mod signals;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use std::time::Duration;

use anyhow::{Context, anyhow};
use tokio::sync::watch;
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio_util::sync::CancellationToken;

pub use signals::Hangups;

use crate::claims::Timer;
use crate::config::Config;
use crate::events;
use crate::health::{self, Place, Status};
use crate::http::Server;
use crate::http::tokens::Tokens;
use crate::scheduler::{Pass, Schedule, Scheduler, Stopped};
use crate::telemetry::{self, say};
use notify::Notifier;
use signals::Signals;

/// Runs passes until SIGTERM or SIGINT, and returns when the one in flight has ended, at the
/// latest after `shutdown.grace`.
///
/// Beside the scheduler it renews compaction claims, writes the heartbeat of `health.file`, notifies
/// systemd (readiness, stopping, watchdog) and listens to signals, SIGHUP among them. Of these tasks only
/// the renewal uses the database. Fails if a signal handler cannot be set, or if one of these tasks ends
/// by itself; the error names the task.
pub async fn run<P: Pass + 'static>(
    config: Config,
    pass: P,
    interface: Option<Server>,
    claims_timer: Option<Timer>,
    reload: Reload,
) -> anyhow::Result<()> {
    let signals = Signals::listen().context("cannot listen to SIGTERM and SIGINT")?;
    supervise(&config, pass, interface, claims_timer, Some(reload), signals.first()).await
}

/// What SIGHUP does.
pub struct Reload {
    /// The signal, which is listened to from long before the daemon is up.
    pub hangups: Hangups,
    /// What is read again. Everything else is read only at the start, or each time that it is needed: the
    /// files of passwords and of TLS for each session.
    pub tokens: Option<Arc<Tokens>>,
}

impl Reload {
    async fn run(self, end: CancellationToken) {
        let tokens = self.tokens;
        let act = move || match &tokens {
            Some(tokens) => tokens.reload(),
            None => tracing::info!(
                event = events::NOTHING_TO_RELOAD,
                "Nothing to reload: no tokens are in use. Files of passwords and of TLS are read for each \
                 session, the configuration at the start"
            ),
        };
        self.hangups.each(act, end).await;
    }
}

/// A token that SIGTERM or SIGINT cancels, for a command that runs one pass. What has not ended
/// after `grace`, or at a second signal, is ended with the process, exit code 1: the server rolls
/// back what was open.
///
/// # Errors
/// A signal handler cannot be set.
pub fn stop_on_signal(grace: Duration) -> anyhow::Result<CancellationToken> {
    let listen = || Signals::listen().context("cannot listen to SIGTERM and SIGINT");
    let (first, second) = (listen()?, listen()?);
    let stop = CancellationToken::new();
    let cancelled = stop.clone();
    tokio::spawn(async move {
        first.first().await;
        cancelled.cancel();
        // Both listeners have heard the first signal: the second one is asked anew.
        let again = async {
            second.first().await;
            match Signals::listen() {
                Ok(signals) => signals.first().await,
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = tokio::time::sleep(grace) => {}
            _ = again => {}
        }
        say("tailrace: ended before the work was; what was open is rolled back\n");
        telemetry::flush();
        std::process::exit(1);
    });
    Ok(stop)
}

/// What a task came back with.
enum Ended {
    Signal(&'static str),
    Scheduler(Stopped),
    Interface,
    Other,
}

/// The tasks, by name.
#[derive(Default)]
struct Tasks {
    set: JoinSet<Ended>,
    names: Vec<(Id, &'static str)>,
}

impl Tasks {
    fn start<T>(&mut self, name: &'static str, task: T) -> AbortHandle
    where
        T: Future<Output = Ended> + Send + 'static,
    {
        let handle = self.set.spawn(task);
        self.names.push((handle.id(), name));
        handle
    }

    /// The next task that ends: its name, and what it came back with unless it panicked.
    async fn next(&mut self) -> Option<(&'static str, anyhow::Result<Ended>)> {
        let (id, ended) = match self.set.join_next_with_id().await? {
            Ok((id, ended)) => (id, Ok(ended)),
            Err(why) => (why.id(), Err(anyhow!(why))),
        };
        let name = self.names.iter().find(|(known, _)| *known == id);
        Some((name.map_or("unknown", |(_, name)| *name), ended))
    }
}

async fn supervise<P: Pass + 'static>(
    config: &Config,
    pass: P,
    interface: Option<Server>,
    claims_timer: Option<Timer>,
    reload: Option<Reload>,
    signal: impl Future<Output = &'static str> + Send + 'static,
) -> anyhow::Result<()> {
    // `stop` asks for an end of the work; `end` lets go of those who watch over it, which
    // have to go on until the work has ended.
    let (stop, end) = (CancellationToken::new(), CancellationToken::new());
    let (status, watched) = watch::channel(Status::STARTING);
    let mut tasks = Tasks::default();
    tracing::info!(
        event = events::DAEMON_STARTED,
        version = env!("CARGO_PKG_VERSION"),
        schedule = %Schedule::from_config(config),
        database = config.database.url.as_ref().map(|url| url.to_string()),
        "tailrace is up"
    );

    let signals = tasks.start("signals", async { Ended::Signal(signal.await) });
    let beat = health::beat(Place::of(config), watched, end.clone());
    tasks.start("heartbeat", ended(beat));
    let notifier = Notifier::from_process();
    if let Some(every) = notifier.watchdog_interval() {
        let watchdog = notifier.clone().watchdog(every, end.clone());
        tasks.start("watchdog", ended(watchdog));
    }
    let scheduler = Scheduler::new(config, status, stop.clone());
    tasks.start("scheduler", async { Ended::Scheduler(scheduler.run(pass).await) });
    if let Some(claims_timer) = claims_timer {
        // A renewal that the end cuts off is rolled back; its claims hold for a while all the same.
        let end = end.clone();
        let renewing = async move {
            tokio::select! {
                () = claims_timer.run() => {}
                () = end.cancelled() => {}
            }
        };
        tasks.start("shield", ended(renewing));
    }
    if let Some(reload) = reload {
        tasks.start("reload", ended(reload.run(end.clone())));
    }
    let mut working = vec!["scheduler"];
    if let Some(server) = interface {
        let serving = server.run(stop.clone());
        tasks.start("http", async {
            serving.await;
            Ended::Interface
        });
        working.push("http");
    }
    notifier.ready();

    let mut failure = None;
    let mut pass_ended = None;
    while let Some((name, came)) = tasks.next().await {
        match came {
            Ok(Ended::Signal(signal)) => {
                notifier.stopping();
                tracing::info!(
                    event = events::DAEMON_STOPPING,
                    signal,
                    "Stopping: no new commit starts, the one in flight ends"
                );
                stop.cancel();
            }
            Ok(Ended::Scheduler(how)) if stop.is_cancelled() => {
                pass_ended = Some(how == Stopped::Cleanly);
            }
            Ok(Ended::Interface) if stop.is_cancelled() => {}
            _ if end.is_cancelled() => {}
            unexpected => {
                let error = match unexpected {
                    Err(panic) => panic.context(format!("the task {name} failed")),
                    Ok(_) => anyhow!("the task {name} ended, which it never should"),
                };
                tracing::error!(
                    event = events::TASK_EXITED,
                    task = name,
                    error = format!("{error:#}"),
                    "A task ended by itself; the daemon ends with it"
                );
                failure.get_or_insert(error);
                stop.cancel();
            }
        }
        working.retain(|task| *task != name);
        if working.is_empty() && !end.is_cancelled() {
            if let Some(pass_ended) = pass_ended {
                tracing::info!(event = events::DAEMON_STOPPED, pass_ended, "Stopped");
            }
            end.cancel();
        }
        if end.is_cancelled() {
            signals.abort();
        }
    }
    failure.map_or(Ok(()), Err)
}

async fn ended(task: impl Future<Output = ()>) -> Ended {
    task.await;
    Ended::Other
}
