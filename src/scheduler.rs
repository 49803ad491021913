//! Decides when a pass runs: one at the start, then one at each tick of the schedule. With
//! `schedule.every`, a pass can also ask to be woken before the next tick. Two passes never run at
//! the same time.
//!
//! The scheduler does not know what a pass does. It starts the pass and waits until the pass ends.
//! Ticks that fall into a regular pass are left out. A wake does not move a tick. While the
//! database cannot be reached, the ticks are not used: the pass is tried again after pauses, which
//! grow for as long as the database answers nothing.

#[cfg(test)]
mod tests;
mod tick;

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

pub use tick::Schedule;
use tick::Ticks;

use crate::catalog::errors::describe;
use crate::config::Config;
use crate::events;
use crate::health::{State, Status};
use crate::rules::backoff::Backoff;

/// The longest sleep towards an instant of the calendar: the clock may be set, or the
/// machine suspended, and a longer one would not notice.
const GLANCE: Duration = Duration::from_secs(60);

/// The pauses between tries while the database is away.
const DATABASE_AWAY: Backoff =
    Backoff { shortest: Duration::from_secs(2), longest: Duration::from_secs(60) };

/// What a pass is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassKind {
    /// The schedule asked for it.
    Regular,
    /// The pass before asked to be woken.
    Wake,
}

/// How a pass ended.
#[derive(Debug)]
pub enum PassEnd {
    /// It ran to its end. Tables that failed are in its own report.
    Done {
        /// In how long from now it should wake, if before the next tick.
        wake_in: Option<Duration>,
    },
    /// The database could not be reached, or was lost during the pass.
    DatabaseAway {
        /// What it said.
        error: anyhow::Error,
        /// Whether it answered anything in this pass.
        answered: bool,
    },
    /// It failed for another reason.
    Failed {
        /// The reason.
        error: anyhow::Error,
        /// As for `Done`, because the failure may concern only one catalog of many.
        wake_in: Option<Duration>,
    },
}

/// One pass over all catalogs, as often as it is asked for.
pub trait Pass: Send {
    /// Runs one pass. Once `stop` is cancelled it starts no new commit and ends soon. It is aborted
    /// if that takes longer than `shutdown.grace`.
    fn run(
        &mut self,
        kind: PassKind,
        stop: CancellationToken,
    ) -> impl Future<Output = PassEnd> + Send;
}

impl<F, Fut> Pass for F
where
    F: FnMut(PassKind, CancellationToken) -> Fut + Send,
    Fut: Future<Output = PassEnd> + Send,
{
    fn run(
        &mut self,
        kind: PassKind,
        stop: CancellationToken,
    ) -> impl Future<Output = PassEnd> + Send {
        self(kind, stop)
    }
}

/// How the scheduler ended, once it was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// No pass was left running.
    Cleanly,
    /// A pass was still running after the grace and was abandoned: its connection is closed,
    /// and Postgres rolls its transaction back.
    GraceExceeded,
}

/// Runs passes when they are due.
pub struct Scheduler {
    schedule: Schedule,
    jitter: Duration,
    lag: Duration,
    grace: Duration,
    random: fastrand::Rng,
    clock: fn() -> DateTime<Utc>,
    status: watch::Sender<Status>,
    stop: CancellationToken,
    lost: Option<Lost>,
}

/// The database is away.
struct Lost {
    since: Instant,
    /// The tries since it answered last. The pause grows to spare a database that cannot answer, and to
    /// keep many daemons from coming back at once; one that answers can be asked again soon.
    attempts: u32,
}

impl Scheduler {
    /// A scheduler by `schedule.*` and `shutdown.grace`, which tells what it does in `status`
    /// and ends after `stop`.
    pub fn new(config: &Config, status: watch::Sender<Status>, stop: CancellationToken) -> Self {
        Self {
            schedule: Schedule::from_config(config),
            jitter: config.schedule.jitter.get(),
            lag: config.schedule.lag.get(),
            grace: config.shutdown.grace.get(),
            random: fastrand::Rng::new(),
            clock: Utc::now,
            status,
            stop,
            lost: None,
        }
    }

    /// Runs passes until told to stop, then waits for the one in flight, at most for the grace.
    pub async fn run(mut self, mut pass: impl Pass) -> Stopped {
        let mut ticks = Ticks::since(Instant::now());
        let mut kind = PassKind::Regular;
        loop {
            if self.stop.is_cancelled() {
                return self.stopped(Stopped::Cleanly);
            }
            self.state(State::Pass);
            let Some(end) = self.to_its_end(&mut pass, kind).await else {
                return self.stopped(Stopped::GraceExceeded);
            };
            let wake_in = self.note(end);
            if self.stop.is_cancelled() {
                return self.stopped(Stopped::Cleanly);
            }
            let stop = self.stop.clone();
            tokio::select! {
                () = stop.cancelled() => {}
                next = self.rest(&mut ticks, wake_in) => kind = next,
            }
        }
    }

