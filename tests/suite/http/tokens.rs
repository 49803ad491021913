//! Tests of tokens and of requests without one.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use super::{Scene, TABLE};
use crate::support::TestDatabase;

pub fn line(name: &str, role: &str, token: &str) -> String {
    let digest = Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("{name} {role} {digest}\n")
}

/// Writes a file of tokens that nobody else may write, whatever the umask.
pub fn write(file: &Path, text: &str) -> Result<()> {
    std::fs::write(file, text)?;
    set_mode(file, 0o600)
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    Ok(std::fs::set_permissions(path, Permissions::from_mode(mode))?)
}

/// A file with the tokens `look` and `act`.
fn file() -> Result<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("tokens");
    let text = format!(
        "# who may\n\n{}{}",
        line("dashboard", "reader", "look"),
        line("etl", "operator", "act")
    );
    write(&file, &text)?;
    Ok((folder, file))
}

async fn guarded() -> Result<(Scene, tempfile::TempDir, PathBuf)> {
    let (folder, file) = file()?;
    let shown = file.display().to_string();
    let scene = Scene::with(&[("TAILRACE__HTTP__TOKENS_FILE", &shown)]).await?;
    Ok((scene, folder, file))
}

const UNAUTHORIZED: &str =
    r#"{"detail":"a token is needed: Authorization: Bearer TOKEN","error":"unauthorized"}"#;
const FORBIDDEN: &str =
    r#"{"detail":"the token is a reader's: it may only look","error":"forbidden"}"#;

