//! Tests with more clients than connections or sessions. Slow clients are disconnected, requests in
//! flight are not, and requests that read leave room for requests that change something.

use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::FutureExt;
use futures_util::future::join_all;
use sqlx::{Connection, PgConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use uuid::Uuid;

use super::client::{Answer, Client};
use super::tokens::{self, line};
use super::{Scene, TABLE};
use crate::support::program::days_ago;
use crate::support::wait::until;

/// Nobody is given up for being slow within any test.
const PATIENT: [(&str, &str); 2] =
    [("TAILRACE__HTTP__HEADER_TIMEOUT", "5m"), ("TAILRACE__HTTP__BODY_TIMEOUT", "10m")];

/// Far less than the patience with slow clients, and far more than an answer takes.
const SOON: Duration = Duration::from_secs(30);

async fn probes_answer(client: &Client) -> Result<()> {
    for path in ["/livez", "/healthz"] {
        let answer = tokio::time::timeout(SOON, client.get(path)).await??;
        assert_eq!(answer.told(), (200, r#"{"status":"ok"}"#), "{path}");
    }
    Ok(())
}

/// Whether the other side has closed the stream without a word.
async fn is_closed(stream: &mut TcpStream) -> Result<bool> {
    let mut rest = Vec::new();
    let read = tokio::time::timeout(SOON, stream.read_to_end(&mut rest)).await?;
    // Where it closed with bytes of ours unread, the system says so with a reset.
    Ok(read.map_or(true, |length| length == 0))
}

/// Whether the end of a stream has come by now.
fn has_ended(stream: &mut TcpStream) -> bool {
    let read = stream.read(&mut [0; 1]).now_or_never().map(|read| read.unwrap_or(0));
    read == Some(0)
}

/// 720 clients that say nothing, stop in the middle of a head, or are idle after an answer: those that
/// have waited longest give way, and the last one is served when it goes on.
#[tokio::test]
async fn slow_heads_give_way() -> Result<()> {
    let scene = Scene::with(&PATIENT).await?;
    let head = scene.client.head("GET", "/livez", 0);
    let mut slow = Vec::new();
    for number in 0..720 {
        let mut stream = scene.client.connect().await?;
        match number % 3 {
            0 => {}
            1 => stream.write_all(&head.as_bytes()[..20]).await?,
            _ => {
                stream.write_all(head.as_bytes()).await?;
                let answer = tokio::time::timeout(SOON, Answer::read(&mut stream)).await??;
                assert_eq!(answer.status, 200, "{number}");
            }
        }
        slow.push(stream);
    }
    probes_answer(&scene.client).await?;
    // http.max_connections is 512.
    for (number, stream) in slow.iter_mut().take(720 - 512).enumerate() {
        let closed = is_closed(stream).await.with_context(|| format!("stream {number}"))?;
        assert!(closed, "{number}");
    }
    for (stream, rest) in slow[717..].iter_mut().zip([&head[..], &head[20..], &head[..]]) {
        stream.write_all(rest.as_bytes()).await?;
        let answer = tokio::time::timeout(SOON, Answer::read(stream)).await??;
        assert_eq!(answer.status, 200);
    }
    Ok(())
}

#[tokio::test]
async fn slow_bodies_give_way() -> Result<()> {
    let scene = Scene::with(&PATIENT).await?;
    let client = scene.client.with("content-type", "application/json");
    let head = client.head("POST", &format!("{TABLE}/partitions/drop"), 100);
    let mut slow = Vec::new();
    for _ in 0..600 {
        let mut stream = client.connect().await?;
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(b"{\"partitions\"").await?;
        slow.push(stream);
    }
    probes_answer(&scene.client).await?;
    // Which of them began to wait for its body first, nobody can say.
    let mut closed = 0;
    until("as many are closed as are too many", async || {
        slow.retain_mut(|stream| !has_ended(stream));
        closed = 600 - slow.len();
        Ok(closed >= 600 - 512)
    })
    .await?;
    assert!(closed <= 600 - 512 + 2, "two probes came: {closed}");
    assert_eq!(scene.client.get(&scene.policy("")).await?.status, 404);
    Ok(())
}

/// Each of four connections has a request in flight, and a crowd comes.
#[tokio::test]
async fn requests_in_flight_keep_their_connections() -> Result<()> {
    let env = [&PATIENT[..], &[("TAILRACE__HTTP__MAX_CONNECTIONS", "4")]].concat();
    let scene = Scene::with(&env).await?;
    scene.database.policy("lake", "events.raw", "at", "7d").await?;
    let mut holder = scene.database.connection().await?;
    sqlx::raw_sql("begin; select from tailrace.policy for update").execute(&mut holder).await?;
    let client = scene.client.with("content-type", "application/json");
    let body = r#"{"field": "at", "keep": "30d"}"#;
    let mut puts = Vec::new();
    for number in 1..=3 {
        let mut stream = client.connect().await?;
        let request = client.head("PUT", &scene.policy(""), body.len()) + body;
        stream.write_all(request.as_bytes()).await?;
        puts.push(stream);
        waiting(&scene, number).await?;
    }
    // The fourth place goes from one to the next.
    let mut slow = Vec::new();
    for _ in 0..20 {
        let mut stream = client.connect().await?;
        stream.write_all(b"GET /liv").await?;
        slow.push(stream);
    }
    probes_answer(&scene.client).await?;
    for (number, stream) in slow.iter_mut().enumerate() {
        let closed = is_closed(stream).await.with_context(|| format!("stream {number}"))?;
        assert!(closed, "{number}");
    }
    sqlx::raw_sql("commit").execute(&mut holder).await?;
    for put in &mut puts {
        assert_eq!(Answer::read(put).await?.status, 200);
    }
    holder.close().await?;
    Ok(())
}

/// So many sessions of the daemon wait for a lock.
async fn waiting(scene: &Scene, number: i64) -> Result<()> {
    let query = "SELECT count(*)::text FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND datname = current_database()";
    until(&format!("{number} wait"), async || {
        Ok(scene.database.text(query).await?.as_deref() == Some(number.to_string().as_str()))
    })
    .await
}

/// Somebody who keeps all others from reading files.
async fn shut(scene: &Scene) -> Result<PgConnection> {
    let mut holder = scene.database.connection().await?;
    let lock = "begin; lock table hog_data_file in access exclusive mode";
    sqlx::raw_sql(lock).execute(&mut holder).await?;
    Ok(holder)
}

fn drop_body(age: i64, dry_run: bool) -> String {
    let (key, day) = (Uuid::new_v4(), days_ago(age));
    format!(
        r#"{{"idempotency_key": "{key}", "partitions": [{{"partition_values": ["{day}"]}}],
            "dry_run": {dry_run}}}"#
    )
}

/// A reader asks for more dry runs, or more plans, at once than may be, and all of them stand: an operator
/// sets a policy and drops something all the same.
#[tokio::test]
async fn who_looks_keeps_nobody_from_dropping() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("tokens");
    tokens::write(&file, &(line("eyes", "reader", "look") + &line("etl", "operator", "act")))?;
    let shown = file.display().to_string();
    let env =
        [("TAILRACE__HTTP__TOKENS_FILE", &*shown), ("TAILRACE__DATABASE__CONNECT_TIMEOUT", "60s")];
    let scene = Scene::with(&env).await?;
    scene.database.policy("lake", "events.raw", "at", "7d").await?;
    let (reader, operator) = (scene.client.token("look"), scene.client.token("act"));
    let (drop, plan) = (format!("{TABLE}/partitions/drop"), scene.policy("/plan"));
    for (age, method, path, body) in
        [(9, "POST", &drop, drop_body(9, true)), (8, "GET", &plan, String::new())]
    {
        let mut holder = shut(&scene).await?;
        let looks = join_all((0..8).map(|_| reader.json(method, path, &body)));
        let meanwhile = async {
            // http.max_sessions is 8, and http.max_concurrent_drops 4.
            waiting(&scene, 4).await?;
            let put = r#"{"field": "at", "keep": "8d"}"#;
            let set = operator.json("PUT", &scene.policy(""), put).await?;
            assert_eq!(set.status, 200, "{set:?}");
            let real = drop_body(age, false);
            let dropped = async { anyhow::Ok(operator.json("POST", &drop, &real).await?) };
            let released = async {
                waiting(&scene, 5).await?;
                sqlx::raw_sql("rollback").execute(&mut holder).await?;
                anyhow::Ok(())
            };
            let (dropped, ()) = tokio::try_join!(dropped, released)?;
            assert_eq!(dropped.status, 200, "{dropped:?}");
            assert_eq!(dropped.json()?["files_ended"], 1);
            anyhow::Ok(())
        };
        let (looks, meanwhile) = tokio::join!(looks, meanwhile);
        meanwhile?;
        for answer in looks {
            let answer = answer?;
            // 503: they waited for longer than a lock is waited for.
            assert!([200, 503].contains(&answer.status), "{answer:?}");
        }
        holder.close().await?;
    }
    Ok(())
}

