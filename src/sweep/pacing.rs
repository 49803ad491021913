//! What the passes of one process share: the clock by which they wait, and how long each catalog's commit
//! lock was held lately.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::rules::duty_cycle::Pacer;

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
    /// The removal queues, by catalog id, as they were last counted.
    queues: Mutex<HashMap<i64, Counted>>,
}

/// A count of a catalog's removal queue, which is good for a while: each commit asks for one, and a long
/// queue takes seconds to count.
#[derive(Debug, Clone, Copy)]
struct Counted {
    rows: i64,
    good_until: Instant,
}

/// A count is good for so many times as long as it took, so that counting takes a twentieth of the time.
const GOOD_FOR: u32 = 20;

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
        Pacing {
            timer,
            random: Mutex::new(random),
            pacers: Mutex::default(),
            queues: Mutex::default(),
        }
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

    /// How long a catalog's removal queue was when it was last counted, while that is good.
    pub fn queue(&self, catalog_id: i64) -> Option<i64> {
        let now = self.timer.now();
        let known = locked(&self.queues).get(&catalog_id).copied();
        known.filter(|known| now < known.good_until).map(|known| known.rows)
    }

    /// Notes how long a catalog's removal queue is, by a count that began at `began`.
    pub fn counted(&self, catalog_id: i64, rows: i64, began: Instant) {
        let now = self.timer.now();
        let took = now.saturating_duration_since(began);
        let good_until = now.checked_add(took.saturating_mul(GOOD_FOR)).unwrap_or(now);
        locked(&self.queues).insert(catalog_id, Counted { rows, good_until });
    }
}

/// A panic elsewhere leaves these in no state of which to be afraid.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
