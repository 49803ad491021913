//! Tests of another replica that migrates the schema while a pass of this program runs.

use anyhow::Result;
use tailrace::sweep::report::{Outcome, PassReport};
use tailrace::sweep::{Scope, run_pass};
use tailrace_kit::lake::{Catalog, Field, Table};
use tokio_util::sync::CancellationToken;

use crate::drop::races::{file, patient};
use crate::support::TestDatabase;
use crate::support::gate::while_it_waits;
use crate::support::governed::{of_table, outcomes};

const NEWER: &str = "the database's schema tailrace is newer than this program (migration 999): \
                     upgrade tailrace here too";

/// Two tables with two expired files each.
async fn scene() -> Result<(TestDatabase, Catalog, [Table; 2])> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let mut tables = Vec::new();
    for name in ["one", "two"] {
        let table = database.table(&catalog, name, &[Field::day("at")]).await?;
        table.append(vec![file(9), file(8), file(0)]).await?;
        database.govern(&table, "at", "7d").await?;
        tables.push(table);
    }
    let tables = tables.try_into().map_err(|_| anyhow::anyhow!("two"))?;
    Ok((database, catalog, tables))
}

/// A pass, and what is done while it waits for the commit lock for the first time.
async fn pass_while(
    database: &TestDatabase,
    catalog: &Catalog,
    meanwhile: &str,
) -> Result<PassReport> {
    let (through, settings) = (database.tailrace(), patient());
    let (scope, stop) = (Scope::default(), CancellationToken::new());
    let pass = run_pass(&through, &settings, &scope, &stop, &|_| {});
    let upgraded = format!(
        "INSERT INTO tailrace.schema_migration
           (version, description, success, checksum, execution_time)
         VALUES (999, 'the future', true, '\\x00', 1);
         {meanwhile}"
    );
    Ok(while_it_waits(catalog, pass, database.sql(&upgraded)).await?.0)
}

/// What is planned goes; the next table of the same pass is left alone.
#[tokio::test]
async fn the_pass_goes_on_to_no_other_table() -> Result<()> {
    let (database, catalog, [one, two]) = scene().await?;
    let report = pass_while(&database, &catalog, "").await?;
    assert_eq!(outcomes(&report), [("one", Outcome::Dropped)]);
    let failed: Vec<_> = report.failed_catalogs.iter().map(|failed| &failed.error).collect();
    assert_eq!(failed, [NEWER]);
    assert_eq!((one.live_files().await?.len(), two.live_files().await?.len()), (1, 3));
    Ok(())
}

/// A session that takes the place of one that was lost is checked as that one was.
#[tokio::test]
async fn no_new_session_of_the_pass_works_on() -> Result<()> {
    let (database, catalog, [one, two]) = scene().await?;
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'
        AND NOT granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let report = pass_while(&database, &catalog, cut).await?;
    assert_eq!(outcomes(&report), [("one", Outcome::Failed)]);
    let error = of_table(&report, "one").error.as_deref().unwrap_or_default();
    assert!(error.contains(&format!("; then: {NEWER}")), "{error}");
    assert_eq!((one.live_files().await?.len(), two.live_files().await?.len()), (3, 3));
    Ok(())
}
