//! Tests of `tailrace run` as a process: its first pass, its signals, its heartbeat.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tailrace_kit::simulated_loops::HeldFiles;
use tempfile::TempDir;
use tokio::net::UnixDatagram;

use crate::support::TestDatabase;
use crate::support::gate::{Gate, caught_at_a_row};
use crate::support::process::{Ended, Running, start};

use super::{Scene, file, whole};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder for what a daemon writes, and the variables that say so.
pub struct Home {
    folder: TempDir,
    env: Vec<(String, String)>,
}

impl Home {
    pub fn new(further: &[(&str, &str)]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let health = folder.path().join("health.json").to_string_lossy().into_owned();
        let mut env = vec![
            ("TAILRACE__HEALTH__FILE".to_owned(), health),
            ("TAILRACE__SCHEDULE__JITTER".to_owned(), "0s".to_owned()),
        ];
        env.extend(further.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Ok(Home { folder, env })
    }

    pub fn health_file(&self) -> PathBuf {
        self.folder.path().join("health.json")
    }

    pub fn run(&self, url: &str, args: &[&str]) -> Result<Running> {
        let env: Vec<_> =
            self.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        start(url, args, &env)
    }

    /// What `tailrace health` says, without a database to ask.
    pub async fn health(&self) -> Result<Ended> {
        self.run("postgres://nobody@127.0.0.1:1/none", &["health"])?.end().await
    }
}

fn daemon(home: &Home, database: &TestDatabase) -> Result<Running> {
    home.run(&database.url(), &["run"])
}

/// The socket on which systemd hears of a service.
struct Systemd {
    folder: TempDir,
    socket: UnixDatagram,
}

impl Systemd {
    fn listen() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let socket = UnixDatagram::bind(folder.path().join("notify"))?;
        Ok(Systemd { folder, socket })
    }

    fn path(&self) -> String {
        self.folder.path().join("notify").to_string_lossy().into_owned()
    }

    /// The next message.
    async fn hears(&self) -> Result<String> {
        let mut message = [0; 256];
        let heard = tokio::time::timeout(PATIENCE, self.socket.recv(&mut message)).await;
        let length = heard.context("systemd hears nothing")??;
        Ok(String::from_utf8_lossy(&message[..length]).trim().to_owned())
    }
}

#[tokio::test]
async fn a_daemon_drops_at_its_start_is_ready_and_stops_when_told() -> Result<()> {
    let scene = Scene::new(&[0, 8, 9]).await?;
    let systemd = Systemd::listen()?;
    let home = Home::new(&[("NOTIFY_SOCKET", &systemd.path())])?;
    let mut run = daemon(&home, &scene.database)?;
    assert_eq!(systemd.hears().await?, "READY=1");
    run.event("pass_finished", 1).await?;
    assert_eq!(scene.live().await?, [scene.files[0]]);
    let health = home.health().await?;
    assert_eq!(health.code, Some(0), "{health:?}");
    assert!(health.stdout.starts_with("alive"), "{health:?}");

    run.signal("TERM").await?;
    let ended = run.end().await?;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""));
    let mut events = ended.events();
    // Compaction claims are renewed beside the pass, at any place among its events.
    events.retain(|event| !["schedule_next", "shield_renewed", "table_has_work"].contains(event));
    assert_eq!(
        events,
        [
            "daemon_started",
            "http_listening",
            "pass_started",
            "drop_committed",
            "table_finished",
            "pass_finished",
            "daemon_stopping",
            "http_stopped",
            "daemon_stopped"
        ]
    );
    assert!(!home.health_file().exists());
    assert_eq!(home.health().await?.code, Some(1), "it is gone");
    whole::drops(&scene.catalog, scene.table.table_id).await?;
    Ok(())
}

