//! Tests of the probes and the metrics.

use anyhow::Result;
use tailrace_kit::lake::Lake;
use tailrace_kit::server::{PrivateServer, ServerOptions, StopMode};

use super::client::Client;
use super::{Scene, address};
use crate::support::process::start;
use crate::support::wait::until;

const UNAVAILABLE: &str = r#"{"detail":"the database cannot be used at the moment; nothing was done, try again","error":"unavailable"}"#;

#[tokio::test]
async fn without_the_database_it_lives_and_is_not_healthy() -> Result<()> {
    let mut server = PrivateServer::start(ServerOptions::for_tests()).await?;
    server.create_database("lake", None).await?;
    let url = server.url("lake");
    let pool = sqlx::PgPool::connect(&url).await?;
    Lake::install(&pool, "public").await?;
    pool.close().await;
    let mut daemon = start(&url, &["run"], &[("TAILRACE__DATABASE__CONNECT_TIMEOUT", "1s")])?;
    let client = Client { address: address(&mut daemon).await?, headers: Vec::new() };
    daemon.event("pass_finished", 1).await?;
    assert_eq!(client.get("/healthz").await?.told(), (200, r#"{"status":"ok"}"#));

    server.stop(StopMode::Immediate).await?;
    until("the last answer is stale", async || Ok(client.get("/healthz").await?.status != 200))
        .await?;
    let sick = client.get("/v1/healthz").await?;
    assert_eq!(sick.told(), (503, UNAVAILABLE));
    assert_eq!(sick.header("retry-after"), Some("1"));
    assert_eq!(client.get("/livez").await?.told(), (200, r#"{"status":"ok"}"#));
    let policy = client.get("/v1/catalogs/a/namespaces/b/tables/c/partition-retention").await?;
    assert_eq!(policy.told(), (503, UNAVAILABLE));

    server.restart(StopMode::Fast).await?;
    until("it is healthy again", async || Ok(client.get("/healthz").await?.status == 200)).await?;
    daemon.signal("TERM").await?;
    assert_eq!(daemon.end().await?.code, Some(0));
    Ok(())
}

#[tokio::test]
async fn what_happened_is_counted() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.database.policy("lake", "events.raw", "at", "7d").await?;
    let pass = "/v1/catalogs/lake/maintenance/partition-retention";
    scene.client.send("POST", pass, b"").await?;
    scene.daemon.event("pass_finished", 2).await?;
    scene.client.get("/nowhere").await?;
    let mut text = String::new();
    until("the pass is counted", async || {
        text = scene.client.get("/metrics").await?.body;
        Ok(text.contains("tailrace_passes_total{result=\"done\"} 2"))
    })
    .await?;
    for line in [
        "tailrace_files_ended_total 2",
        "tailrace_snapshots_total 1",
        "tailrace_tables_failed 0",
        "tailrace_commit_lock_hold_seconds_count 1",
        "tailrace_commit_lock_wait_seconds_bucket{le=\"+Inf\"} 1",
        "tailrace_http_requests_total{method=\"GET\",route=\"unmatched\",status=\"404\"} 1",
        "tailrace_http_requests_total{method=\"POST\",route=\"/catalogs/{catalog}/maintenance/partition-retention\",status=\"202\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
    let answer = scene.client.get("/v1/metrics").await?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(answer.header("content-type"), Some(kind));
    Ok(())
}
