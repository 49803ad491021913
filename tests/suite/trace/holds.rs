//! Tests of what keeps a drop at a stage.

use anyhow::Result;
use chrono::{TimeDelta, Utc};
use tailrace::trace::state::{Hold, Stage};
use tailrace_kit::simulated_loops::Consumer;

use super::Scene;

#[tokio::test]
async fn without_retention_it_stays_for_ever() -> Result<()> {
    let scene = Scene::keeping(None).await?;
    scene.drop(8, 1).await?;
    let told = scene.only().await?;
    assert_eq!(told.stage, Stage::Retained);
    assert_eq!(told.held_by, [Hold::Retention { seconds: None, until: None }]);
    Ok(())
}

/// The floor comes to the drop's snapshot when the one before it is older than the retention,
/// however young the drop itself is.
#[tokio::test]
async fn retention_holds_it_until_the_snapshot_before_it_is_old() -> Result<()> {
    let scene = Scene::new().await?;
    let dropped = scene.drop(8, 1).await?;
    let hour = TimeDelta::hours(1);
    for (age, is_held) in
        [(hour - TimeDelta::minutes(1), true), (hour + TimeDelta::minutes(1), false)]
    {
        scene.catalog.backdate_through(dropped - 1, Utc::now() - age).await?;
        let told = scene.only().await?;
        let until = scene.time_of(dropped - 1).await?.plus(std::time::Duration::from_secs(3600));
        let held = match is_held {
            true => Hold::Retention { seconds: Some(3600), until: Some(until) },
            false => Hold::Expiry,
        };
        assert_eq!((told.stage, told.held_by), (Stage::Retained, vec![held]));
        // The server agrees.
        let mut expiry = scene.expiry.clone();
        expiry.batch = if is_held { 10_000 } else { 0 };
        assert!(expiry.advance_floor(None).await?.to < dropped);
    }
    assert_eq!(scene.expiry.advance_floor(None).await?.to, dropped);
    assert_eq!(scene.only().await?.stage, Stage::Purging);
    Ok(())
}

#[tokio::test]
async fn consumers_that_lag_hold_it_where_the_catalog_heeds_them() -> Result<()> {
    let scene = Scene::new().await?;
    let slow = Consumer::register(&scene.table, "slow").await?;
    let slow_at = slow.committed().await?;
    let dropped = scene.drop(8, 1).await?;
    Consumer::register(&scene.table, "current").await?;
    scene.catalog.backdate_through(dropped - 1, Utc::now() - TimeDelta::hours(2)).await?;
    let told = scene.only().await?;
    let [Hold::Consumer(held)] = told.held_by.as_slice() else { panic!("{told:?}") };
    let identity = (held.consumer_id.as_str(), held.table_uuid, held.committed_snapshot);
    assert_eq!(identity, ("slow", scene.table.table_uuid, slow_at));

    // It has applied the snapshot before the drop: not the drop.
    slow.advance(dropped - 1).await?;
    let told = scene.only().await?;
    assert!(matches!(told.held_by.as_slice(), [Hold::Consumer(_)]), "{told:?}");
    slow.advance(dropped).await?;
    assert_eq!(scene.only().await?.held_by, [Hold::Expiry]);

    // A consumer of a table that is no more, and all of them where the catalog does not heed any.
    scene
        .database
        .sql(
            "UPDATE hog_consumer_offset SET committed_snapshot = 1, table_uuid = gen_random_uuid()",
        )
        .await?;
    assert_eq!(scene.only().await?.held_by, [Hold::Expiry]);
    let table_uuid = scene.table.table_uuid;
    scene
        .database
        .sql(&format!("UPDATE hog_consumer_offset SET table_uuid = '{table_uuid}'"))
        .await?;
    assert_eq!(scene.only().await?.held_by.len(), 2);
    scene.database.sql("UPDATE hog_catalog SET consumer_floor = false").await?;
    assert_eq!(scene.only().await?.held_by, [Hold::Expiry]);
    Ok(())
}

#[tokio::test]
async fn both_are_told_where_both_hold() -> Result<()> {
    let scene = Scene::new().await?;
    Consumer::register(&scene.table, "slow").await?;
    scene.drop(8, 1).await?;
    let told = scene.only().await?;
    assert!(
        matches!(told.held_by.as_slice(), [Hold::Retention { .. }, Hold::Consumer(_)]),
        "{told:?}"
    );
    Ok(())
}