#[tokio::test]
async fn a_commit_in_flight_ends_and_no_other_starts() -> Result<()> {
    let told = ("READY=1".to_owned(), "STOPPING=1".to_owned());
    for signal in ["TERM", "INT"] {
        let scene = Scene::of(vec![file(10).pending(), file(9), file(8)]).await?;
        let held = HeldFiles::hold(&scene.catalog, 10).await?;
        let systemd = Systemd::listen()?;
        let home = Home::new(&[
            ("NOTIFY_SOCKET", &systemd.path()),
            ("TAILRACE__DROP__ROW_LOCK_TIMEOUT", "10s"),
            ("TAILRACE__SWEEP__MAX_FILES_PER_COMMIT", "1"),
            ("TAILRACE__SWEEP__LOCK_DUTY", "1.0"),
        ])?;
        let mut run = daemon(&home, &scene.database)?;
        caught_at_a_row(&scene.catalog).await?;
        run.signal(signal).await?;
        run.event("daemon_stopping", 1).await?;
        // Only as long as the daemon lives, which does not wait for systemd to read it.
        assert_eq!((systemd.hears().await?, systemd.hears().await?), told);
        assert!(!run.has_ended()?, "it waits for its commit");
        held.release().await?;
        let ended = run.end().await?;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(ended.count("drop_committed"), 1);
        let line = |event: &str| ended.log.iter().find(|line| line["event"] == event).cloned();
        assert_eq!(line("table_finished").context("a table")?["outcome"], "partial");
        assert_eq!(line("daemon_stopping").context("stopping")?["signal"], format!("SIG{signal}"));
        assert_eq!(line("daemon_stopped").context("stopped")?["pass_ended"], true);
        assert_eq!(whole::drops(&scene.catalog, scene.table.table_id).await?.len(), 1);
        assert_eq!(scene.live().await?, scene.files[1..]);
    }
    Ok(())
}

/// After the grace the daemon goes without its commit, which is then none.
#[tokio::test]
async fn a_commit_that_outlives_the_grace_is_abandoned_whole() -> Result<()> {
    let scene = Scene::of(vec![file(9).pending(), file(8)]).await?;
    let held = HeldFiles::hold(&scene.catalog, 10).await?;
    let home = Home::new(&[
        ("TAILRACE__DROP__ROW_LOCK_TIMEOUT", "10s"),
        ("TAILRACE__SHUTDOWN__GRACE", "100ms"),
    ])?;
    let run = daemon(&home, &scene.database)?;
    caught_at_a_row(&scene.catalog).await?;
    run.signal("TERM").await?;
    let ended = run.end().await?;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let stopped = ended.log.iter().find(|line| line["event"] == "daemon_stopped");
    assert_eq!(stopped.context("stopped")?["pass_ended"], false);
    held.release().await?;
    // The lock is free as soon as the server has noticed.
    scene.table.append(vec![file(0)]).await?;
    assert_eq!(whole::drops(&scene.catalog, scene.table.table_id).await?, []);
    assert_eq!(scene.live().await?.len(), 3);
    Ok(())
}

/// The first pass takes longer than two ticks, for it waits for a lock that it does not get.
#[tokio::test]
async fn passes_never_overlap() -> Result<()> {
    let scene = Scene::new(&[0, 8]).await?;
    let home = Home::new(&[
        ("TAILRACE__SCHEDULE__EVERY", "1s"),
        ("TAILRACE__SWEEP__LOCK_TIMEOUT", "2200ms"),
    ])?;
    let gate = Gate::shut(&scene.catalog).await?;
    let mut run = daemon(&home, &scene.database)?;
    run.event("pass_finished", 1).await?;
    gate.open().await?;
    run.event("drop_committed", 1).await?;
    run.event("pass_finished", 2).await?;
    run.signal("TERM").await?;
    let ended = run.end().await?;
    assert_eq!(ended.code, Some(0));
    assert_eq!((ended.count("lock_not_had"), ended.count("catalog_skipped")), (1, 0));
    let passes: Vec<_> =
        ended.events().into_iter().filter(|event| event.starts_with("pass_")).collect();
    assert!(passes.len() >= 4);
    for (at, event) in passes.iter().enumerate() {
        let expected = ["pass_started", "pass_finished"][at % 2];
        assert_eq!(*event, expected, "{passes:?}");
    }
    Ok(())
}

