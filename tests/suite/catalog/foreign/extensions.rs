//! Tests with extensions that create operators and functions in the catalog's schema, which is
//! common.

use anyhow::Result;

use super::core::{Lake, Today, differences};
use super::statements::wrong;
use crate::support::TestDatabase;

const EXTENSIONS: [&str; 4] = ["citext", "hstore", "intarray", "pg_trgm"];

/// Whether the server has their files; a Postgres from a Python wheel has not.
async fn are_there(database: &TestDatabase) -> Result<bool> {
    let found: i64 =
        sqlx::query_scalar("SELECT count(*) FROM pg_available_extensions WHERE name = any($1)")
            .bind(EXTENSIONS)
            .fetch_one(&database.pool)
            .await?;
    let are_there = usize::try_from(found)? == EXTENSIONS.len();
    if !are_there {
        eprintln!("this server has no files of {EXTENSIONS:?}: nothing is tested with them");
    }
    Ok(are_there)
}

async fn create(database: &TestDatabase) -> Result<()> {
    for extension in EXTENSIONS {
        database.sql(&format!("CREATE EXTENSION {extension} SCHEMA public")).await?;
    }
    Ok(())
}

#[tokio::test]
async fn they_change_nothing() -> Result<()> {
    let database = TestDatabase::new().await?;
    if !are_there(&database).await? {
        return Ok(());
    }
    let today = Today::now()?;
    let expected = Lake::within(database, true, today).await?.run().await?;
    let database = TestDatabase::new().await?;
    create(&database).await?;
    assert_eq!(wrong(&database).await?, Vec::<String>::new());
    let seen = Lake::within(database, true, today).await?.run().await?;
    assert_eq!(differences(&expected, &seen)?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_migration_goes_past_them() -> Result<()> {
    let database = TestDatabase::in_schema("public").await?;
    if !are_there(&database).await? {
        return Ok(());
    }
    create(&database).await?;
    for _ in 0..2 {
        let ran = database.ran(&["migrate"]).await?;
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    Ok(())
}
