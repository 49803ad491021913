//! Pins every route with its statuses and answers, the log lines and metrics of the daemon, and the
//! OpenAPI document. The bytes of every problem are tested in `src/http/tests.rs` and
//! `http/errors.rs`. `src/http/tests/document.rs` tests that the document and the routes agree.

mod requests;

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use requests::drop_body;

use super::golden;
use super::lake::{ENV, Lake};
use super::told::Told;
use crate::http::address;
use crate::http::client::{Answer, Client};
use crate::http::tokens::{line, write};
use crate::support::process::Running;

const TABLE: &str = "/catalogs/lake/namespaces/events/tables/raw";
const PASS: &str = "/catalogs/lake/maintenance/partition-retention";
const KEY: &str = "11111111-2222-4333-8444-555555555555";

struct Daemon {
    lake: Lake,
    daemon: Running,
    client: Client,
    routes: Told,
}

impl Daemon {
    /// Each token may all; bodies, drops and locks are waited for only briefly.
    async fn new(tokens: &std::path::Path) -> Result<Self> {
        let lake = Lake::new().await?;
        let file = tokens.display().to_string();
        let env = [
            ("TAILRACE__SCHEDULE__EVERY", "1d"),
            ("TAILRACE__HTTP__TOKENS_FILE", &*file),
            ("TAILRACE__HTTP__BODY_TIMEOUT", "1s"),
            ("TAILRACE__DROP__LOCK_TIMEOUT", "500ms"),
            ("TAILRACE__SWEEP__LOCK_TIMEOUT", "60s"),
            ("TAILRACE__LOG__FILTER", "tailrace=debug"),
        ];
        let mut daemon = lake.database.start(&["run"], &[&ENV[..], &env].concat())?;
        let address = address(&mut daemon).await?;
        daemon.event("pass_finished", 1).await?;
        daemon.event("shield_renewed", 1).await?;
        // So that there is something to release, whether or not the pass was before the renewal.
        let claimed = "INSERT INTO hog_compaction_claim
             (catalog_id, table_id, group_key, input_file_ids, claimant, expires_at)
           SELECT v.catalog_id, v.table_id, 'tailrace/999', '{1}', o.claimant,
                  now() + interval '30 minutes'
           FROM hog_table_version v JOIN tailrace.claimant o USING (catalog_id)
           WHERE v.end_snapshot IS NULL AND v.name IN ('raw', 'property')";
        lake.database.sql(claimed).await?;
        let client = Client { address, headers: Vec::new() }.token("act");
        Ok(Daemon { lake, daemon, client, routes: Told::default() })
    }

    async fn ask(&mut self, case: &str, method: &str, path: &str, body: &str) -> Result<Answer> {
        let client = self.client.with("content-type", "application/json");
        let answer = client.send(method, path, body.as_bytes()).await?;
        self.note(case, method, path, &answer)?;
        Ok(answer)
    }

    async fn get(&mut self, case: &str, path: &str) -> Result<Answer> {
        self.ask(case, "GET", path, "").await
    }

    /// Notes an answer under the route and, of one that is no error, its shape.
    fn note(&mut self, case: &str, method: &str, path: &str, answer: &Answer) -> Result<()> {
        let route = format!("{method} {}", template(path));
        let kind = answer.header("content-type").unwrap_or("-").to_owned();
        let again = if answer.header("retry-after").is_some() { ", retry-after" } else { "" };
        let json = if kind == "application/json" { answer.json()? } else { Value::Null };
        let code = json["error"].as_str().map(|code| format!(" {code}")).unwrap_or_default();
        self.routes.line(&route, format!("{}{code}: {case} ({kind}{again})", answer.status));
        if answer.status >= 400 {
            self.routes.value("errors", &json);
        } else if json != Value::Null && path != "/openapi.json" {
            self.routes.value(&route, &json);
        }
        Ok(())
    }
}

/// The path as the document has it.
fn template(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let mut parts: Vec<&str> = path.split('/').collect();
    for at in 1..parts.len() {
        parts[at] = match parts[at - 1] {
            "catalogs" => "{catalog}",
            "namespaces" => "{namespace}",
            "tables" => "{table}",
            "partition-retention" if parts.get(at - 2) == Some(&"maintenance") => match parts[at] {
                "verify" => "verify",
                _ => "{id}",
            },
            _ => parts[at],
        };
    }
    parts.join("/")
}

