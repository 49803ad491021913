//! Tests that a pass that has ended holds no lease.

use anyhow::Result;
use tailrace_kit::lake::{Field, NewFile};

use crate::support::TestDatabase;
use crate::support::wait::until;

/// One pass right after another, of this daemon or another, must not find the catalog still
/// held by the last one's session, which the server has not seen the end of yet.
#[tokio::test]
async fn the_lease_is_free_as_soon_as_a_pass_returns() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["99999"])]).await?;
    database.govern(&table, "at", "7d").await?;
    for pass in 0..20 {
        let report = database.sweep().await?;
        assert_eq!((report.skipped_catalogs.len(), report.tables.len()), (0, 1), "pass {pass}");
        let held = database
            .text(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            )
            .await?;
        assert_eq!(held.as_deref(), Some("0"), "pass {pass}");
    }
    Ok(())
}

/// A session that did not have its lease to the end tells so when it is to give it back. It is closed, as
/// every one is: none is handed on.
#[tokio::test]
async fn a_lease_that_was_lost_on_the_way_is_reported() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["99999"])]).await?;
    database.govern(&table, "at", "7d").await?;
    let told = async || -> Result<bool> {
        let ran = database.run(&["sweep"]).await?;
        assert_eq!(ran.status.code(), Some(0), "{ran:?}");
        let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                           AND query LIKE 'select pg_catalog.pg_advisory_unlock(%'";
        until("its session is closed", async || {
            Ok(database.text(sessions).await?.as_deref() == Some("0"))
        })
        .await?;
        Ok(String::from_utf8_lossy(&ran.stderr).contains("did not have its lease any more"))
    };
    assert!(!told().await?);
    table.append(vec![NewFile::of(["18000"])]).await?;
    database
        .sql(
            "CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS
               'BEGIN PERFORM pg_advisory_unlock_all(); RETURN NULL; END';
             CREATE TRIGGER lose AFTER INSERT OR UPDATE ON tailrace.table_state
               EXECUTE FUNCTION lose()",
        )
        .await?;
    assert!(told().await?);
    Ok(())
}
