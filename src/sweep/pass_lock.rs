//! Allows one pass at a time in this process. Between daemons, the lease of each catalog does that.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

/// Held while a pass runs.
#[derive(Debug, Clone, Default)]
pub struct PassLock(Arc<Mutex<()>>);

/// The lock is held until this is dropped.
#[derive(Debug)]
pub struct PassLockGuard {
    _guard: OwnedMutexGuard<()>,
}

impl PassLock {
    /// Waits for the lock; who waits longest gets it first.
    pub async fn acquire(&self) -> PassLockGuard {
        PassLockGuard { _guard: self.0.clone().lock_owned().await }
    }

    /// Acquires the lock if nobody holds it.
    pub fn try_acquire(&self) -> Option<PassLockGuard> {
        self.0.clone().try_lock_owned().ok().map(|guard| PassLockGuard { _guard: guard })
    }
}
