//! Tests of a queued path that a row still names: the server skips the path at each run, and trace
//! shows the row.

use anyhow::{Context, Result};
use serde_json::json;
use tailrace::trace::state::{Hold, Stage};
use tailrace::trace::{NamedBy, Naming};
use tailrace_kit::lake::NewFile;
use tailrace_kit::simulated_loops::Cleanup;

use super::{Scene, second};
use crate::support::program::days_ago;

#[tokio::test]
async fn what_the_server_skips_is_told_with_the_row_that_names_it() -> Result<()> {
    let mut scene = Scene::new().await?;
    let dropped = scene.drop(8, 2).await?;
    // Another file, which is live, has the path of one of them.
    let live = scene.table.append(vec![NewFile::of([days_ago(0)])]).await?.file_ids[0];
    scene
        .database
        .sql(&format!(
            "UPDATE hog_data_file SET path = (SELECT path FROM hog_data_file
               WHERE end_snapshot = {dropped} ORDER BY data_file_id LIMIT 1)
              WHERE data_file_id = {live}"
        ))
        .await?;
    scene.floor_to(dropped).await?;
    scene.expiry.purge().await?;
    scene.note("2031-01-01T00:00:00Z").await?;
    let told = scene.only().await?;
    assert_eq!(told.held_by, [Hold::Queue { objects: 2, stuck: 0 }]);
    assert!(scene.report().await?.stuck.is_empty());

    let cleaned = Cleanup::new(&scene.catalog).run(10).await?;
    assert_eq!((cleaned.absent, cleaned.violations), (1, 1));
    let report = scene.report().await?;
    let [told] = report.drops.as_slice() else { panic!("{report:?}") };
    assert_eq!(told.stage, Stage::Queued);
    assert_eq!(told.held_by, [Hold::Queue { objects: 1, stuck: 1 }]);
    let [stuck] = report.stuck.as_slice() else { panic!("{report:?}") };
    let naming = Naming {
        file_id: live,
        table: Some("events.raw".to_owned()),
        table_id: scene.table.table_id,
        end_snapshot: None,
    };
    assert_eq!((stuck.attempts, &stuck.named_by), (1, &NamedBy::DataFile(naming)));
    assert!(stuck.last_attempt_at.is_some_and(|at| at >= stuck.queued_at), "{stuck:?}");
    let json = scene.database.done(&["trace", "--output", "json"]).await?;
    let json = &json["catalogs"];
    assert_eq!(
        json[0]["stuck"][0]["named_by"],
        json!({"by": "data_file", "file_id": live, "table": "events.raw",
               "table_id": scene.table.table_id, "end_snapshot": null})
    );
    assert_eq!(json[0]["drops"][0]["held_by"], json!([{"by": "queue", "objects": 1, "stuck": 1}]));
    let ran = scene.database.ran(&["trace"]).await?;
    assert!(ran.out.contains("server's queue, 1 of them stuck\n"), "{}", ran.out);
    let line = ran.out.lines().next_back().context("a line")?;
    let named = format!("  1 attempt  named by data file {live} of events.raw, live");
    assert!(line.contains(&format!("queued {}", second(stuck.queued_at))), "{line}");
    assert!(line.ends_with(&named), "{line}");

    // With the live file's end it is another's business; once no row names it, it goes.
    scene.database.sql(&format!("DELETE FROM hog_data_file WHERE data_file_id = {live}")).await?;
    assert!(scene.report().await?.stuck.is_empty(), "one try in vain is none");
    assert_eq!(Cleanup::new(&scene.catalog).run(10).await?.absent, 1);
    scene.note("2031-01-02T00:00:00Z").await?;
    assert_eq!(scene.only().await?.stage, Stage::Gone);
    Ok(())
}

#[tokio::test]
async fn what_no_row_names_is_told_after_several_tries() -> Result<()> {
    let scene = Scene::new().await?;
    let queue = |attempts: i32| {
        format!(
            "INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason, attempts)
             VALUES ({}, 'x', 'data', 'snapshot_expiry', {attempts})",
            scene.catalog.catalog_id
        )
    };
    scene.database.sql(&queue(2)).await?;
    scene.database.sql(&queue(3)).await?;
    let told = async || -> Result<Vec<(i32, NamedBy)>> {
        let stuck = scene.report().await?.stuck;
        Ok(stuck.into_iter().map(|one| (one.attempts, one.named_by)).collect())
    };
    assert_eq!(told().await?, [(3, NamedBy::NoFile)]);
    scene.database.sql("DROP INDEX hog_data_file_path").await?;
    assert_eq!(told().await?, [(3, NamedBy::Unknown)]);
    Ok(())
}
