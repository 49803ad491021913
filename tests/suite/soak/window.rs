//! The drop window, and the files in it that compaction should not rewrite.

use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use anyhow::Result;
use tailrace::rules::instant::UtcInstant;

use super::Soak;

/// Whether `tailrace run` claims the files of the drop window, so that a compaction which heeds
/// claims leaves them alone: then a rewrite of one is a failure. Otherwise they are counted.
pub const CLAIMED: bool = true;
/// What makes the daemon's claims quick, where it makes any.
pub const SETTINGS: &[(&str, &str)] =
    if CLAIMED { &[("TAILRACE__COMPACTION__RENEW_EVERY", "1s")] } else { &[] };
/// A file that has been in the window for so long has seen a renewal, and more than one.
const SETTLED: Duration = Duration::from_secs(6);

/// A window since it has been in force: of a policy that is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The policy's.
    pub keep_days: i64,
    /// When it was there for everybody to see.
    pub since: Instant,
}

impl Window {
    /// Whether a day was in it already a while ago, expired or within a day of it.
    fn had(&self, day: &str) -> bool {
        let today = UtcInstant::from(chrono::Utc::now() - SETTLED).days() as i64;
        day.parse::<i64>().is_ok_and(|day| today - day >= self.keep_days)
    }
}

/// Live files that have been in a window for longer than a renewal.
#[derive(Debug, Default)]
pub struct Settled {
    window: Option<Window>,
    files: BTreeSet<i64>,
}

/// Those of now.
pub async fn settled(soak: &Soak) -> Result<Settled> {
    let window = in_force(soak).filter(|window| window.since.elapsed() > SETTLED);
    let mut history = soak.history.lock().await;
    history.read().await?;
    let files = window.map(|window| {
        let long = history.live_files().filter(|(_, known)| known.elapsed() > SETTLED);
        let inside = long.filter(|(file, _)| {
            file.values.first().and_then(Option::as_deref).is_some_and(|day| window.had(day))
        });
        inside.map(|(file, _)| file.data_file_id).collect()
    });
    Ok(Settled { window, files: files.unwrap_or_default() })
}

impl Settled {
    /// Nothing, if the window has changed meanwhile: what left it may be rewritten.
    pub fn if_still_in_force(self, soak: &Soak) -> BTreeSet<i64> {
        if self.window == in_force(soak) { self.files } else { BTreeSet::new() }
    }
}

fn in_force(soak: &Soak) -> Option<Window> {
    *soak.window.lock().unwrap_or_else(PoisonError::into_inner)
}
