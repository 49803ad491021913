//! Tests of a policy that was changed before the commit.

use anyhow::{Result, ensure};
use tailrace::sweep::report::Outcome;

use crate::support::TestDatabase;
use crate::support::gate::{in_order, while_it_waits};
use crate::support::program::days_ago;

use super::{Scene, only, texts, whole};

const PROPERTY: &str = r#"{"field": "day(at)", "keep": "7d"}"#;

async fn ok(database: &TestDatabase, args: &[&str]) -> Result<()> {
    let output = database.run(args).await?;
    ensure!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

async fn unchanged(scene: &Scene, head: i64) -> Result<()> {
    assert_eq!(scene.catalog.head().await?, head);
    assert_eq!(scene.live().await?, scene.files);
    assert_eq!(whole::drops(&scene.catalog, scene.table.table_id).await?, []);
    Ok(())
}

#[tokio::test]
async fn a_stored_policy_that_changed_in_between_stops_the_drop() -> Result<()> {
    let set = ["policy", "set", "lake", "events.raw", "--field", "day(at)", "--keep"];
    let longer = [&set[..], &["30d"]].concat();
    // Not even a change that comes to the same, or to more, is acted upon unplanned.
    let same = [&set[..], &["7d"]].concat();
    let paused = [&set[..], &["7d", "--mode", "paused"]].concat();
    let observed = [&set[..], &["7d", "--mode", "observe"]].concat();
    let unset = vec!["policy", "unset", "lake", "events.raw"];
    for change in [longer, same, paused, observed, unset] {
        let scene = Scene::new(&[0, 8, 9]).await?;
        let head = scene.catalog.head().await?;
        let (report, ()) =
            while_it_waits(&scene.catalog, scene.sweep(), ok(&scene.database, &change)).await?;
        assert_eq!((report.outcome, report.error), (Outcome::PolicyChanged, None), "{change:?}");
        assert!(report.snapshots.is_empty(), "{change:?}");
        unchanged(&scene, head).await?;
    }
    Ok(())
}

/// A scene whose policy is the table's property, mirrored by a pass.
async fn by_property() -> Result<Scene> {
    let scene = Scene::new(&[0]).await?;
    ok(&scene.database, &["policy", "unset", "lake", "events.raw"]).await?;
    scene.table.set_property("partition_retention", Some(PROPERTY)).await?;
    assert_eq!(scene.sweep().await?.outcome, Outcome::NothingToDo);
    let old = scene.table.append(vec![super::file(8), super::file(9)]).await?;
    Ok(Scene { files: [scene.files.clone(), old.file_ids].concat(), ..scene })
}

#[tokio::test]
async fn a_property_that_changed_in_between_stops_the_drop() -> Result<()> {
    let longer = r#"{"field": "day(at)", "keep": "30d"}"#;
    let spaced = r#"{"field": "day(at)",  "keep": "7d"}"#;
    for text in [Some(longer), Some(spaced), Some("{"), None] {
        let scene = by_property().await?;
        let head = scene.catalog.head().await?;
        let change = scene.table.set_property("partition_retention", text);
        let (_, report) = in_order(&scene.catalog, change, scene.sweep()).await?;
        assert_eq!((report.outcome, report.error), (Outcome::PolicyChanged, None), "{text:?}");
        unchanged(&scene, head + 1).await?;
    }
    // Another property is another matter.
    let scene = by_property().await?;
    let change = scene.table.set_property("owner", Some("someone"));
    let (_, report) = in_order(&scene.catalog, change, scene.sweep()).await?;
    assert_eq!(texts(only(&report)), [(days_ago(9), 1), (days_ago(8), 1)]);
    Ok(())
}

#[tokio::test]
async fn a_stored_policy_set_over_a_property_stops_its_drop() -> Result<()> {
    let scene = by_property().await?;
    let head = scene.catalog.head().await?;
    let set = scene.database.policy("lake", "events.raw", "day(at)", "30d");
    let (report, ()) = while_it_waits(&scene.catalog, scene.sweep(), set).await?;
    assert_eq!((report.outcome, report.error), (Outcome::PolicyChanged, None));
    unchanged(&scene, head).await?;

    // And the other way round, once the stored one goes: only a new plan acts by the property.
    ok(&scene.database, &["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "8d"])
        .await?;
    let unset = ok(&scene.database, &["policy", "unset", "lake", "events.raw", "--yes"]);
    let (report, ()) = while_it_waits(&scene.catalog, scene.sweep(), unset).await?;
    assert_eq!(report.outcome, Outcome::PolicyChanged);
    unchanged(&scene, head).await?;
    assert_eq!(scene.sweep().await?.outcome, Outcome::Dropped);
    assert_eq!(scene.live().await?, [scene.files[0]]);
    Ok(())
}
