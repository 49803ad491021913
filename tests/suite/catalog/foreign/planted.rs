//! Tests that the core of the program does the same with every overload in place as without them.

use anyhow::Result;
use serde_json::json;

use super::core::{Lake, Seen, Today, at, differences};
use super::hostile::plant;
use crate::support::TestDatabase;

/// A database with the server's tables of this version, and ours.
async fn of_version(version: u32) -> Result<TestDatabase> {
    let database = TestDatabase::new().await?;
    if version < 27 {
        database.lake.downgrade(version).await?;
    }
    Ok(database)
}

async fn without(version: u32, today: Today) -> Result<Seen> {
    Lake::within(of_version(version).await?, version > 10, today).await?.run().await
}

async fn with_all(version: u32, today: Today) -> Result<Seen> {
    let lake = Lake::within(of_version(version).await?, version > 10, today).await?;
    let mallory = plant(&lake.database).await?;
    let seen = lake.run().await?;
    assert!(!mallory.was_called().await?, "V{version}: somebody else's function was called");
    Ok(seen)
}

/// What doctor says of who may create differs, and must.
fn without_creators(seen: Seen) -> Seen {
    let of = |(step, mut value): (String, serde_json::Value)| {
        if step.starts_with("doctor") {
            let findings = value["out"][0]["findings"].as_array_mut();
            findings.into_iter().for_each(|all| all.retain(|one| one["check"] != "creators"));
        }
        (step, value)
    };
    seen.into_iter().map(of).collect()
}

async fn every_overload_changes_nothing(version: u32) -> Result<()> {
    let today = Today::now()?;
    let (expected, seen) = (without(version, today).await?, with_all(version, today).await?);
    // The core does something: files of both kinds of policies go, and those of none stay.
    let swept = at(&expected, "sweep")?;
    assert_eq!(swept["code"], 0, "V{version}: {swept}");
    let tables = swept["out"][0]["tables"].as_array().map_or(0, Vec::len);
    assert_eq!(tables, if version > 10 { 3 } else { 2 }, "{swept}");
    assert_eq!(at(&expected, "drop lake")?["out"][0]["files_ended"], json!(1));
    let of = at(&seen, "doctor")?;
    assert!(of.to_string().contains("may create in the schema public"), "{of}");
    let (expected, seen) = (without_creators(expected), without_creators(seen));
    assert_eq!(differences(&expected, &seen)?, Vec::<String>::new(), "V{version}");
    Ok(())
}

#[tokio::test]
async fn on_the_newest_server() -> Result<()> {
    every_overload_changes_nothing(27).await
}

/// It lacks columns: with an alias they would be calls.
#[tokio::test]
async fn on_a_server_that_lacks_columns() -> Result<()> {
    every_overload_changes_nothing(10).await
}
