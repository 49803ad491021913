//! Tests of requests that read or set policies, and that read the changes of a table, on a network
//! that falls silent.

use std::time::Duration;

use anyhow::Result;
use tailrace::catalog::connect::Database;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::served::{Served, ask, is_done};
use super::{BOUND, Lake, silent_at};
use crate::http::TABLE;

const BODY: &str = r#"{"field": "at", "keep": "30d"}"#;

fn policy() -> String {
    format!("{TABLE}/partition-retention")
}

/// The `keep` of the policy in force.
async fn keep(lake: &Lake) -> Result<Option<String>> {
    lake.let_go().await?;
    let told = ask(&lake.database.tailrace(), "GET", &policy(), "").await?;
    Ok(told.json()?["policies"][0]["keep"].as_str().map(str::to_owned))
}

#[tokio::test]
async fn a_policy_is_set_or_not_and_can_be_set_again() -> Result<()> {
    let set = async |database: &Database| ask(database, "PUT", &policy(), BODY).await;
    let act = async |_: &Lake, through: &Database| {
        is_done(&set(through).await?)?;
        Ok(())
    };
    let after = async |lake: &Lake| {
        let before = keep(lake).await?;
        assert!(matches!(before.as_deref(), Some("7d" | "30d")), "{before:?}");
        assert!(is_done(&set(&lake.database.tailrace()).await?)?);
        assert_eq!(keep(lake).await?.as_deref(), Some("30d"));
        Ok(())
    };
    silent_at(&["COMMIT"], 1, act, after).await
}

#[tokio::test]
async fn a_policy_is_unset_or_not_and_can_be_unset_again() -> Result<()> {
    let unset = async |database: &Database| ask(database, "DELETE", &policy(), "").await;
    let act = async |_: &Lake, through: &Database| {
        is_done(&unset(through).await?)?;
        Ok(())
    };
    let after = async |lake: &Lake| {
        let expected = if keep(lake).await?.is_some() { 204 } else { 404 };
        assert_eq!(unset(&lake.database.tailrace()).await?.status, expected);
        assert_eq!(keep(lake).await?, None);
        Ok(())
    };
    silent_at(&["COMMIT"], 1, act, after).await
}

#[tokio::test]
async fn a_page_of_changes_comes_or_does_not() -> Result<()> {
    let path = format!("{TABLE}/changes?from_snapshot=0&ended_files=true&limit=100");
    let page = async |database: &Database| ask(database, "GET", &path, "").await;
    let act = async |_: &Lake, through: &Database| {
        is_done(&page(through).await?)?;
        Ok(())
    };
    let after = async |lake: &Lake| {
        let told = page(&lake.database.tailrace()).await?.json()?;
        assert_eq!(told["files"].as_array().map(Vec::len), Some(6));
        Ok(())
    };
    silent_at(&[], 2, act, after).await
}

/// All that comes of a request, to the end of the connection.
async fn all_of(served: &Served, path: &str) -> Result<String> {
    let client = served.client.with("connection", "close");
    let mut stream = client.connect().await?;
    stream.write_all(client.head("GET", path, 0).as_bytes()).await?;
    let mut bytes = Vec::new();
    // A connection that breaks off may do so with a reset.
    drop(tokio::time::timeout(BOUND, stream.read_to_end(&mut bytes)).await?);
    Ok(String::from_utf8(bytes)?)
}

/// It is whole, or refused in words, or breaks off: nobody takes it for whole then.
#[tokio::test]
async fn a_stream_of_changes_is_whole_or_breaks_off() -> Result<()> {
    let path = format!("{TABLE}/changes?from_snapshot=0&ended_files=true");
    let stream = async |database: &Database| {
        let served = Served::start(database).await?;
        let told = all_of(&served, &path).await?;
        served.stop().await?;
        anyhow::Ok(told)
    };
    let act = async |_: &Lake, through: &Database| {
        let told = stream(through).await?;
        if told.starts_with("HTTP/1.1 200") {
            let is_whole = told.contains("\"ended_files\":[]}");
            assert_eq!(told.ends_with("\r\n0\r\n\r\n"), is_whole, "{told}");
        } else {
            assert!(told.starts_with("HTTP/1.1 503"), "{told}");
            assert!(told.contains("\"error\":\"unavailable\""), "{told}");
        }
        Ok(())
    };
    let after = async |lake: &Lake| {
        let told = stream(&lake.database.tailrace()).await?;
        assert!(told.ends_with("\r\n0\r\n\r\n"), "{told}");
        assert_eq!(
            told.matches("\"data_file_id\"").count(),
            7,
            "six files, and the one of a vector"
        );
        Ok(())
    };
    silent_at(&[], 2, act, after).await
}

/// The probe never waits for longer than it says, and is well again at once.
#[tokio::test]
async fn the_probe_answers() -> Result<()> {
    let act = async |_: &Lake, through: &Database| {
        let asked = ask(through, "GET", "/healthz", "");
        is_done(&tokio::time::timeout(Duration::from_secs(10), asked).await??)?;
        Ok(())
    };
    let after = async |lake: &Lake| {
        assert!(is_done(&ask(&lake.database.tailrace(), "GET", "/healthz", "").await?)?);
        Ok(())
    };
    silent_at(&[], 2, act, after).await
}
