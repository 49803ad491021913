//! Tests that the number of statements of a pass with nothing to do is the same for any number of
//! catalogs.

use anyhow::Result;
use tailrace::sweep::Scope;
use tailrace_kit::lake::{Field, NewFile};

use super::{pass, settle};
use crate::explicit::wire::Wire;
use crate::support::TestDatabase;
use crate::support::program::{days_ago, settings};

/// How many requests a pass sends that has nothing to do in so many catalogs, of each of which a drop is not
/// gone yet, and a table with a policy is gone and another one has its name; the second time, for the first one
/// notes the heads.
async fn requests(catalogs: usize) -> Result<usize> {
    let database = TestDatabase::new().await?;
    for number in 0..catalogs {
        let catalog = database.catalog(&format!("lake{number}")).await?;
        let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
        table.append(vec![NewFile::of([days_ago(0)]), NewFile::of([days_ago(9)])]).await?;
        database.govern(&table, "at", "7d").await?;
        let gone = database.table(&catalog, "gone", &[Field::day("at")]).await?;
        database.govern(&gone, "at", "7d").await?;
        gone.drop_table().await?;
        database.table(&catalog, "gone", &[Field::day("at")]).await?;
    }
    assert_eq!(database.sweep().await?.counts().files, catalogs as i64);
    settle(&database).await?;
    let (wire, through) = Wire::to(&database).await?;
    let idle = async || -> Result<usize> {
        wire.forget();
        let (worked, report) = pass(&through, &settings(), &Scope::default()).await?;
        assert_eq!((worked.len(), report.tables.len()), (0, catalogs));
        Ok(wire.asked().len())
    };
    idle().await?;
    let asked = idle().await?;
    let leases = wire.asked().iter().filter(|sql| sql.contains("pg_try_advisory_lock")).count();
    assert_eq!(leases, 0, "no catalog is leased");
    Ok(asked)
}

#[tokio::test]
async fn their_number_is_the_same_for_any_number_of_catalogs() -> Result<()> {
    assert_eq!(requests(3).await?, requests(30).await?);
    Ok(())
}
