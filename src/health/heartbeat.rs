//! The task that writes the heartbeat.

use std::time::Duration;

use chrono::Utc;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::{Place, Report, Status, write};
use crate::events;

/// The time between two heartbeats.
pub const EVERY: Duration = Duration::from_secs(5);

/// Writes a heartbeat at once, every [`EVERY`] and whenever the status changes, until `end`; then deletes
/// the file. It logs once that the file cannot be written, and continues. It logs again only after a
/// write succeeded in between.
pub async fn beat(place: Place, mut status: watch::Receiver<Status>, end: CancellationToken) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = false;
    let mut watched = true;
    loop {
        tokio::select! {
            () = end.cancelled() => break,
            _ = ticks.tick() => {}
            changed = status.changed(), if watched => watched = changed.is_ok(),
        }
        let now = *status.borrow_and_update();
        match write_elsewhere(&place, now).await {
            Ok(()) => told = false,
            Err(error) if !told => {
                told = true;
                tracing::warn!(
                    event = events::HEALTH_UNWRITABLE,
                    file = %place.file().display(),
                    %error,
                    "The heartbeat cannot be written; `tailrace health` will call this daemon dead"
                );
            }
            Err(_) => {}
        }
    }
    // Gone already, or never written: both fine.
    let _ = tokio::fs::remove_file(place.file()).await;
}

/// Writes on a thread outside the runtime's worker threads, so that a disk that hangs stops nothing else.
async fn write_elsewhere(place: &Place, status: Status) -> std::io::Result<()> {
    let report = Report { pid: std::process::id(), written_at: Utc::now(), status };
    let place = place.clone();
    tokio::task::spawn_blocking(move || write(&place, &report)).await?
}

#[cfg(test)]
mod tests {
    use super::super::{State, check};
    use super::*;
    use crate::telemetry::capture;

    fn state(place: &Place) -> Option<State> {
        check(place, Duration::from_secs(3600), Utc::now()).ok().map(|found| found.status.state)
    }

    /// Lets the heartbeat task run until the file has `wanted`, without advancing the test's time.
    async fn until(place: &Place, wanted: Option<State>) {
        while state(place) != wanted {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn the_file_follows_the_status_and_leaves_with_the_daemon() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("health.json");
        let place = Place::File(path.clone());
        let (sender, receiver) = watch::channel(Status::STARTING);
        let end = CancellationToken::new();
        let task = tokio::spawn(beat(place.clone(), receiver, end.clone()));
        until(&place, Some(State::Starting)).await;
        sender.send_modify(|status| status.state = State::Pass);
        until(&place, Some(State::Pass)).await;
        end.cancel();
        task.await.expect("no panic");
        assert!(!path.exists());
    }

    #[tokio::test(start_paused = true)]
    async fn it_beats_without_a_change_and_when_none_can_come_any_more() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("health.json");
        let place = Place::File(path.clone());
        let (sender, receiver) = watch::channel(Status::STARTING);
        drop(sender);
        let end = CancellationToken::new();
        let task = tokio::spawn(beat(place.clone(), receiver, end.clone()));
        until(&place, Some(State::Starting)).await;
        for _ in 0..3 {
            std::fs::remove_file(&path).expect("it was there");
            tokio::time::advance(EVERY).await;
            until(&place, Some(State::Starting)).await;
        }
        end.cancel();
        task.await.expect("no panic");
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_cannot_be_written_is_reported_once() {
        let log = capture::start("info");
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place::File(folder.path().join("missing").join("health.json"));
        let (_sender, receiver) = watch::channel(Status::STARTING);
        let end = CancellationToken::new();
        let task = tokio::spawn(beat(place, receiver, end.clone()));
        tokio::time::sleep(EVERY * 10).await;
        end.cancel();
        task.await.expect("no panic");
        assert_eq!(log.events(), ["health_unwritable"]);
    }
}
