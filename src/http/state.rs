//! The state that all requests share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::failure::{Failure, of_join};
use super::passes::{Passes, RunPass};
use super::sessions::Probe;
use super::sessions::{Numbers, OpenDatabase, Sessions};
use super::tokens::Tokens;
use crate::claims;
use crate::config::Config;
use crate::explicit::Bounds;
use crate::metrics::Metrics;
use crate::sweep::Settings;
use crate::sweep::pass_lock::PassLock;
use crate::verify;

/// What the interface needs from its daemon.
pub struct Context {
    /// How to reach the database; asked anew for each session, so that a rotated password is
    /// found.
    pub database: OpenDatabase,
    /// Runs a pass.
    pub pass: RunPass,
    /// Lets one pass run at a time.
    pub pass_lock: PassLock,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The tokens. Without them anybody may use the interface.
    pub tokens: Option<Arc<Tokens>>,
}

/// What all requests share.
pub struct State {
    pub(super) sessions: Sessions,
    pub(super) passes: Passes,
    pub(super) probe: Probe,
    pub(super) metrics: Arc<Metrics>,
    pub(super) tokens: Option<Arc<Tokens>>,
    pub(super) settings: Settings,
    pub(super) verify: verify::Settings,
    pub(super) claims: claims::Settings,
    pub(super) bounds: Bounds,
    /// How long an approval is valid.
    pub(super) approval_ttl: Duration,
    pub(super) body_timeout: Duration,
    drops: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl State {
    /// The state of an interface with these settings. A pass that it starts is told to stop by
    /// `stop`.
    pub fn new(config: &Config, context: Context, stop: CancellationToken) -> Arc<Self> {
        let tasks = TaskTracker::new();
        let patience = config.connect_timeout();
        let sessions = config.http.max_sessions.get() as usize;
        let drops = config.http.max_concurrent_drops.get() as usize;
        let most = Numbers {
            sessions,
            // The configuration has seen to it that there are more sessions than drops.
            looking: sessions.saturating_sub(drops),
            waiting: (config.http.max_connections.get() as usize).div_ceil(4),
        };
        Arc::new(State {
            probe: Probe::new(context.database.clone()),
            sessions: Sessions::new(context.database, most, patience),
            passes: Passes::new(context.pass_lock, context.pass, tasks.clone(), stop),
            metrics: context.metrics,
            tokens: context.tokens,
            settings: Settings::from_config(config),
            verify: verify::Settings::from_config(config),
            claims: claims::Settings::from_config(config),
            approval_ttl: config.guard.approval_ttl.get(),
            bounds: Bounds::from_config(config),
            body_timeout: config.http.body_timeout.get(),
            drops: Arc::new(Semaphore::new(drops)),
            tasks,
        })
    }

    /// The tasks that a shutdown waits for.
    pub(super) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// A permit for one drop; refused at once where the limit of drops is reached.
    pub(super) fn may_drop(&self) -> Result<OwnedSemaphorePermit, Failure> {
        self.drops.clone().try_acquire_owned().map_err(|_| Failure::TooManyDrops)
    }

    /// Runs work to its end in a task of its own, so that neither a client that goes away nor a
    /// shutdown interrupts it.
    ///
    /// # Errors
    /// Those of the work; [`crate::explicit::problem::Problem::Internal`] if it panics.
    pub(super) async fn carry<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let task = self.tasks.spawn(work.in_current_span());
        task.await.unwrap_or_else(|error| Err(of_join(error)))
    }
}
