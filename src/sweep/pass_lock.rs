//! One pass at a time in this process, whoever asks for it. (Between daemons the lease of each
//! catalog does that.)

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

/// Whose turn it is.
#[derive(Debug, Clone, Default)]
pub struct Turn(Arc<Mutex<()>>);

/// The turn, until it is dropped.
#[derive(Debug)]
pub struct Taken {
    _guard: OwnedMutexGuard<()>,
}

impl Turn {
    /// Waits for the turn; who waits longest gets it first.
    pub async fn wait(&self) -> Taken {
        Taken { _guard: self.0.clone().lock_owned().await }
    }

    /// Takes the turn if nobody has it.
    pub fn take(&self) -> Option<Taken> {
        self.0.clone().try_lock_owned().ok().map(|guard| Taken { _guard: guard })
    }
}
