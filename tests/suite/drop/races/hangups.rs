//! Tests that SIGHUP asks for a reload and never ends a daemon, whatever the daemon is doing.

use anyhow::Result;
use serde_json::json;

use super::Scene;
use super::daemon::Home;
use crate::http::tokens::{line, write};
use crate::support::process::Running;

/// Sends it, sees what the daemon says to it, and that it goes on and ends as it should.
async fn survives(mut run: Running, told: &str) -> Result<()> {
    for times in 1..=2 {
        run.signal("HUP").await?;
        run.event(told, times).await?;
    }
    run.signal("TERM").await?;
    let ended = run.end().await?;
    assert_eq!((ended.code, ended.count("daemon_stopped")), (Some(0), 1), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn a_daemon_without_tokens_says_that_there_is_nothing_to_reload() -> Result<()> {
    let scene = Scene::new(&[0]).await?;
    // With the port off, a file of tokens is not looked at.
    for further in [
        &[][..],
        &[("TAILRACE__HTTP__BIND", "off")],
        &[("TAILRACE__HTTP__BIND", "off"), ("TAILRACE__HTTP__TOKENS_FILE", "/nowhere")],
    ] {
        let home = Home::new(further)?;
        let mut run = home.run(&scene.database.url(), &["run"])?;
        run.event("pass_finished", 1).await?;
        run.signal("HUP").await?;
        let told = run.told("nothing_to_reload").await?;
        assert_eq!(told["level"], json!("INFO"));
        survives(run, "nothing_to_reload").await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_daemon_that_waits_for_the_database_is_not_ended() -> Result<()> {
    let home = Home::new(&[])?;
    let mut run = home.run("postgres://nobody@127.0.0.1:1/none", &["run"])?;
    run.event("database_lost", 1).await?;
    survives(run, "nothing_to_reload").await
}

/// The tokens are read anew although there is no port to show them at.
#[tokio::test]
async fn a_daemon_whose_port_is_taken_is_not_ended() -> Result<()> {
    let scene = Scene::new(&[0]).await?;
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("tokens");
    write(&file, &line("etl", "operator", "act"))?;
    let home = Home::new(&[
        ("TAILRACE__HTTP__BIND", &taken.local_addr()?.to_string()),
        ("TAILRACE__HTTP__TOKENS_FILE", &file.to_string_lossy()),
    ])?;
    let mut run = home.run(&scene.database.url(), &["run"])?;
    run.event("http_unavailable", 1).await?;
    run.event("pass_finished", 1).await?;
    survives(run, "tokens_reloaded").await
}
