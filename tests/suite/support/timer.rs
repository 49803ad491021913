//! A clock for tests. It advances only when a test says so, or by the length of a sleep.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Result;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tailrace::sweep::pacing::Timer;
use tailrace::sweep::report::PassReport;
use tailrace::sweep::{Pacing, Progress, Scope, Settings, run_paced_pass};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::TestDatabase;
use super::wait::until;

/// A clock that stands still but for sleeps, which cost no time and move it on.
pub struct TestTimer {
    origin: Instant,
    passed: Mutex<Duration>,
    slept: Mutex<Vec<Duration>>,
    /// Sleeps that may end.
    may_end: Semaphore,
}

impl TestTimer {
    /// Sleeps end at once.
    pub fn new() -> Arc<Self> {
        Self::with(Semaphore::MAX_PERMITS)
    }

    /// No sleep ends before [`let_go`](Self::let_go).
    pub fn holding() -> Arc<Self> {
        Self::with(0)
    }

    fn with(permits: usize) -> Arc<Self> {
        Arc::new(TestTimer {
            origin: Instant::now(),
            passed: Mutex::default(),
            slept: Mutex::default(),
            may_end: Semaphore::new(permits),
        })
    }

    /// Lets one sleep end.
    pub fn let_go(&self) {
        self.may_end.add_permits(1);
    }

    /// Moves the clock on.
    pub fn advance(&self, length: Duration) {
        *self.passed.lock().expect("no panic") += length;
    }

    /// The sleeps so far, the one that goes on among them.
    pub fn slept(&self) -> Vec<Duration> {
        self.slept.lock().expect("no panic").clone()
    }

    /// Returns once so many sleeps have begun.
    pub async fn sleeps(&self, number: usize) -> Result<()> {
        until(
            &format!("sleep number {number} has begun"),
            async || Ok(self.slept().len() >= number),
        )
        .await
    }
}

impl Timer for TestTimer {
    fn now(&self) -> Instant {
        self.origin + *self.passed.lock().expect("no panic")
    }

    fn sleep(&self, length: Duration) -> BoxFuture<'_, ()> {
        async move {
            self.slept.lock().expect("no panic").push(length);
            self.may_end.acquire().await.expect("never closed").forget();
            self.advance(length);
        }
        .boxed()
    }
}

/// What passes of one process share, by this clock.
pub fn pacing(timer: &Arc<TestTimer>) -> Pacing {
    Pacing::by(timer.clone(), fastrand::Rng::with_seed(7))
}

impl TestDatabase {
    /// One pass by this clock.
    pub async fn sweep_paced(
        &self,
        settings: &Settings,
        pacing: &Pacing,
        progress: &(dyn Fn(Progress<'_>) + Send + Sync),
    ) -> Result<PassReport> {
        let (scope, stop) = (Scope::default(), CancellationToken::new());
        run_paced_pass(&self.tailrace(), settings, &scope, &stop, progress, pacing).await
    }
}
