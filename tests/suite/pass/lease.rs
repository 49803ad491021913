//! A pass that is over holds nothing.

use anyhow::Result;
use tailrace_kit::lake::{Field, NewFile};

use crate::support::TestDatabase;

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