#[tokio::test]
async fn the_heartbeat_of_a_killed_daemon_gets_old() -> Result<()> {
    let scene = Scene::new(&[0]).await?;
    let home = Home::new(&[])?;
    let mut run = daemon(&home, &scene.database)?;
    run.event("pass_finished", 1).await?;
    run.kill().await?;
    let mut report: Value = serde_json::from_slice(&std::fs::read(home.health_file())?)?;
    let written: chrono::DateTime<chrono::Utc> =
        report["written_at"].as_str().context("a time")?.parse()?;
    report["written_at"] = json!(written - chrono::TimeDelta::seconds(120));
    std::fs::write(home.health_file(), report.to_string())?;
    let health = home.health().await?;
    assert_eq!(health.code, Some(1), "{health:?}");
    Ok(())
}

/// Where nothing is configured, it is in a folder that no other user can write in, among those for
/// temporary files, where another user may have taken that folder's name.
#[tokio::test]
async fn the_usual_heartbeat_is_in_a_folder_of_this_user_alone() -> Result<()> {
    let scene = Scene::new(&[0]).await?;
    let shared = tempfile::tempdir()?;
    std::fs::set_permissions(shared.path(), Permissions::from_mode(0o1777))?;
    let name = shared.path().to_string_lossy().into_owned();
    let env = [("TMPDIR", name.as_str())];
    let mut run = scene.database.start(&["run"], &env)?;
    run.event("pass_finished", 1).await?;
    let folder = shared.path().join(format!("tailrace-{}", shared.path().metadata()?.uid()));
    assert_eq!(folder.metadata()?.mode() & 0o7777, 0o700);
    let alive = scene.database.start(&["health"], &env)?.end().await?;
    assert_eq!(alive.code, Some(0), "{alive:?}");
    assert!(folder.join("health.json").exists());
    run.signal("TERM").await?;
    assert_eq!(run.end().await?.code, Some(0));

    let elsewhere = tempfile::tempdir()?;
    std::fs::remove_dir(&folder)?;
    std::os::unix::fs::symlink(elsewhere.path(), &folder)?;
    let mut run = scene.database.start(&["run"], &env)?;
    let told = run.told("health_unwritable").await?;
    let says = format!(
        "its folder {} is not a folder; set health.file to one in another folder",
        folder.display()
    );
    assert_eq!(told["error"], says);
    std::fs::write(
        elsewhere.path().join("health.json"),
        json!({"pid": 1, "written_at": chrono::Utc::now(), "state": "idle", "last_pass_at": null,
               "last_pass_ok": null})
        .to_string(),
    )?;
    let dead = scene.database.start(&["health"], &env)?.end().await?;
    assert_eq!(dead.code, Some(1), "{dead:?}");
    assert!(dead.log[0].to_string().contains(&says), "{dead:?}");
    Ok(())
}

/// A port that another process has, such as the first of two daemons on a host: passes run.
#[tokio::test]
async fn a_daemon_whose_port_is_taken_works_without_it() -> Result<()> {
    let scene = Scene::new(&[0, 9]).await?;
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let address = taken.local_addr()?.to_string();
    let home = Home::new(&[("TAILRACE__HTTP__BIND", &address)])?;
    let mut run = daemon(&home, &scene.database)?;
    let told = run.told("http_unavailable").await?;
    assert_eq!((&told["level"], &told["address"]), (&json!("ERROR"), &json!(address)));
    run.event("pass_finished", 1).await?;
    assert_eq!(scene.live().await?, [scene.files[0]]);
    run.signal("TERM").await?;
    assert_eq!(run.end().await?.code, Some(0));
    Ok(())
}