#[tokio::test]
async fn routes_answer_with_these_statuses_and_fields() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let tokens = folder.path().join("tokens");
    write(&tokens, &(line("etl", "operator", "act") + &line("eyes", "reader", "look")))?;
    let mut daemon = Daemon::new(&tokens).await?;
    probes(&mut daemon).await?;
    requests::policies(&mut daemon).await?;
    requests::passes(&mut daemon).await?;
    let from = daemon.lake.catalog.head().await?;
    requests::drops(&mut daemon).await?;
    requests::changes(&mut daemon, from).await?;
    refused_everywhere(&mut daemon).await?;
    metrics(&daemon).await?;
    not_fit(&mut daemon).await?;
    golden::holds("http.txt", &daemon.routes.text());
    daemon.daemon.signal("TERM").await?;
    let ended = daemon.daemon.end().await?;
    let mut log = Told::default();
    ended.log.iter().for_each(|line| log.log(line));
    golden::holds("http-log.txt", &log.text());
    Ok(())
}

async fn probes(daemon: &mut Daemon) -> Result<()> {
    for path in ["/livez", "/healthz", "/metrics"] {
        daemon.get("at any time", path).await?;
    }
    let document = daemon.get("at any time", "/openapi.json").await?;
    let mut document: Value = document.json()?;
    document["info"]["version"] = "that of the program".into();
    without_prose(&mut document);
    golden::holds("openapi.json", &(serde_json::to_string_pretty(&document)? + "\n"));
    Ok(())
}

/// Takes away what is for people: it may change.
fn without_prose(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // A field of this name of a schema is described by an object.
            fields.retain(|key, value| {
                !(matches!(key.as_str(), "description" | "summary") && value.is_string())
            });
            fields.values_mut().for_each(without_prose);
        }
        Value::Array(values) => values.iter_mut().for_each(without_prose),
        _ => {}
    }
}

async fn refused_everywhere(daemon: &mut Daemon) -> Result<()> {
    let policy = format!("{TABLE}/partition-retention");
    let operator = daemon.client.clone();
    daemon.client.headers.clear();
    daemon.get("without a token", &policy).await?;
    daemon.client = daemon.client.token("look");
    daemon.ask("by a reader", "POST", PASS, "").await?;
    daemon.client = operator;
    daemon.get("no path", "/nowhere").await?;
    daemon.ask("a method too many", "POST", "/livez", "").await?;
    let large = " ".repeat(3 << 20);
    let drop = format!("{TABLE}/partitions/drop");
    daemon.ask("more than a body may have", "POST", &drop, &large).await?;
    // A body of which nothing comes.
    let mut stream = daemon.client.connect().await?;
    let client = daemon.client.with("content-type", "application/json");
    stream.write_all(client.head("POST", &drop, 100).as_bytes()).await?;
    let answer = Answer::read(&mut stream).await?;
    daemon.note("a body that does not come", "POST", &drop, &answer)
}

/// Names, units, types and labels of what is counted.
async fn metrics(daemon: &Daemon) -> Result<()> {
    let text = daemon.client.get("/metrics").await?.body;
    let mut lines = BTreeSet::new();
    for line in text.lines() {
        let name = match line.strip_prefix("# ") {
            Some(about) if about.starts_with("HELP") => continue,
            Some(about) => about,
            // The value is what comes last; which requests there were is in another file.
            None => line.rsplit_once(' ').context("a value")?.0,
        };
        lines.insert(match name.split_once("{method=") {
            Some((name, _)) => format!("{name}{{method,route,status}}"),
            None => name.to_owned(),
        });
    }
    let lines: Vec<String> = lines.into_iter().collect();
    golden::holds("metrics.txt", &(lines.join("\n") + "\n"));
    Ok(())
}

/// What all say while the schema in the database is another program's.
async fn not_fit(daemon: &mut Daemon) -> Result<()> {
    let newer = "INSERT INTO tailrace.schema_migration
        (version, description, success, checksum, execution_time)
        VALUES (999, 'the future', true, '\\x00', 1)";
    daemon.lake.database.sql(newer).await?;
    let policy = format!("{TABLE}/partition-retention");
    let body = r#"{"field": "day(at)", "keep": "7d"}"#;
    for (method, path, body) in [
        ("GET", policy.clone(), ""),
        ("PUT", policy.clone(), body),
        ("DELETE", policy.clone(), ""),
        ("GET", format!("{policy}/plan"), ""),
        ("GET", format!("{policy}/drops"), ""),
        ("GET", format!("{TABLE}/changes?from_snapshot=2"), ""),
        ("POST", format!("{TABLE}/partitions/drop"), &drop_body("")),
        ("POST", format!("{TABLE}/truncate"), ""),
        ("POST", PASS.to_owned(), ""),
        ("POST", format!("{PASS}/verify"), ""),
        ("GET", "/healthz".to_owned(), ""),
    ] {
        daemon.ask("with a newer schema", method, &path, body).await?;
    }
    Ok(())
}

#[test]
fn prose_is_no_part_of_the_document() {
    let mut document = json!({
        "description": "x", "properties": {"description": {"type": "string", "description": "y"}},
    });
    without_prose(&mut document);
    assert_eq!(document, json!({"properties": {"description": {"type": "string"}}}));
}
