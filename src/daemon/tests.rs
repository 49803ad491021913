use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::*;
use crate::config::LoadOptions;
use crate::scheduler::PassEnd;
use crate::telemetry::capture;

fn config(folder: &Path) -> Config {
    let file = folder.join("health.json").display().to_string();
    let env = [("TAILRACE__HEALTH__FILE".to_owned(), file)].into();
    let folder = folder.to_owned();
    Config::load(&LoadOptions { file: None, env, folder }).expect("valid")
}

async fn after(seconds: u64) -> &'static str {
    sleep(Duration::from_secs(seconds)).await;
    "SIGTERM"
}

/// Time stands still while the heartbeat is written, and may be some milliseconds late.
fn seconds(since: Instant) -> u64 {
    since.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn a_signal_ends_it_once_the_pass_in_flight_has_ended() {
    let log = capture::start("info");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("health.json");
    let seen = file.clone();
    let begun = Instant::now();
    let pass = move |_, stop: CancellationToken| {
        let file = seen.clone();
        async move {
            stop.cancelled().await;
            sleep(Duration::from_secs(9)).await;
            assert!(file.exists(), "the heartbeat goes on while the pass ends");
            PassEnd::Done { wake_in: None }
        }
    };
    supervise(&config(folder.path()), pass, None, None, None, after(30))
        .await
        .expect("a clean end");
    assert_eq!(seconds(begun), 39);
    assert_eq!(log.events(), ["daemon_started", "daemon_stopping", "daemon_stopped"]);
    assert_eq!(log.lines()[1]["signal"], "SIGTERM");
    assert_eq!(log.lines()[2]["pass_ended"], true);
    assert!(!file.exists(), "no heartbeat of a daemon that has ended");
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_does_not_end_is_abandoned_after_the_grace() {
    let log = capture::start("info");
    let folder = tempfile::tempdir().expect("a folder");
    let begun = Instant::now();
    let pass = |_, _| std::future::pending::<PassEnd>();
    supervise(&config(folder.path()), pass, None, None, None, after(30))
        .await
        .expect("a clean end all the same");
    assert_eq!(seconds(begun), 45);
    assert_eq!(log.lines()[2]["pass_ended"], false);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_ends_by_itself_is_fatal_and_named() {
    let log = capture::start("info");
    let folder = tempfile::tempdir().expect("a folder");
    let pass = |_, _| async { panic!("out of paper") };
    let never = std::future::pending();
    let error = supervise(&config(folder.path()), pass, None, None, None, never)
        .await
        .expect_err("a panic");
    let message = format!("{error:#}");
    assert!(message.starts_with("the task scheduler failed: "), "{message}");
    assert!(message.ends_with("panicked with message \"out of paper\""), "{message}");
    assert_eq!(log.events(), ["daemon_started", "task_exited"]);
    assert_eq!(log.lines()[1]["task"], "scheduler");
}

#[tokio::test(start_paused = true)]
async fn when_another_task_dies_the_pass_in_flight_still_ends() {
    let log = capture::start("info");
    let folder = tempfile::tempdir().expect("a folder");
    let begun = Instant::now();
    let file = folder.path().join("health.json");
    let pass = move |_, stop: CancellationToken| {
        let file = file.clone();
        async move {
            stop.cancelled().await;
            sleep(Duration::from_secs(9)).await;
            assert!(file.exists(), "the heartbeat goes on while the pass ends");
            PassEnd::Done { wake_in: None }
        }
    };
    let broken = async {
        sleep(Duration::from_secs(3)).await;
        panic!("deaf")
    };
    let error = supervise(&config(folder.path()), pass, None, None, None, broken)
        .await
        .expect_err("a panic");
    assert!(format!("{error:#}").starts_with("the task signals failed: "), "{error:#}");
    assert_eq!(seconds(begun), 12);
    assert_eq!(log.events(), ["daemon_started", "task_exited", "daemon_stopped"]);
}
