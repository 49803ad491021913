//! What the passes of one process share: the clock that they wait by, and how much of each
//! catalog's commit lock they held of late.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::pace::Pacer;

/// A clock that never goes back, and what waits by it.
pub trait Timer: Send + Sync {
    /// The time.
    fn now(&self) -> Instant;

    /// Ends once so much time has passed.
    fn sleep(&self, length: Duration) -> BoxFuture<'_, ()>;
}

/// The clock of the runtime.
#[derive(Debug, Clone, Copy, Default)]
struct Runtime;

impl Timer for Runtime {
    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }

    fn sleep(&self, length: Duration) -> BoxFuture<'_, ()> {
        tokio::time::sleep(length).boxed()
    }
}

/// Shared by passes for as long as the process lives, so that one that follows another does not
/// start with a share of the lock that the other has used up.
pub struct Pacing {
    timer: Arc<dyn Timer>,
    random: Mutex<fastrand::Rng>,
    /// By catalog id.
    pacers: Mutex<HashMap<i64, Pacer>>,
}

impl Default for Pacing {
    fn default() -> Self {
        Pacing::by(Arc::new(Runtime), fastrand::Rng::new())
    }
}

impl fmt::Debug for Pacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pacing").field("pacers", &self.pacers).finish_non_exhaustive()
    }
}

impl Pacing {
    /// Nothing held so far, by this clock, with this source of jitter.
    pub fn by(timer: Arc<dyn Timer>, random: fastrand::Rng) -> Self {
        Pacing { timer, random: Mutex::new(random), pacers: Mutex::default() }
    }

    /// The time by the clock.
    pub fn now(&self) -> Instant {
        self.timer.now()
    }

    /// Sleeps; ends at once when it is told to stop.
    pub async fn sleep(&self, length: Duration, stop: &CancellationToken) {
        if length.is_zero() {
            return;
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.timer.sleep(length) => {}
        }
    }

    /// A number in [0, 1) to spread pauses with.
    pub fn random(&self) -> f64 {
        locked(&self.random).f64()
    }

    /// Notes a hold of a catalog's commit lock that has just ended.
    pub fn held(&self, catalog_id: i64, length: Duration) {
        let now = self.timer.now();
        locked(&self.pacers).entry(catalog_id).or_default().held(now, length);
    }

    /// How long a catalog's commit lock has to be left alone from now on.
    pub fn rest(&self, catalog_id: i64, duty: f64) -> Duration {
        let now = self.timer.now();
        locked(&self.pacers).get(&catalog_id).map_or(Duration::ZERO, |pacer| pacer.rest(now, duty))
    }
}

/// A panic elsewhere leaves these in no state of which to be afraid.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
