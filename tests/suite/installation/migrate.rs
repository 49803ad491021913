//! Tests of `tailrace migrate`, and of the other commands without a migrated schema.

use std::process::Stdio;

use anyhow::{Context, Result};
use tailrace_kit::lake::{Field, NewFile};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::support::TestDatabase;

/// A database with the server's tables and nothing of ours.
async fn fresh() -> Result<TestDatabase> {
    TestDatabase::in_schema("public").await
}

#[tokio::test]
async fn twice_in_a_row_applies_once() -> Result<()> {
    let database = fresh().await?;
    let first = database.ran(&["migrate"]).await?;
    assert_eq!(first.code, 0, "{first:?}");
    assert_eq!(first.out, "Applied 22 migrations; the schema tailrace is at version 22\n");
    assert_eq!(first.events("migrated").len(), 1);
    let ledger = database.rows("SELECT * FROM tailrace.schema_migration").await?;
    assert_eq!(ledger.len(), 22);
    let second = database.ran(&["migrate"]).await?;
    assert_eq!((second.code, second.err.as_str()), (0, ""));
    assert_eq!(second.out, "The schema tailrace is up to date (version 22)\n");
    assert_eq!(database.rows("SELECT * FROM tailrace.schema_migration").await?, ledger);
    Ok(())
}

/// Eight replicas that start at once.
#[tokio::test]
async fn eight_at_the_same_time_apply_each_migration_once() -> Result<()> {
    let database = fresh().await?;
    let all = futures_util::future::join_all((0..8).map(|_| database.ran(&["migrate"]))).await;
    for ran in all {
        let ran = ran?;
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let count = database.text("SELECT count(*) FROM tailrace.schema_migration").await?;
    assert_eq!(count.as_deref(), Some("22"));
    let count = database.text("SELECT count(*) FROM tailrace.installation").await?;
    assert_eq!(count.as_deref(), Some("1"));
    assert_eq!(database.ran(&["plan"]).await?.code, 0);
    Ok(())
}

#[tokio::test]
async fn without_it_every_command_says_what_to_do() -> Result<()> {
    let database = fresh().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["18000"])]).await?;
    for args in [
        vec!["plan"],
        vec!["sweep"],
        vec!["policy", "list"],
        vec!["policy", "get", "lake", "events.raw"],
        vec!["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "7d"],
        vec!["policy", "unset", "lake", "events.raw"],
        vec!["trace"],
        vec!["verify"],
        vec!["debt"],
        vec!["drop", "lake", "events.raw", "--partition", "[\"18000\"]", "--yes"],
    ] {
        let ran = database.ran(&args).await?;
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{args:?}");
        assert_eq!(
            ran.err,
            "tailrace: the database's schema tailrace is not there or older than this program: \
             run `tailrace migrate`\n"
        );
    }
    let ours =
        database.text("SELECT count(*) FROM pg_namespace WHERE nspname = 'tailrace'").await?;
    assert_eq!(ours.as_deref(), Some("0"));
    Ok(())
}

#[tokio::test]
async fn a_newer_ledger_is_refused() -> Result<()> {
    let database = TestDatabase::new().await?;
    database
        .sql(
            "INSERT INTO tailrace.schema_migration (version, description, success, checksum,
                                                    execution_time)
             VALUES (999, 'the future', true, '\\x00', 1)",
        )
        .await?;
    for args in [vec!["migrate"], vec!["plan"], vec!["sweep"], vec!["policy", "list"]] {
        let ran = database.ran(&args).await?;
        assert_eq!(ran.code, 1, "{args:?}");
        assert_eq!(
            ran.err,
            "tailrace: the database's schema tailrace is newer than this program (migration 999): \
             upgrade tailrace here too\n"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_migration_of_another_build_is_refused() -> Result<()> {
    let database = TestDatabase::new().await?;
    database.sql("UPDATE tailrace.schema_migration SET checksum = '\\x00'").await?;
    let ran = database.ran(&["migrate"]).await?;
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.err,
        "tailrace: migration 1 was applied by another build of tailrace and differs from this \
         one's: use a released version\n"
    );
    Ok(())
}

#[tokio::test]
async fn a_database_without_a_catalog_is_distinguished() -> Result<()> {
    let database = TestDatabase::in_schema("hog").await?;
    let env = [("TAILRACE__DATABASE__SCHEMA", "public")];
    let ran = database.ran_with(&["migrate"], &env).await?;
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.err,
        "tailrace: there is no hoglake catalog (table hog_catalog) in schema \"public\" of this \
         database: check database.url and database.schema\n"
    );
    let ours =
        database.text("SELECT count(*) FROM pg_namespace WHERE nspname = 'tailrace'").await?;
    assert_eq!(ours.as_deref(), Some("0"));
    Ok(())
}

#[tokio::test]
async fn every_server_version_can_be_migrated() -> Result<()> {
    for version in [9, 14, 22, 26] {
        let database = fresh().await?;
        database.lake.downgrade(version).await?;
        let before = database.lake.dump().await?;
        assert_eq!(database.ran(&["migrate"]).await?.code, 0, "V{version}");
        assert_eq!(database.ran(&["migrate"]).await?.code, 0, "V{version}");
        assert_eq!(database.lake.dump().await?, before, "V{version}");
    }
    Ok(())
}

/// A daemon that may not migrate waits for somebody who does, and says what it waits for.
#[tokio::test]
async fn a_daemon_that_may_not_migrate_says_so_and_stays_up() -> Result<()> {
    let database = fresh().await?;
    let folder = tempfile::tempdir()?;
    let mut daemon = tokio::process::Command::new(env!("CARGO_BIN_EXE_tailrace"))
        .arg("run")
        .env_clear()
        .env("TAILRACE__DATABASE__URL", database.url())
        .env("TAILRACE__DATABASE__MIGRATE_ON_START", "false")
        .env("TAILRACE__HEALTH__FILE", folder.path().join("health.json"))
        .env("TAILRACE__LOG__FORMAT", "json")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(daemon.stderr.take().context("a pipe")?).lines();
    let mut failed = None;
    while let (None, Some(line)) = (&failed, lines.next_line().await?) {
        let line: serde_json::Value = serde_json::from_str(&line)?;
        failed = (line["event"] == "pass_failed").then_some(line);
    }
    let failed = failed.context("a pass that failed")?;
    assert!(failed["error"].as_str().is_some_and(|why| why.contains("run `tailrace migrate`")));
    assert_eq!(daemon.try_wait()?, None);
    let ours =
        database.text("SELECT count(*) FROM pg_namespace WHERE nspname = 'tailrace'").await?;
    assert_eq!(ours.as_deref(), Some("0"));
    let pid = daemon.id().context("a process")?.to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status()?.success());
    while lines.next_line().await?.is_some() {}
    assert_eq!(daemon.wait().await?.code(), Some(0));
    Ok(())
}
