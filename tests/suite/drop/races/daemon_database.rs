//! Tests of a daemon whose database stops and starts.

use anyhow::{Context, Result};
use serde_json::Value;
use sqlx::postgres::PgPoolOptions;
use tailrace_kit::lake::{CatalogOptions, Column, Field, Lake, Table};
use tailrace_kit::server::{PrivateServer, ServerOptions, StopMode};
use tailrace_kit::simulated_loops::HeldFiles;

use crate::support::gate::caught_at_a_row;
use crate::support::process::start;
use crate::support::wait::until;

use super::daemon::Home;
use super::{file, whole};

/// A server of its own with a lake in it, which keeps 7 days. A durable one: the others may forget
/// their last commits in a crash.
async fn server() -> Result<(PrivateServer, Table)> {
    let server = PrivateServer::start(ServerOptions::default()).await?;
    server.create_database("lake", None).await?;
    let url = server.url("lake");
    let pool = PgPoolOptions::new().connect_lazy(&url)?;
    let lake = Lake::install(&pool, "public").await?;
    let catalog = lake.catalog("lake", CatalogOptions::default()).await?;
    let namespace = catalog.namespace("events").await?;
    let columns = [Column::new("at", "timestamptz")];
    let table = catalog.create_table(&namespace, "raw", &columns, &[Field::day("at")]).await?;
    for args in [
        &["migrate"][..],
        &["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "7d"],
    ] {
        let ended = start(&url, args, &[])?.end().await?;
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    Ok((server, table))
}

/// When the last pass ended, as the heartbeat has it.
fn last_pass(home: &Home) -> Result<Option<String>> {
    let file = home.health_file();
    if !file.exists() {
        return Ok(None);
    }
    let report: Value = serde_json::from_slice(&std::fs::read(file)?)?;
    Ok(report["last_pass_at"].as_str().map(str::to_owned))
}

/// Returns once another try has ended: what is logged once has had its chance to be logged again.
async fn another_try(home: &Home) -> Result<()> {
    let before = last_pass(home)?;
    until("the daemon has tried again", async || Ok(last_pass(home)? != before)).await
}

async fn alive(home: &Home, doing: &str) -> Result<()> {
    let health = home.health().await?;
    assert_eq!(health.code, Some(0), "{health:?}");
    assert!(health.stdout.contains(doing), "{health:?}");
    Ok(())
}

#[tokio::test]
async fn a_daemon_outlives_its_database_and_says_so_once_per_change() -> Result<()> {
    let (mut server, table) = server().await?;
    table.append(vec![file(0), file(8)]).await?;
    server.stop(StopMode::Fast).await?;

    // Away at the start.
    let home = Home::new(&[("TAILRACE__SCHEDULE__EVERY", "1s")])?;
    let mut run = home.run(&server.url("lake"), &["run"])?;
    run.event("database_lost", 1).await?;
    until("the heartbeat says so", async || Ok(last_pass(&home)?.is_some())).await?;
    alive(&home, "waiting for the database").await?;
    another_try(&home).await?;
    server.restart(StopMode::Fast).await?;
    run.event("database_back", 1).await?;
    run.event("drop_committed", 1).await?;
    assert_eq!(table.live_files().await?.len(), 1);

    // Lost later, as in a crash.
    server.stop(StopMode::Immediate).await?;
    run.event("database_lost", 2).await?;
    another_try(&home).await?;
    alive(&home, "alive").await?;
    server.restart(StopMode::Fast).await?;
    run.event("database_back", 2).await?;
    table.append(vec![file(9)]).await?;
    run.event("drop_committed", 2).await?;

    run.signal("TERM").await?;
    let ended = run.end().await?;
    assert_eq!(ended.code, Some(0));
    assert_eq!((ended.count("database_lost"), ended.count("database_back")), (2, 2));
    assert_eq!((ended.count("pass_failed"), ended.count("task_exited")), (0, 0));
    assert_eq!(whole::drops(&table.catalog, table.table_id).await?.len(), 2);
    Ok(())
}

/// The server crashes while a drop of the daemon's is under the commit lock.
#[tokio::test]
async fn a_crash_of_the_server_during_a_drop_leaves_no_half_of_it() -> Result<()> {
    let (mut server, table) = server().await?;
    let files = table.append(vec![file(0), file(8), file(9).pending()]).await?.file_ids;
    let vector = table.register_vector(files[1], 1, None).await?;
    let held = HeldFiles::hold(&table.catalog, 10).await?;
    let home = Home::new(&[
        ("TAILRACE__SCHEDULE__EVERY", "1s"),
        ("TAILRACE__DROP__ROW_LOCK_TIMEOUT", "10s"),
        ("TAILRACE__SWEEP__LOCK_DUTY", "1.0"),
    ])?;
    let mut run = home.run(&server.url("lake"), &["run"])?;
    caught_at_a_row(&table.catalog).await?;
    server.stop(StopMode::Immediate).await?;
    drop(held);
    run.event("database_lost", 1).await?;
    server.restart(StopMode::Fast).await?;
    run.event("drop_committed", 1).await?;
    run.signal("TERM").await?;
    let ended = run.end().await?;
    assert_eq!((ended.code, ended.count("drop_committed")), (Some(0), 1));
    let drops = whole::drops(&table.catalog, table.table_id).await?;
    let head = table.catalog.head().await?;
    assert_eq!(drops, [(head, 2)]);
    let live: Vec<_> = table.live_files().await?.iter().map(|file| file.data_file_id).collect();
    assert_eq!(live, files[..1]);
    let vectors = table.all_vectors().await?;
    let ended = vectors.first().context("the vector")?;
    assert_eq!((ended.delete_file_id, ended.end_snapshot), (vector, Some(head)));
    Ok(())
}
