//! Tests of slow clients, huge requests, and many clients at once.

use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::client::Answer;
use super::{Scene, TABLE};

async fn impatient() -> Result<Scene> {
    Scene::with(&[
        ("TAILRACE__HTTP__HEADER_TIMEOUT", "300ms"),
        ("TAILRACE__HTTP__BODY_TIMEOUT", "300ms"),
    ])
    .await
}

/// Connections that say nothing, and heads that come byte by byte, are closed; others are served
/// meanwhile.
#[tokio::test]
async fn a_slow_head_is_given_up() -> Result<()> {
    let scene = impatient().await?;
    let mut silent = scene.client.connect().await?;
    let mut slow = scene.client.connect().await?;
    slow.write_all(b"GET /livez HTTP/1.1\r\nhost: local").await?;
    let mut idle = scene.client.connect().await?;
    idle.write_all(scene.client.head("GET", "/livez", 0).as_bytes()).await?;
    assert_eq!(Answer::read(&mut idle).await?.status, 200);
    assert_eq!(scene.client.get("/livez").await?.status, 200);
    for (name, stream) in [("silent", &mut silent), ("slow", &mut slow), ("idle", &mut idle)] {
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut rest));
        assert!(closed.await.is_ok(), "{name} stays open");
        let text = String::from_utf8_lossy(&rest);
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 408"), "{name}: {text}");
    }
    Ok(())
}

#[tokio::test]
async fn a_slow_body_is_given_up() -> Result<()> {
    let scene = impatient().await?;
    let client = scene.client.with("content-type", "application/json");
    let mut stream = client.connect().await?;
    let head = client.head("POST", &format!("{TABLE}/partitions/drop"), 100);
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(b"{\"partitions\"").await?;
    assert_eq!(scene.client.get("/livez").await?.status, 200);
    let answer = tokio::time::timeout(Duration::from_secs(30), Answer::read(&mut stream)).await??;
    let expected = r#"{"detail":"the body did not come within http.body_timeout; nothing was done","error":"request_timeout"}"#;
    assert_eq!(answer.told(), (408, expected));
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(stream.read(&mut [0; 1]).await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_huge_body_is_413_and_two_mebibytes_are_not() -> Result<()> {
    let scene = Scene::new().await?;
    let client = scene.client.with("content-type", "application/json");
    let expected =
        r#"{"detail":"the body has more than 2097152 bytes","error":"payload_too_large"}"#;
    let drop = format!("{TABLE}/partitions/drop");
    // One that listens only when all is sent.
    let answer = client.send("POST", &drop, &vec![b' '; 3 << 20]).await?;
    assert_eq!(answer.told(), (413, expected));
    let answer = client.send("POST", &drop, &vec![b' '; (2 << 20) + 1]).await?;
    assert_eq!(answer.told(), (413, expected));
    let answer = client.send("POST", &drop, &vec![b' '; 2 << 20]).await?;
    assert_eq!((answer.status, answer.body.contains("EOF while parsing")), (400, true));

    // In chunks, so that nobody knows the length before.
    let mut stream = client.connect().await?;
    let head = client.with("transfer-encoding", "chunked").head("POST", &drop, 0);
    stream.write_all(head.as_bytes()).await?;
    let chunk = [b"10000\r\n".to_vec(), vec![b' '; 0x10000], b"\r\n".to_vec()].concat();
    for _ in 0..48 {
        stream.write_all(&chunk).await?;
    }
    stream.write_all(b"0\r\n\r\n").await?;
    assert_eq!(Answer::read(&mut stream).await?.told(), (413, expected));

    // One that asks first is answered before it sends.
    let mut stream = client.connect().await?;
    let head = client.with("expect", "100-continue").head("POST", &drop, 3 << 20);
    stream.write_all(head.as_bytes()).await?;
    assert_eq!(Answer::read(&mut stream).await?.told(), (413, expected));
    Ok(())
}

/// Half of them are broken, each in another way; the other half is answered, every one.
#[tokio::test]
async fn two_hundred_at_once() -> Result<()> {
    let scene = Scene::with(&[("TAILRACE__HTTP__HEADER_TIMEOUT", "60s")]).await?;
    scene.database.policy("lake", "events.raw", "at", "7d").await?;
    let (client, path) = (scene.client.clone(), scene.policy(""));
    let mut stuck = Vec::new();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..200 {
        let (client, path) = (client.clone(), path.clone());
        match number % 8 {
            0 => {
                let mut stream = client.connect().await?;
                stream.write_all(b"POST /v1/cat").await?;
                stuck.push(stream);
            }
            2 => {
                let mut stream = client.connect().await?;
                stream.write_all(client.head("PUT", &path, 50).as_bytes()).await?;
                stuck.push(stream);
            }
            4 => {
                let mut stream = client.connect().await?;
                stream.write_all(b"\x16\x03\x01 not http at all\r\n\r\n").await?;
                stuck.push(stream);
            }
            6 => {
                let mut stream = client.connect().await?;
                stream.write_all(client.head("GET", &path, 0).as_bytes()).await?;
                drop(stream);
            }
            _ => {
                tasks.spawn(async move { client.get(&path).await });
            }
        }
    }
    let mut answered = 0;
    let since = Instant::now();
    while let Some(answer) = tasks.join_next().await {
        let answer = answer??;
        assert_eq!(answer.status, 200, "{answer:?}");
        answered += 1;
    }
    assert_eq!((answered, stuck.len()), (100, 75));
    assert!(since.elapsed() < Duration::from_secs(60), "{:?}", since.elapsed());
    assert_eq!(scene.client.get("/healthz").await?.status, 200);
    Ok(())
}