/// Requests in flight keep their connections: so those who look are told to come again before they have all
/// of them, and the probes answer meanwhile.
#[tokio::test]
async fn waiting_readers_leave_connections_to_others() -> Result<()> {
    let env =
        [("TAILRACE__HTTP__MAX_CONNECTIONS", "16"), ("TAILRACE__DATABASE__CONNECT_TIMEOUT", "5m")];
    let scene = Scene::with(&env).await?;
    scene.database.policy("lake", "events.raw", "at", "7d").await?;
    let mut holder = shut(&scene).await?;
    let (client, request) = (&scene.client, scene.client.head("GET", &scene.policy("/plan"), 0));
    let (mut open, mut told) = (Vec::new(), Vec::new());
    for number in 1..=24 {
        let mut stream = client.connect().await?;
        stream.write_all(request.as_bytes()).await?;
        open.push(stream);
        waiting(&scene, number.min(4)).await?;
        // 4 work, 4 wait, and all others are answered, each before the next one comes: one whose request has
        // not arrived yet would give way to it.
        until("all others are told to come again", async || {
            for mut stream in std::mem::take(&mut open) {
                let mut status = [0; 12];
                match stream.read(&mut status).now_or_never() {
                    None => open.push(stream),
                    Some(_) => told.push(status),
                }
            }
            Ok(told.len() == usize::try_from(number)?.saturating_sub(8))
        })
        .await?;
    }
    assert_eq!(told.len(), 16);
    assert!(told.iter().all(|status| status == b"HTTP/1.1 503"), "{told:?}");
    probes_answer(client).await?;
    sqlx::raw_sql("rollback").execute(&mut holder).await?;
    holder.close().await?;
    Ok(())
}
