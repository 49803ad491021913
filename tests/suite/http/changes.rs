//! Tests of the changes of a table over HTTP. The changes themselves are tested in `feed`, the
//! errors in `python/bytes.rs`.

use anyhow::{Context, Result, ensure};
use tailrace_kit::lake::NewFile;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::{Scene, TABLE};
use crate::feed::{sessions, table_ref, with_ends};
use crate::support::wait::until;
use futures_util::TryStreamExt;

/// The body of an answer in chunks, and whether its last chunk came.
async fn in_chunks(stream: &mut TcpStream) -> Result<(String, String, bool)> {
    let mut bytes = Vec::new();
    // A connection that is broken off may be reset.
    if let Err(error) = stream.read_to_end(&mut bytes).await {
        ensure!(error.kind() == std::io::ErrorKind::ConnectionReset, "{error}");
    }
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").context("a head")?;
    let head = String::from_utf8(bytes[..end].to_vec())?.to_lowercase();
    let (mut rest, mut body) = (&bytes[end + 4..], Vec::new());
    while let Some(line) = rest.windows(2).position(|window| window == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..line])?, 16)?;
        let Some((chunk, after)) = rest[line + 2..].split_at_checked(length) else { break };
        if length == 0 {
            return Ok((head, String::from_utf8(body)?, after == b"\r\n"));
        }
        body.extend_from_slice(chunk);
        rest = after.get(2..).unwrap_or_default();
    }
    Ok((head, String::from_utf8_lossy(&body).into_owned(), false))
}

#[tokio::test]
async fn a_window_is_streamed_and_paged() -> Result<()> {
    let scene = Scene::new().await?;
    let many: Vec<_> = (0..2_500).map(|_| NewFile::of(["1"])).collect();
    scene.table.append(many).await?;
    let drop = r#"{"idempotency_key": "11111111-2222-4333-8444-555555555555", "partitions": [{"partition_values": ["1"]}]}"#;
    let dropped = scene.client.json("POST", &format!("{TABLE}/partitions/drop"), drop).await?;
    assert_eq!(dropped.json()?["files_ended"], 2_500);
    let head = scene.catalog.head().await?;

    let pool = scene.database.lake.pool();
    let mut session = scene.database.plain_session().await?;
    let table = table_ref("lake", "events", "raw");
    let opened = tailrace::feed::open(&mut session, &table, &with_ends(0, head)).await?;
    let parts: Vec<Vec<u8>> = opened.stream(sessions(pool)).try_collect().await?;
    let expected = String::from_utf8(parts.concat())?;

    let path = format!("{TABLE}/changes?from_snapshot=0&ended_files=true");
    for path in [path.clone(), path.replacen("/v1", "", 1)] {
        let client = scene.client.with("connection", "close");
        let mut stream = client.connect().await?;
        stream.write_all(client.head("GET", &path, 0).as_bytes()).await?;
        let (head, body, is_whole) = in_chunks(&mut stream).await?;
        assert!(head.starts_with("http/1.1 200 ok\r\n"), "{head}");
        assert!(head.contains("\r\ncontent-type: application/json\r\n"), "{head}");
        assert_eq!((body.as_str(), is_whole), (expected.as_str(), true));
    }

    let page = scene.client.get(&format!("{path}&limit=2503")).await?;
    assert_eq!(page.header("content-type"), Some("application/json"));
    let page = page.json()?;
    let cursor = page["next_cursor"].as_str().context("there is more")?;
    let rest = scene.client.get(&format!("{path}&limit=10000&cursor={cursor}")).await?.json()?;
    assert_eq!(rest["next_cursor"], serde_json::Value::Null);
    let whole: serde_json::Value = serde_json::from_str(&expected)?;
    assert_eq!(page["files"], whole["files"]);
    assert_eq!(rest["ended_files"], whole["ended_files"]);
    Ok(())
}

/// An answer that cannot be completed must not look as if it had been.
#[tokio::test]
async fn an_answer_breaks_off_where_the_floor_passes_its_window() -> Result<()> {
    let mut scene = Scene::new().await?;
    let many: Vec<_> = (0..60_000).map(|_| NewFile::of(["1"])).collect();
    scene.table.append(many).await?;
    let head = scene.catalog.head().await?;
    let client = scene.client.with("connection", "close");
    // A client that reads nothing yet, and into which little fits.
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(4096)?;
    let mut stream = socket.connect(client.address).await?;
    let path = format!("{TABLE}/changes?from_snapshot=0");
    stream.write_all(client.head("GET", &path, 0).as_bytes()).await?;
    let mut first = [0; 15];
    stream.read_exact(&mut first).await?;
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    scene.database.sql(&format!("UPDATE hog_catalog SET earliest_snapshot_id = {head}")).await?;
    let (_, body, is_whole) = in_chunks(&mut stream).await?;
    assert!(!is_whole && !body.contains("delete_files"), "{} bytes", body.len());
    let told = scene.daemon.told("changes_cut_off").await?;
    assert_eq!(told["reason"], "expired");
    assert_eq!(told["to_snapshot"], head);

    // Once the status is not said yet, there are words.
    let answer = scene.client.get(&path).await?;
    assert_eq!(answer.status, 410);
    // And no session was kept by the one that broke off. (Another one may be between two
    // statements at any moment.)
    let query = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND state = 'idle in transaction'";
    until("no session is kept", async || {
        Ok(scene.database.text(query).await?.as_deref() == Some("0"))
    })
    .await?;
    Ok(())
}
