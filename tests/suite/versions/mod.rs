//! Tests of servers that are refused, which are those before V9 and newer ones with a column that
//! must be filled and that tailrace does not know; and of newer servers that are accepted.

mod before_v9;
mod needed;
mod newer;

use anyhow::Result;
use serde_json::json;
use tailrace_kit::lake::{Catalog, Field, NewFile, Table};

use crate::http::client::Client;
use crate::http::{TABLE, address};
use crate::support::TestDatabase;
use crate::support::process::Running;
use crate::support::wait::until;

/// Every command that works on a catalog.
const COMMANDS: [&[&str]; 17] = [
    &["migrate"],
    &["plan"],
    &["sweep"],
    &["policy", "set", "lake", "events.raw", "--field", "day(at)", "--keep", "7d"],
    &["policy", "get", "lake", "events.raw"],
    &["policy", "list"],
    &["policy", "list", "--all"],
    &["policy", "unset", "lake", "events.raw", "--yes"],
    &["clock", "accept", "lake", "--reason", "right", "--yes"],
    &["spec", "list", "lake", "events.raw"],
    &["spec", "trust", "lake", "events.raw", "1", "--reason", "right", "--yes"],
    &["drop", "lake", "events.raw", "--partition", "[\"18000\"]", "--yes"],
    &["drop", "lake", "events.raw", "--partition", "[\"18000\"]", "--dry-run"],
    &["trace"],
    &["debt"],
    &["verify"],
    // It is told before anything is up, and ends.
    &["run"],
];

/// A lake in which files of `events.raw` have expired, under a policy where ours is installed.
async fn filled(database: &TestDatabase, governed: bool) -> Result<(Catalog, Table)> {
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["18000"]), NewFile::of(["18001"])]).await?;
    if governed {
        database.policy("lake", "events.raw", "day(at)", "7d").await?;
    }
    Ok((catalog, table))
}

/// Every command is refused with exit code 2, these words and no others, and nothing is written.
async fn every_command_is_refused(database: &TestDatabase, reason: &str) -> Result<()> {
    let before = (database.lake.dump().await?, ours(database).await?);
    for args in COMMANDS {
        let env = [("TAILRACE__HTTP__BIND", "127.0.0.1:0")];
        let ran = database.ran_with(args, &env).await?;
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}: {ran:?}");
        assert_eq!(ran.err, format!("tailrace: {reason}\n"), "{args:?}");
    }
    assert!((database.lake.dump().await?, ours(database).await?) == before);
    for args in [["config"], ["--version"]] {
        assert_eq!(database.ran(&args).await?.code, 0, "{args:?}");
    }
    Ok(())
}

/// Every row of ours, with its table.
async fn ours(database: &TestDatabase) -> Result<Vec<String>> {
    database
        .rows(
            "SELECT c.relname, query_to_xml(format('SELECT * FROM tailrace.%I t ORDER BY t', c.relname),
               true, true, '')::text AS rows
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = 'tailrace' AND c.relkind = 'r' ORDER BY 1",
        )
        .await
}

/// A daemon that is up, on a lake as [`filled`] makes it, and a client of it. Its first pass is over and
/// its next ones come each second.
async fn daemon_on(database: &TestDatabase) -> Result<(Running, Client)> {
    let env = [
        ("TAILRACE__SCHEDULE__EVERY", "1s"),
        ("TAILRACE__SCHEDULE__JITTER", "0s"),
        ("TAILRACE__COMPACTION__RENEW_EVERY", "1s"),
    ];
    let mut daemon = database.start(&["run"], &env)?;
    let client = Client { address: address(&mut daemon).await?, headers: Vec::new() };
    daemon.event("pass_finished", 1).await?;
    Ok((daemon, client))
}

/// Waits until a daemon tells an event for this reason: what was under way when the server changed may
/// have told another one.
async fn is_logged(daemon: &Running, event: &str, reason: &str) -> Result<()> {
    until("the reason is told", async || {
        Ok(daemon.so_far(event).iter().any(|line| line["error"] == reason))
    })
    .await
}

/// Requests of each kind are answered 503 with the reason.
async fn every_request_is_refused(client: &Client, reason: &str) -> Result<()> {
    let detail = format!("{reason}; nothing was done");
    let expected = json!({"detail": detail, "error": "unavailable"}).to_string();
    let policy = format!("{TABLE}/partition-retention");
    let drop = r#"{"idempotency_key": "11111111-2222-4333-8444-555555555555",
                   "partitions": [{"partition_values": ["18000"]}]}"#;
    for (method, path, body) in [
        ("GET", policy.clone(), ""),
        ("PUT", policy.clone(), r#"{"field": "day(at)", "keep": "7d"}"#),
        ("GET", format!("{policy}/plan"), ""),
        ("GET", format!("{TABLE}/changes?from_snapshot=0"), ""),
        ("POST", format!("{TABLE}/partitions/drop"), drop),
        ("POST", "/v1/catalogs/lake/maintenance/partition-retention".to_owned(), ""),
    ] {
        let answer = match body {
            "" => client.send(method, &path, b"").await?,
            body => client.json(method, &path, body).await?,
        };
        assert_eq!(answer.told(), (503, expected.as_str()), "{method} {path}");
    }
    Ok(())
}
