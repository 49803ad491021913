//! When a pass runs: one at start, then at each tick of the schedule, never two at once.
//!
//! What a pass is, the scheduler does not know: it is given one, and runs it to its end.
//! Ticks that are missed meanwhile collapse into one. While the database is away the
//! schedule rests, and the pass is tried again, with pauses that grow for as long as it answers nothing.

#[cfg(test)]
mod tests;
mod tick;

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

pub use tick::Schedule;

use crate::backoff::Backoff;
use crate::catalog::failure::in_words;
use crate::config::Config;
use crate::events;
use crate::health::{State, Status};

/// The longest sleep towards an instant of the calendar: the clock may be set, or the
/// machine suspended, and a longer one would not notice.
const GLANCE: Duration = Duration::from_secs(60);

/// The pauses between tries while the database is away.
const DATABASE_AWAY: Backoff =
    Backoff { shortest: Duration::from_secs(2), longest: Duration::from_secs(60) };

/// How a pass ended.
#[derive(Debug)]
pub enum PassEnd {
    /// It went through. That some tables failed is its own report's matter.
    Done,
    /// The database could not be reached, or was lost on the way.
    DatabaseAway {
        /// What it said.
        error: anyhow::Error,
        /// Whether it answered anything in this pass.
        answered: bool,
    },
    /// It could not go through for another reason.
    Failed {
        /// Which.
        error: anyhow::Error,
    },
}

/// One pass over all catalogs, as often as it is asked for.
pub trait Pass: Send {
    /// Runs one pass. Once `stop` is cancelled it starts no new commit and ends soon. It is
    /// dropped where it stands if it takes longer than `shutdown.grace` for that.
    fn run(&mut self, stop: CancellationToken) -> impl Future<Output = PassEnd> + Send;
}

impl<F, Fut> Pass for F
where
    F: FnMut(CancellationToken) -> Fut + Send,
    Fut: Future<Output = PassEnd> + Send,
{
    fn run(&mut self, stop: CancellationToken) -> impl Future<Output = PassEnd> + Send {
        self(stop)
    }
}

/// How the scheduler came to its end, once it was told to stop.
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
        let mut tick = Instant::now();
        loop {
            if self.stop.is_cancelled() {
                return self.stopped(Stopped::Cleanly);
            }
            self.state(State::Pass);
            let Some(end) = self.to_its_end(&mut pass).await else {
                return self.stopped(Stopped::GraceExceeded);
            };
            self.note(end);
            if self.stop.is_cancelled() {
                return self.stopped(Stopped::Cleanly);
            }
            let stop = self.stop.clone();
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.rest(&mut tick) => {}
            }
        }
    }

    /// The end of one pass, or nothing if it outlived the grace.
    async fn to_its_end(&self, pass: &mut impl Pass) -> Option<PassEnd> {
        let mut running = std::pin::pin!(pass.run(self.stop.child_token()));
        tokio::select! {
            biased;
            end = &mut running => return Some(end),
            () = self.stop.cancelled() => {}
        }
        self.state(State::Stopping);
        tokio::time::timeout(self.grace, running).await.ok()
    }

    /// Waits until the next pass is due.
    async fn rest(&mut self, tick: &mut Instant) {
        if let Some(lost) = &mut self.lost {
            let pause = DATABASE_AWAY.pause(lost.attempts, self.random.f64());
            lost.attempts = lost.attempts.saturating_add(1);
            self.state(State::DatabaseAway);
            return sleep(pause).await;
        }
        self.state(State::Idle);
        let delay = self.jitter.mul_f64(self.random.f64());
        match &self.schedule {
            Schedule::Every(every) => {
                *tick += tick::missed(tick.elapsed(), *every) + *every;
                self.announce(tick.saturating_duration_since(Instant::now()) + delay);
                tokio::time::sleep_until(*tick).await;
            }
            Schedule::Cron(cron) => {
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
            }
        }
        sleep(delay).await;
    }

    fn announce(&self, wait: Duration) {
        tracing::debug!(
            event = events::SCHEDULE_NEXT,
            wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            "The next pass is due in {}",
            humantime::format_duration(Duration::from_secs(wait.as_secs()))
        );
    }

    /// Logs what the end of a pass changes, and remembers it.
    fn note(&mut self, end: PassEnd) {
        let ok = matches!(end, PassEnd::Done);
        let now = (self.clock)();
        self.status.send_modify(|status| {
            status.last_pass_at = Some(now);
            status.last_pass_ok = Some(ok);
        });
        let lost = match end {
            PassEnd::DatabaseAway { error, answered } => {
                match &mut self.lost {
                    Some(lost) if answered => lost.attempts = 0,
                    Some(_) => {}
                    None => {
                        self.lost = Some(Lost { since: Instant::now(), attempts: 0 });
                        tracing::error!(
                            event = events::DATABASE_LOST,
                            error = in_words(&error),
                            "The database is away; trying again until it is back"
                        );
                    }
                }
                return;
            }
            PassEnd::Failed { error } => {
                tracing::error!(
                    event = events::PASS_FAILED,
                    error = in_words(&error),
                    "A pass failed; the next one comes when it is due"
                );
                self.lost.take()
            }
            PassEnd::Done => self.lost.take(),
        };
        if let Some(lost) = lost {
            tracing::info!(
                event = events::DATABASE_BACK,
                away_seconds = lost.since.elapsed().as_secs(),
                "The database is back"
            );
        }
    }

    fn state(&self, state: State) {
        self.status.send_modify(|status| status.state = state);
    }

    fn stopped(&self, how: Stopped) -> Stopped {
        self.state(State::Stopping);
        how
    }
}
