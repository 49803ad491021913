//! Tests of servers before V9, where a column does not say in which struct it is: nothing of
//! tailrace works there.

use anyhow::Result;
use tailrace_kit::lake::Lake;

use super::{daemon_on, every_command_is_refused, every_request_is_refused, filled, is_logged};
use crate::support::TestDatabase;

const REASON: &str = "the hoglake server of this database is older than V9 (hog_column has no \
                      parent_field_id), and tailrace needs V9 or newer: upgrade the hoglake server";

#[tokio::test]
async fn every_command_refuses_it() -> Result<()> {
    for version in [6, 8] {
        let database = TestDatabase::new().await?;
        filled(&database, true).await?;
        database.lake.downgrade(version).await?;
        every_command_is_refused(&database, REASON).await?;
        let ran = database.ran(&["doctor"]).await?;
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
        assert_eq!(ran.err, format!("tailrace: {REASON}\n"));
    }
    Ok(())
}

/// Where nothing of ours is installed nobody is sent to `tailrace migrate`, which refuses too.
#[tokio::test]
async fn before_a_migration_it_is_refused_alike() -> Result<()> {
    let database = TestDatabase::in_schema("Hog-lake").await?;
    filled(&database, false).await?;
    database.lake.downgrade(8).await?;
    every_command_is_refused(&database, REASON).await?;
    assert_eq!(database.ran(&["doctor"]).await?.code, 2);
    let ours = "SELECT count(*) FROM pg_namespace WHERE nspname = 'tailrace'";
    assert_eq!(database.text(ours).await?.as_deref(), Some("0"));
    Ok(())
}

/// A daemon that is up stays up, tells why nothing is done, and goes on by itself once it can.
#[tokio::test]
async fn a_daemon_that_is_up_waits_for_the_upgrade() -> Result<()> {
    let database = TestDatabase::new().await?;
    let (_, table) = filled(&database, true).await?;
    let (mut daemon, client) = daemon_on(&database).await?;
    database.sql("ALTER TABLE hog_column RENAME parent_field_id TO parent").await?;
    is_logged(&daemon, "pass_failed", REASON).await?;
    is_logged(&daemon, "shield_failed", REASON).await?;
    every_request_is_refused(&client, REASON).await?;
    let dropped = daemon.so_far("drop_committed").len();
    let day = crate::support::program::days_ago(9);
    table.append(vec![tailrace_kit::lake::NewFile::of([day])]).await?;
    let failed = daemon.so_far("pass_failed").len();
    daemon.event("pass_failed", failed + 2).await?;
    assert_eq!(table.live_files().await?.len(), 1);
    database.sql("ALTER TABLE hog_column RENAME parent TO parent_field_id").await?;
    daemon.event("drop_committed", dropped + 1).await?;
    assert_eq!(table.live_files().await?, []);
    daemon.signal("TERM").await?;
    assert_eq!(daemon.end().await?.code, Some(0));
    Ok(())
}

/// Who may not use the catalog's schema, or looks in the wrong one, is told that, and nothing of versions.
#[tokio::test]
async fn tables_that_cannot_be_seen_say_nothing_of_the_server() -> Result<()> {
    let database = TestDatabase::in_schema("hog").await?;
    let env = [("TAILRACE__DATABASE__SCHEMA", "public")];
    for args in [&["migrate"][..], &["doctor"]] {
        let ran = database.ran_with(args, &env).await?;
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.err.contains("there is no hoglake catalog"), "{ran:?}");
    }
    let ran = database.ran_with(&["plan"], &env).await?;
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("run `tailrace migrate`"), "{ran:?}");
    // A second lake, older, beside the one that is meant.
    let other = Lake::install(&database.pool, "other").await?;
    other.downgrade(8).await?;
    assert_eq!(database.ran(&["migrate"]).await?.code, 0);
    assert_eq!(database.ran(&["plan"]).await?.code, 0);
    Ok(())
}
