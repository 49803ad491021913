//! Tests of `policy unset`, without a property and where a property takes over.

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile};

use super::properties::{PROPERTY, with_property};
use crate::support::TestDatabase;
use crate::support::governed::{live_ids, outcomes};

const UNSET: [&str; 4] = ["policy", "unset", "lake", "events.raw"];
const UNSET_YES: [&str; 5] = ["policy", "unset", "lake", "events.raw", "--yes"];

#[tokio::test]
async fn a_stored_policy_wins_over_a_property() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = with_property(&database, r#"{"field": "at", "keep": "7d"}"#).await?;
    database.policy("lake", "events.raw", "day(at)", "30000d").await?;
    assert_eq!(database.sweep_one().await?.outcome, Outcome::NothingToDo);
    assert_eq!(live_ids(&table).await?.len(), 2);
    // The mirror is kept up to date all the same, and shown as not in force.
    let listed =
        database.policies(&["policy", "get", "lake", "events.raw", "--output", "json"]).await?;
    let shown: Vec<_> = listed
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| (row["source"].as_str(), row["in_force"].as_bool(), row["keep"].as_str()))
        .collect();
    assert_eq!(
        shown,
        [(Some("stored"), Some(true), Some("30000d")), (Some("property"), Some(false), Some("7d")),]
    );
    // A bad property does not hinder a stored policy.
    table.set_property(PROPERTY, Some("{")).await?;
    assert_eq!(database.sweep_one().await?.outcome, Outcome::NothingToDo);
    Ok(())
}

#[tokio::test]
async fn unset_ends_retention() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["18000"])]).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    let ran = database.ran(&UNSET).await?;
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "lake events.raw: the stored policy is taken away\n")
    );
    assert_eq!(ran.events("policy_unset").len(), 1);
    assert_eq!(outcomes(&database.sweep().await?), []);
    assert_eq!(live_ids(&table).await?.len(), 1);
    let ran = database.ran(&UNSET).await?;
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert_eq!(ran.err, "tailrace: table events.raw has no stored policy\n");
    Ok(())
}

#[tokio::test]
async fn unset_shows_what_a_property_would_drop_and_wants_a_yes() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = with_property(&database, r#"{"field": "at", "keep": "7d"}"#).await?;
    database.policy("lake", "events.raw", "day(at)", "30000d").await?;
    // Whether a pass has mirrored the property before, or not.
    for swept in [false, true] {
        if swept {
            database.sweep().await?;
        }
        let before = database.rows("SELECT * FROM tailrace.policy ORDER BY source").await?;
        let dump = database.lake.dump().await?;
        let ran = database.ran(&UNSET).await?;
        assert_eq!(ran.code, 1);
        assert!(
            ran.out.starts_with(
                "The table's property partition_retention takes over: at keep 7d, enforce\n"
            ),
            "{ran:?}"
        );
        assert!(ran.out.contains("expired      1 partition: 1 file"), "{ran:?}");
        assert!(ran.out.contains("2019-04-14  ended 2019-04-15T00:00:00Z"), "{ran:?}");
        let words = "tailrace: the stored policy stays; say --yes to let the property take over\n";
        assert_eq!(ran.err, words);
        let after = database.rows("SELECT * FROM tailrace.policy ORDER BY source").await?;
        assert_eq!(after, before);
        assert_eq!(database.lake.dump().await?, dump);
    }
    let ran = database.ran(&UNSET_YES).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("takes over"));
    assert!(ran.out.ends_with("lake events.raw: the stored policy is taken away\n"));
    assert_eq!(live_ids(&table).await?.len(), 2, "unset drops nothing itself");
    assert_eq!(database.sweep_one().await?.outcome, Outcome::Dropped);
    // A policy that is the table's own cannot be unset here.
    let ran = database.ran(&UNSET_YES).await?;
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.err,
        "tailrace: table events.raw has no stored policy; its property partition_retention is \
         the table's own: change the table to take it away\n"
    );
    Ok(())
}

/// A property that would not be followed takes nothing over, and is shown.
#[tokio::test]
async fn unset_over_a_bad_property_says_so_and_does_it() -> Result<()> {
    let database = TestDatabase::new().await?;
    with_property(&database, r#"{"field": "at", "keep": "7"}"#).await?;
    database.policy("lake", "events.raw", "day(at)", "30000d").await?;
    let ran = database.ran(&UNSET).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("is not followed: keep \"7\" has no unit"), "{ran:?}");
    assert_eq!(database.sweep_one().await?.outcome, Outcome::Failed);
    Ok(())
}

/// A server older than V11 has no properties to take over.
#[tokio::test]
async fn a_server_without_properties_is_fine() -> Result<()> {
    let database = TestDatabase::in_schema("public").await?;
    database.lake.downgrade(10).await?;
    assert_eq!(database.ran(&["migrate"]).await?.code, 0);
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["18000"])]).await?;
    assert_eq!(outcomes(&database.sweep().await?), []);
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    assert_eq!(database.sweep_one().await?.outcome, Outcome::Dropped);
    assert_eq!(database.ran(&UNSET).await?.code, 0);
    Ok(())
}
