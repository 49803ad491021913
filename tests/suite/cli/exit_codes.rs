//! Tests of exit codes: 0 done, 1 failed, 2 usage or configuration, 3 some tables failed.

use anyhow::Result;
use tailrace_kit::lake::{Field, NewFile};

use crate::support::TestDatabase;

#[tokio::test]
async fn each_end_has_its_code() -> Result<()> {
    let database = TestDatabase::new().await?;
    let nowhere = database.url().replace("/test_", "/not_test_");
    let away = [("TAILRACE__DATABASE__URL", nowhere.as_str())];
    let no_socket = [(
        "TAILRACE__DATABASE__URL",
        "postgres://postgres@localhost:5432/lake?host=/nowhere/at/all",
    )];
    let unknown_key = [("TAILRACE__SWEEP__LOCK_TIMEOUTS", "2s")];
    let unknown_section = [("TAILRACE__SWEPT__LOCK_TIMEOUT", "2s")];
    let bad_value = [("TAILRACE__SWEEP__LOCK_TIMEOUT", "soon")];
    let bad_together = [("TAILRACE__SWEEP__MAX_FILES_PER_TUPLE", "10")];
    let no_url = [("TAILRACE__DATABASE__URL", "")];
    for (args, env, code, words) in [
        (vec!["plan"], &[][..], 0, ""),
        (vec!["sweep"], &[], 0, ""),
        (vec!["policy", "list"], &[], 0, ""),
        (vec!["config"], &[], 0, ""),
        (vec!["--version"], &[], 0, ""),
        (vec!["plan", "--help"], &[], 0, ""),
        (vec!["plan"], &away, 1, "does not exist"),
        (vec!["sweep"], &away, 1, "does not exist"),
        (vec!["migrate"], &no_socket, 1, "tailrace: "),
        (vec!["plan"], &no_socket, 1, "tailrace: "),
        (vec!["plan"], &unknown_key, 2, "unknown key sweep.lock_timeouts"),
        (vec!["health"], &unknown_key, 2, "unknown key sweep.lock_timeouts"),
        (vec!["config"], &unknown_section, 2, "unknown key swept.lock_timeout"),
        (vec!["plan"], &bad_value, 2, "sweep.lock_timeout = \"soon\""),
        (vec!["plan"], &bad_together, 2, "max_files_per_tuple"),
        (vec!["plan"], &no_url, 2, "database.url is not set"),
        (vec![], &[], 2, "Usage"),
        (vec!["plough"], &[], 2, "unrecognized subcommand"),
        (vec!["plan", "--table", "raw"], &[], 2, "a table is named NAMESPACE.TABLE"),
        (vec!["plan", "--at", "yesterday"], &[], 2, "invalid value 'yesterday'"),
        (vec!["plan", "--at", "2026-09-17"], &[], 0, ""),
        (vec!["plan", "--output", "xml"], &[], 2, "possible values: text, json"),
        (vec!["sweep", "--at", "2026-09-17T00:00:00Z"], &[], 2, "unexpected argument '--at'"),
        (vec!["plan", "--config", "/nowhere.toml"], &[], 2, "/nowhere.toml"),
    ] {
        let ran = database.ran_with(&args, env).await?;
        assert_eq!(ran.code, code, "{args:?} {env:?}: {ran:?}");
        assert!(ran.err.contains(words), "{args:?} {env:?}: {ran:?}");
        assert!(code == 0 || ran.out.is_empty(), "{args:?}: {ran:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_table_that_failed_is_code_three_and_the_others_are_done() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    for name in ["good", "bad"] {
        let table = database.table(&catalog, name, &[Field::day("at")]).await?;
        table.append(vec![NewFile::of(["18000"])]).await?;
        let keep = if name == "good" { "7d" } else { "7 months" };
        let text = format!(r#"{{"field": "at", "keep": "{keep}"}}"#);
        table.set_property("partition_retention", Some(&text)).await?;
    }
    for args in [["plan", "--output", "json"], ["sweep", "--output", "json"]] {
        let ran = database.ran(&args).await?;
        assert_eq!(ran.code, 3, "{ran:?}");
        let report: serde_json::Value = serde_json::from_str(&ran.out)?;
        let error = report["tables"][0]["error"].as_str().unwrap_or_default();
        assert!(error.contains("(7 months are 212 to 215 days): say 215d"), "{report}");
        assert_eq!(report["tables"][1]["error"], serde_json::Value::Null);
    }
    assert_eq!(database.ran(&["sweep", "--table", "events.good"]).await?.code, 0);
    assert_eq!(database.ran(&["sweep", "--table", "events.bad"]).await?.code, 3);
    Ok(())
}

#[tokio::test]
async fn health_without_a_daemon_is_unhealthy_and_asks_no_database() -> Result<()> {
    let database = TestDatabase::new().await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("health.json").to_string_lossy().into_owned();
    for url in ["", "postgres://postgres@localhost:1/lake?host=/nowhere/at/all"] {
        let env = [("TAILRACE__HEALTH__FILE", file.as_str()), ("TAILRACE__DATABASE__URL", url)];
        let ran = database.ran_with(&["health"], &env).await?;
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
        assert!(ran.err.contains(&file), "{ran:?}");
    }
    Ok(())
}

#[tokio::test]
async fn config_masks_what_is_secret() -> Result<()> {
    let database = TestDatabase::new().await?;
    let env = [
        ("TAILRACE__DATABASE__URL", "postgres://me:s3cret@db.example:5432/lake?sslmode=require"),
        ("TAILRACE__SWEEP__LOCK_TIMEOUT", "3s"),
    ];
    let ran = database.ran_with(&["config"], &env).await?;
    assert_eq!(ran.code, 0);
    assert!(!format!("{ran:?}").contains("s3cret"), "{ran:?}");
    assert!(ran.out.contains("postgres://me:***@db.example:5432/lake?sslmode=require"), "{ran:?}");
    assert!(ran.out.contains("lock_timeout = \"3s\""), "{ran:?}");
    // Nor does anything that goes wrong show it.
    let bad = [("TAILRACE__DATABASE__URL", "postgres://me:s3cret@localhost:1/lake?nope=s3cret")];
    let ran = database.ran_with(&["plan"], &bad).await?;
    assert_eq!(ran.code, 2);
    assert!(!format!("{ran:?}").contains("s3cret"), "{ran:?}");
    let away = [("TAILRACE__DATABASE__URL", "postgres://me:s3cret@127.0.0.1:1/lake")];
    let ran = database.ran_with(&["plan"], &away).await?;
    assert_eq!(ran.code, 1);
    assert!(!format!("{ran:?}").contains("s3cret"), "{ran:?}");
    Ok(())
}
