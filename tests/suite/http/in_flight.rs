//! Tests of a request in flight when its client goes away, or the daemon is told to stop.

use anyhow::Result;
use sqlx::{Connection, PgConnection};
use tokio::io::AsyncWriteExt;

use super::Scene;
use super::client::Answer;
use crate::support::wait::until;

const BODY: &str = r#"{"field": "at", "keep": "30d"}"#;

/// Somebody who holds the table's policy row, so that whoever sets it waits.
async fn holder(scene: &Scene) -> Result<PgConnection> {
    scene.database.policy("lake", "events.raw", "at", "7d").await?;
    let mut holder = scene.database.connection().await?;
    sqlx::raw_sql("begin; select from tailrace.policy for update").execute(&mut holder).await?;
    Ok(holder)
}

async fn waits_for_the_row(scene: &Scene) -> Result<()> {
    let query = "SELECT count(*) FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND datname = current_database()";
    until("the request waits", async || {
        Ok(scene.database.text(query).await?.as_deref() == Some("1"))
    })
    .await
}

async fn keep(scene: &Scene) -> Result<Option<String>> {
    scene.database.text("SELECT keep FROM tailrace.policy").await
}

#[tokio::test]
async fn a_client_that_goes_away_drops_nothing_where_it_stands() -> Result<()> {
    let mut scene = Scene::new().await?;
    let mut holder = holder(&scene).await?;
    let client = scene.client.with("content-type", "application/json");
    let mut stream = client.connect().await?;
    let request = client.head("PUT", &scene.policy(""), BODY.len()) + BODY;
    stream.write_all(request.as_bytes()).await?;
    waits_for_the_row(&scene).await?;
    drop(stream);
    let line = scene.daemon.told("http_request").await?;
    assert_eq!(line["status"], 499);
    assert_eq!(keep(&scene).await?.as_deref(), Some("7d"));
    sqlx::raw_sql("commit").execute(&mut holder).await?;
    until("it is set", async || Ok(keep(&scene).await?.as_deref() == Some("30d"))).await?;
    holder.close().await?;
    Ok(())
}

#[tokio::test]
async fn a_request_in_flight_is_answered_before_the_daemon_ends() -> Result<()> {
    let mut scene = Scene::new().await?;
    let mut holder = holder(&scene).await?;
    let client = scene.client.with("content-type", "application/json");
    let mut stream = client.connect().await?;
    let mut idle = client.connect().await?;
    idle.write_all(client.head("GET", "/livez", 0).as_bytes()).await?;
    assert_eq!(Answer::read(&mut idle).await?.status, 200);
    let request = client.head("PUT", &scene.policy(""), BODY.len()) + BODY;
    stream.write_all(request.as_bytes()).await?;
    waits_for_the_row(&scene).await?;
    scene.daemon.signal("TERM").await?;
    scene.daemon.event("daemon_stopping", 1).await?;
    until("nobody new is let in", async || Ok(client.connect().await.is_err())).await?;
    assert!(!scene.daemon.has_ended()?);
    sqlx::raw_sql("commit").execute(&mut holder).await?;
    let answer = Answer::read(&mut stream).await?;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()?["policies"][0]["keep"], "30d");
    let ended = scene.daemon.end().await?;
    assert_eq!(ended.code, Some(0));
    let down = ended.log.iter().find(|line| line["event"] == "http_stopped");
    assert_eq!(down.map(|line| &line["all_ended"]), Some(&true.into()));
    assert_eq!(ended.count("daemon_stopped"), 1);
    holder.close().await?;
    Ok(())
}

#[tokio::test]
async fn one_that_outlives_the_grace_is_abandoned() -> Result<()> {
    let scene = Scene::with(&[("TAILRACE__SHUTDOWN__GRACE", "200ms")]).await?;
    let mut holder = holder(&scene).await?;
    let client = scene.client.with("content-type", "application/json");
    let mut stream = client.connect().await?;
    let request = client.head("PUT", &scene.policy(""), BODY.len()) + BODY;
    stream.write_all(request.as_bytes()).await?;
    waits_for_the_row(&scene).await?;
    let Scene { database, daemon, .. } = scene;
    daemon.signal("TERM").await?;
    let ended = daemon.end().await?;
    assert_eq!(ended.code, Some(0));
    let down = ended.log.iter().find(|line| line["event"] == "http_stopped");
    assert_eq!(down.map(|line| &line["all_ended"]), Some(&false.into()));
    sqlx::raw_sql("commit").execute(&mut holder).await?;
    holder.close().await?;
    assert!(Answer::read(&mut stream).await.is_err());
    let kept = database.text("SELECT keep FROM tailrace.policy").await?;
    assert_eq!(kept.as_deref(), Some("7d"));
    Ok(())
}
