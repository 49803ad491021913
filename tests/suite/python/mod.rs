//! Tests of `pyhoglake`, the published client of hoglake, against the HTTP interface of tailrace,
//! and of the same answers as bytes.
//!
//! The checks of the client are in `tests/python`, in Python.

mod bytes;
mod environment;
mod scene;

use anyhow::Result;
use tailrace_kit::lake::{LakeError, NewFile};

use crate::support::gate::in_order;
use environment::{Environment, Found};
use scene::Scene;

/// The newest version there was when this was written, and the last one for Python 3.11, which
/// does not know how to truncate.
const NEWEST: &str = "1.4.7";
const OLDER: &str = "1.3.11";

#[tokio::test(flavor = "multi_thread")]
async fn the_published_client_understands_us() -> Result<()> {
    let Some(environment) = environment().await? else { return Ok(()) };
    let scene = Scene::new().await?;
    let told = checks(&scene, &environment, NEWEST).await?;
    assert!(told.ends_with("\nOK\n"), "something was left out:\n{told}");
    what_the_client_did_is_there(&scene).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_client_understands_us_too() -> Result<()> {
    let Some(environment) = environment().await? else { return Ok(()) };
    let scene = Scene::new().await?;
    let told = checks(&scene, &environment, OLDER).await?;
    // It has no truncate, and the guide truncates.
    assert!(told.ends_with("\nOK (skipped=4)\n"), "something was left out:\n{told}");
    Ok(())
}

async fn environment() -> Result<Option<Environment>> {
    match Environment::find(NEWEST, OLDER).await? {
        Found::There(environment) => Ok(Some(environment)),
        Found::CannotBeHad(reason) => {
            environment::note_not_run(&reason)?;
            Ok(None)
        }
    }
}

/// Runs the checks to their end, while a DROP TABLE stands before one of them in the queue for the
/// commit lock of the catalog `race`. Returns what they told.
async fn checks(scene: &Scene, environment: &Environment, version: &str) -> Result<String> {
    let scenario = scene.scenario(version)?;
    let (_, told) = in_order(
        &scene.race.catalog,
        scene.race.drop_table(),
        environment.run(version, scenario.path()),
    )
    .await?;
    Ok(told)
}

/// What the checks of the newest client left behind, and what others learn of it.
async fn what_the_client_did_is_there(scene: &Scene) -> Result<()> {
    let authors = scene
        .database
        .rows(
            "SELECT s.author, s.commit_message FROM hog_snapshot s
             JOIN hog_snapshot_change c USING (catalog_id, snapshot_id)
             JOIN hog_table_version v ON v.catalog_id = c.catalog_id AND v.table_id = c.object_id
             WHERE v.name IN ('dropped', 'whole', 'keyed', 'shrunk')
               AND v.end_snapshot IS NULL AND c.kind = 'table_deleted_from'
               AND s.author <> 'demo'
             ORDER BY v.name",
        )
        .await?;
    assert_eq!(
        authors,
        [
            r#"{"author": "me", "commit_message": "why"}"#,
            r#"{"author": "me", "commit_message": "truncate"}"#,
            // The token's name, where the body has none.
            r#"{"author": "etl", "commit_message": "explicit partition drop"}"#,
            r#"{"author": "me", "commit_message": "all of it"}"#,
        ]
    );
    for (table, files) in [("dropped", 1), ("whole", 0), ("keyed", 0), ("shrunk", 1), ("raw", 3)] {
        assert_eq!(scene.tables[table].live_files().await?.len(), files, "{table}");
    }
    what_the_servers_feed_tells(scene).await
}

/// The server's own feed, as the contract describes it: silent on a drop, not on one with a fence.
async fn what_the_servers_feed_tells(scene: &Scene) -> Result<()> {
    let head = scene.lake.head().await?;
    let shrunk = &scene.tables["shrunk"];
    let start = scene.starts["shrunk"];
    let told = shrunk.changes(start, head).await?;
    assert_eq!(told.files.len(), 3, "it lists the appended files, and of no end");
    assert_eq!(told.delete_files, []);
    // Whoever prepared an append before a drop without a fence is not disturbed.
    shrunk.append_at(start, vec![NewFile::of(["5"])]).await?;

    let fence = &scene.tables["fence"];
    let start = scene.starts["fence"];
    let refused = fence.changes(start, head).await;
    assert!(matches!(refused, Err(LakeError::ReconciliationRequired { .. })), "{refused:?}");
    let refused = fence.append_at(start, vec![NewFile::of(["5"])]).await;
    assert!(matches!(refused, Err(LakeError::DdlSinceReadSnapshot { .. })), "{refused:?}");
    Ok(())
}