    /// The end of one pass, or nothing if it outlived the grace.
    async fn to_its_end(&self, pass: &mut impl Pass, kind: PassKind) -> Option<PassEnd> {
        let mut running = std::pin::pin!(pass.run(kind, self.stop.child_token()));
        tokio::select! {
            biased;
            end = &mut running => return Some(end),
            () = self.stop.cancelled() => {}
        }
        self.state(State::Stopping);
        tokio::time::timeout(self.grace, running).await.ok()
    }

    /// Waits until the next pass is due, and tells which it is.
    async fn rest(&mut self, ticks: &mut Ticks, wake_in: Option<Duration>) -> PassKind {
        if let Some(lost) = &mut self.lost {
            let pause = DATABASE_AWAY.pause(lost.attempts, self.random.f64());
            lost.attempts = lost.attempts.saturating_add(1);
            self.state(State::DatabaseAway);
            sleep(pause).await;
            ticks.reckon_anew();
            return PassKind::Regular;
        }
        self.state(State::Idle);
        match &self.schedule {
            Schedule::Every(every) => {
                let (now, random) = (Instant::now(), &mut self.random);
                let tick = ticks.next(now, *every, || self.jitter.mul_f64(random.f64()));
                // One that would come just before the tick is left to it. Within half of the lag: what is
                // due has waited for up to another half by then, and should not wait for more than one.
                let is_early =
                    |wake: &Instant| tick.saturating_duration_since(*wake) >= self.lag / 2;
                let wake = wake_in.and_then(|length| now.checked_add(length)).filter(is_early);
                let due = wake.unwrap_or(tick);
                self.announce(due.saturating_duration_since(now));
                tokio::time::sleep_until(due).await;
                if wake.is_some() {
                    return PassKind::Wake;
                }
                ticks.use_next();
                PassKind::Regular
            }
            Schedule::Cron(cron) => {
                let delay = self.jitter.mul_f64(self.random.f64());
                let Some(due) = cron.next_after((self.clock)()) else {
                    // The last year of the expression is over. Staying up says so in `health`
                    // and leaves the choice to a person.
                    return std::future::pending().await;
                };
                let left = |now: DateTime<Utc>| (due - now).to_std().unwrap_or_default();
                self.announce(left((self.clock)()) + delay);
                loop {
                    let left = left((self.clock)());
                    if left.is_zero() {
                        break;
                    }
                    sleep(left.min(GLANCE)).await;
                }
                sleep(delay).await;
                PassKind::Regular
            }
        }
    }

    fn announce(&self, wait: Duration) {
        tracing::debug!(
            event = events::SCHEDULE_NEXT,
            wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            "The next pass is due in {}",
            humantime::format_duration(Duration::from_secs(wait.as_secs()))
        );
    }

    /// Logs what the end of a pass changes, and remembers it. Tells in how long it should wake.
    fn note(&mut self, end: PassEnd) -> Option<Duration> {
        let ok = matches!(end, PassEnd::Done { .. });
        let now = (self.clock)();
        self.status.send_modify(|status| {
            status.last_pass_at = Some(now);
            status.last_pass_ok = Some(ok);
        });
        let wake_in = match end {
            PassEnd::DatabaseAway { error, answered } => {
                match &mut self.lost {
                    Some(lost) if answered => lost.attempts = 0,
                    Some(_) => {}
                    None => {
                        self.lost = Some(Lost { since: Instant::now(), attempts: 0 });
                        tracing::error!(
                            event = events::DATABASE_LOST,
                            error = describe(&error),
                            "The database is away; trying again until it is back"
                        );
                    }
                }
                return None;
            }
            PassEnd::Failed { error, wake_in } => {
                tracing::error!(
                    event = events::PASS_FAILED,
                    error = describe(&error),
                    "A pass failed; the next one comes when it is due"
                );
                wake_in
            }
            PassEnd::Done { wake_in } => wake_in,
        };
        if let Some(lost) = self.lost.take() {
            tracing::info!(
                event = events::DATABASE_BACK,
                away_seconds = lost.since.elapsed().as_secs(),
                "The database is back"
            );
        }
        wake_in
    }

    fn state(&self, state: State) {
        self.status.send_modify(|status| status.state = state);
    }

    fn stopped(&self, how: Stopped) -> Stopped {
        self.state(State::Stopping);
        how
    }
}
