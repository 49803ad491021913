//! Tests that the daemon continues to work, whatever happens to its log.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

use super::{full, unread};
use crate::drop::races::{Scene, file};
use crate::http::client::Client;
use crate::support::process::program;
use crate::support::wait::until;

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A daemon that writes its log there and runs a pass so often.
fn daemon(scene: &Scene, every: &str, log: impl Into<Stdio>) -> Result<Child> {
    let often = [("TAILRACE__SCHEDULE__EVERY", every), ("TAILRACE__SCHEDULE__JITTER", "0s")];
    let mut program = program(&scene.database.url(), &["run"], &often);
    Ok(program.stdout(Stdio::null()).stderr(log).spawn()?)
}

/// Makes sure that passes drop a day, and then another one.
async fn goes_on(scene: &Scene) -> Result<()> {
    for age in [9, 10] {
        let kept = scene.files[0];
        until("the day is gone", async || Ok(scene.live().await? == [kept])).await?;
        scene.table.append(vec![file(age)]).await?;
    }
    Ok(())
}

/// Stops it as a supervisor does; its exit code.
async fn stopped(mut daemon: Child) -> Result<Option<i32>> {
    let pid = daemon.id().context("it runs")?.to_string();
    let told = Command::new("kill").args(["-s", "TERM", &pid]).status().await?;
    ensure!(told.success(), "kill {pid}");
    let ended = tokio::time::timeout(PATIENCE, daemon.wait()).await;
    Ok(ended.context("it does not end")??.code())
}

/// A pipe that is full, and the end that nobody reads yet.
async fn stuffed() -> Result<(std::os::fd::OwnedFd, pipe::Receiver)> {
    let (writer, reader) = pipe::pipe()?;
    writer.writable().await?;
    let mut length = 0;
    while let Ok(more) = writer.try_write(b".\n") {
        length += more;
    }
    ensure!(length >= 4096, "{length} bytes are not all of a pipe");
    Ok((writer.into_blocking_fd()?, reader))
}

async fn next(lines: &mut Lines<impl AsyncBufRead + Unpin>) -> Result<Value> {
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.context("no line")??;
    Ok(serde_json::from_str(&line.context("the log has ended")?)?)
}

#[tokio::test]
async fn it_goes_on_when_nobody_reads_its_log_any_more() -> Result<()> {
    let scene = Scene::new(&[0, 8]).await?;
    let daemon = daemon(&scene, "1s", unread()?)?;
    goes_on(&scene).await?;
    assert_eq!(stopped(daemon).await?, Some(0));
    Ok(())
}

#[tokio::test]
async fn it_goes_on_when_the_disk_of_its_log_is_full() -> Result<()> {
    let scene = Scene::new(&[0, 8]).await?;
    let daemon = daemon(&scene, "1s", full()?)?;
    goes_on(&scene).await?;
    assert_eq!(stopped(daemon).await?, Some(0));
    Ok(())
}

#[tokio::test]
async fn it_goes_on_and_ends_when_the_reader_of_its_log_stands_still() -> Result<()> {
    let scene = Scene::new(&[0, 8]).await?;
    let (log, reader) = stuffed().await?;
    let daemon = daemon(&scene, "1s", log)?;
    goes_on(&scene).await?;
    assert_eq!(stopped(daemon).await?, Some(0));
    drop(reader);
    Ok(())
}

/// What waited is all there once it is read, in its order.
#[tokio::test]
async fn what_waits_for_a_reader_is_not_lost() -> Result<()> {
    let scene = Scene::new(&[0, 8]).await?;
    let (log, mut reader) = stuffed().await?;
    let daemon = daemon(&scene, "1d", log)?;
    until("the day is gone", async || Ok(scene.live().await?.len() == 1)).await?;
    let reading = tokio::spawn(async move {
        let mut text = String::new();
        reader.read_to_string(&mut text).await.map(|_| text)
    });
    assert_eq!(stopped(daemon).await?, Some(0));
    let text = reading.await??;
    let lines = text.lines().filter(|line| *line != ".").map(serde_json::from_str);
    let lines = lines.collect::<Result<Vec<Value>, _>>()?;
    let told = |event: &str| lines.iter().filter(|line| line["event"] == event).count();
    for event in ["daemon_started", "drop_committed", "daemon_stopping", "daemon_stopped"] {
        assert_eq!(told(event), 1, "{event}: {text}");
    }
    assert_eq!(told("log_lines_lost"), 0, "{text}");
    Ok(())
}

fn reader(fifo: &Path) -> Result<Lines<BufReader<pipe::Receiver>>> {
    Ok(BufReader::new(pipe::OpenOptions::new().open_receiver(fifo)?).lines())
}

#[tokio::test]
async fn how_many_lines_were_lost_is_told_when_a_reader_is_back() -> Result<()> {
    let scene = Scene::new(&[0, 8]).await?;
    let folder = tempfile::tempdir()?;
    let fifo = folder.path().join("log");
    ensure!(Command::new("mkfifo").arg(&fifo).status().await?.success(), "mkfifo");
    let mut log = reader(&fifo)?;
    let daemon = daemon(&scene, "1d", std::fs::OpenOptions::new().write(true).open(&fifo)?)?;
    // The first pass and the renewal of claims beside it are the last that happens by itself.
    let mut address = None;
    let mut awaited = vec!["pass_finished", "shield_renewed"];
    while !awaited.is_empty() {
        let line = next(&mut log).await?;
        let event = line["event"].as_str().unwrap_or_default();
        awaited.retain(|name| *name != event);
        if event == "http_listening" {
            address = line["address"].as_str().map(str::parse).transpose()?;
        }
    }
    drop(log);

    scene.table.append(vec![file(9)]).await?;
    let client = Client { address: address.context("it listens")?, headers: Vec::new() };
    let pass = "/v1/catalogs/lake/maintenance/partition-retention";
    // The first pass lets go of its lock a moment after its line is written: 409 until then.
    until("a pass is begun", async || Ok(client.send("POST", pass, b"").await?.status == 202))
        .await?;
    until("the day is gone", async || Ok(scene.live().await?.len() == 1)).await?;

    let mut log = reader(&fifo)?;
    let told =
        ["http_request", "pass_started", "drop_committed", "table_finished", "pass_finished"];
    // Whatever the pass told after somebody read again is there.
    let (mut lost, mut there) = (0, 0);
    while lost + there < told.len() as u64 {
        let line = next(&mut log).await?;
        match line["event"].as_str().unwrap_or_default() {
            "log_lines_lost" => {
                assert_eq!(line["level"], "WARN");
                lost += line["lines"].as_u64().context("a number")?;
            }
            event => there += u64::from(told.contains(&event)),
        }
    }
    assert!(lost >= 2, "{lost} lost, {there} there");
    assert_eq!(stopped(daemon).await?, Some(0));
    while let Some(line) = log.next_line().await? {
        assert!(!line.contains("log_lines_lost"), "{line}");
    }
    Ok(())
}