#[tokio::test]
async fn each_role_may_what_it_may() -> Result<()> {
    let (scene, _folder, _) = guarded().await?;
    let none = scene.client.with("content-type", "application/json");
    let wrong = none.token("guess");
    let twice = none.token("act").token("act");
    let reader = none.token("look");
    let operator = none.token("act");

    let policy = scene.policy("");
    let pass = "/v1/catalogs/lake/maintenance/partition-retention";
    let drop = format!("{TABLE}/partitions/drop");
    let truncate = format!("{TABLE}/truncate");
    let put = r#"{"field": "at", "keep": "7d", "mode": "observe"}"#;
    let body = |dry_run: bool| {
        format!(
            r#"{{"idempotency_key": "{}", "partitions": [{{"partition_values": ["1"]}}], "dry_run": {dry_run}}}"#,
            uuid::Uuid::new_v4()
        )
    };
    let (real, dry) = (body(false), body(true));
    // The order matters: what the operator sets is there for those that follow.
    let table = [
        ("PUT", &*policy, put, 403, 200),
        ("GET", &*policy, "", 200, 200),
        ("GET", &*scene.policy("/plan"), "", 200, 200),
        ("GET", "/metrics", "", 200, 200),
        ("HEAD", "/metrics", "", 200, 200),
        ("GET", "/openapi.json", "", 200, 200),
        ("GET", "/nowhere", "", 404, 404),
        ("POST", pass, "", 403, 202),
        ("POST", &*truncate, "", 403, 0),
        ("POST", &*drop, &*real, 403, 0),
        ("POST", &*drop, &*dry, 0, 0),
        ("DELETE", &*policy, "", 403, 204),
    ];
    for (method, path, body, for_reader, for_operator) in table {
        for path in [path.to_owned(), path.replacen("/v1", "", 1)] {
            for client in [&none, &wrong, &twice] {
                let answer = client.send(method, &path, body.as_bytes()).await?;
                let expected = if method == "HEAD" { "" } else { UNAUTHORIZED };
                assert_eq!(answer.told(), (401, expected), "{method} {path}");
                assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            }
            if for_reader == 403 {
                let answer = reader.send(method, &path, body.as_bytes()).await?;
                assert_eq!(answer.told(), (403, FORBIDDEN), "{method} {path}");
            }
        }
        for (client, expected) in [(&reader, for_reader), (&operator, for_operator)] {
            if expected == 403 {
                continue;
            }
            let status = client.send(method, path, body.as_bytes()).await?.status;
            // 0: whatever it is, it was let in.
            let fits =
                if expected == 0 { ![401, 403].contains(&status) } else { status == expected };
            assert!(fits, "{method} {path}: {status}");
        }
    }
    for path in ["/livez", "/v1/livez", "/healthz", "/v1/healthz"] {
        assert_eq!(none.get(path).await?.told(), (200, r#"{"status":"ok"}"#));
    }
    Ok(())
}

#[tokio::test]
async fn the_tokens_name_is_in_the_log_and_the_policy() -> Result<()> {
    let (mut scene, _folder, _) = guarded().await?;
    let client = scene.client.token("act").with("x-request-id", "run-7");
    let answer = client.json("PUT", &scene.policy(""), r#"{"field": "at", "keep": "7d"}"#).await?;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()?["policies"][0]["updated_by"], "etl");
    let line = scene.daemon.told("http_request").await?;
    assert_eq!(line["token"], "etl");
    assert_eq!(line["request_id"], "run-7");
    assert_eq!(line["method"], "PUT");
    assert_eq!(
        line["route"],
        "/catalogs/{catalog}/namespaces/{namespace}/tables/{table}/partition-retention"
    );
    assert_eq!(line["status"], 200);
    assert!(line["duration_ms"].as_f64().context("a number")? > 0.0);
    let set = scene.daemon.told("policy_set").await?;
    assert_eq!(set["by"], "etl");
    assert_eq!(set["span"]["request_id"], "run-7");
    Ok(())
}

#[tokio::test]
async fn a_hangup_reads_tokens_anew_and_a_wrong_file_changes_none() -> Result<()> {
    let (mut scene, _folder, file) = guarded().await?;
    let status = async |token: &str| -> Result<u16> {
        Ok(scene.client.token(token).get("/metrics").await?.status)
    };
    assert_eq!((status("look").await?, status("new").await?), (200, 401));

    std::fs::write(&file, line("dashboard", "reader", "new"))?;
    assert_eq!((status("look").await?, status("new").await?), (200, 401), "not before the signal");
    scene.daemon.signal("HUP").await?;
    let told = scene.daemon.told("tokens_reloaded").await?;
    assert_eq!(told["tokens"], 1);
    assert_eq!((status("look").await?, status("new").await?), (401, 200));

    std::fs::write(&file, format!("{}oops\n", line("other", "reader", "newer")))?;
    scene.daemon.signal("HUP").await?;
    let told = scene.daemon.told("tokens_refused").await?;
    let error = told["error"].as_str().context("a text")?;
    assert!(error.ends_with("line 2: not a name, a role and a SHA-256 in hex"), "{error}");
    assert_eq!((status("new").await?, status("newer").await?), (200, 401));

    std::fs::remove_file(&file)?;
    scene.daemon.signal("HUP").await?;
    scene.daemon.event("tokens_refused", 2).await?;
    assert_eq!(status("new").await?, 200);
    Ok(())
}

/// Who may write the file may drop data: at the start it is refused, and later not read.
#[tokio::test]
async fn a_file_that_others_may_write_is_refused_with_the_reason() -> Result<()> {
    let database = TestDatabase::new().await?;
    let (folder, file) = file()?;
    let (shown, within) = (file.display().to_string(), folder.path().display());
    let group = format!(
        "http.tokens_file {shown} says who may drop data, and its group may write it (mode 0660): \
         chmod go-w it"
    );
    let replaced = format!(
        "http.tokens_file {shown} says who may drop data, and everybody may write in its folder \
         {within} (mode 0757), and so put another file in its place: chmod go-w that folder, or move the \
         file"
    );
    for (of_file, of_folder, says) in [(0o660, 0o700, &group), (0o600, 0o757, &replaced)] {
        set_mode(&file, of_file)?;
        set_mode(folder.path(), of_folder)?;
        let env = [("TAILRACE__HTTP__TOKENS_FILE", &*shown)];
        let ended = database.start(&["run"], &env)?.end().await?;
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert_eq!(ended.log, [serde_json::Value::String(format!("tailrace: {says}"))]);
    }

    let (mut scene, _folder, file) = guarded().await?;
    let status = async |token: &str| -> Result<u16> {
        Ok(scene.client.token(token).get("/metrics").await?.status)
    };
    write(&file, &line("dashboard", "reader", "new"))?;
    set_mode(&file, 0o602)?;
    scene.daemon.signal("HUP").await?;
    let told = scene.daemon.told("tokens_refused").await?;
    let error = told["error"].as_str().context("a text")?;
    assert!(error.ends_with("everybody may write it (mode 0602): chmod go-w it"), "{error}");
    assert_eq!((status("look").await?, status("new").await?), (200, 401));
    set_mode(&file, 0o640)?;
    scene.daemon.signal("HUP").await?;
    scene.daemon.event("tokens_reloaded", 1).await?;
    assert_eq!((status("look").await?, status("new").await?), (401, 200));
    Ok(())
}

#[tokio::test]
async fn what_others_can_reach_needs_tokens_or_does_not_start() -> Result<()> {
    let database = TestDatabase::new().await?;
    let folder = tempfile::tempdir()?;
    let empty = folder.path().join("empty");
    write(&empty, "# nobody\n")?;
    let (empty, nowhere) =
        (empty.display().to_string(), folder.path().join("nowhere").display().to_string());
    for (bind, file, says) in [
        (
            "0.0.0.0:0",
            "",
            "http.bind = 0.0.0.0:0 (the variable TAILRACE__HTTP__BIND) is not a loopback address: set http.tokens_file",
        ),
        ("[::]:0", "", "is not a loopback address"),
        ("0.0.0.0:0", &*empty, "has no token in it"),
        ("127.0.0.1:0", &*nowhere, "cannot be read"),
    ] {
        let env = [("TAILRACE__HTTP__BIND", bind), ("TAILRACE__HTTP__TOKENS_FILE", file)];
        let ended = database.start(&["run"], &env)?.end().await?;
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.log.iter().any(|line| line.to_string().contains(says)), "{ended:?}");
    }
    let (_folder, file) = self::file()?;
    let file = file.display().to_string();
    let env = [("TAILRACE__HTTP__BIND", "0.0.0.0:0"), ("TAILRACE__HTTP__TOKENS_FILE", &*file)];
    let mut daemon = database.start(&["run"], &env)?;
    daemon.event("http_listening", 1).await?;
    daemon.signal("TERM").await?;
    assert_eq!(daemon.end().await?.code, Some(0));

    let mut off = database.start(&["run"], &[("TAILRACE__HTTP__BIND", "off")])?;
    off.event("pass_finished", 1).await?;
    off.signal("TERM").await?;
    let ended = off.end().await?;
    assert_eq!((ended.code, ended.count("http_listening")), (Some(0), 0));
    Ok(())
}
