//! Tests of a daemon that is woken.

use anyhow::Result;
use tailrace_kit::lake::{Field, NewFile};

use super::Scene;
use crate::support::governed::live_ids;

/// How long after the test's beginning the partition expires: the daemon's first pass is over by then.
const SOON: i64 = 15;

#[tokio::test]
async fn it_drops_what_expires_long_before_the_next_tick() -> Result<()> {
    let scene = Scene::new().await?;
    let database = &scene.database;
    let table = database.table(&scene.catalog, "raw", &[Field::hour("at")]).await?;
    let now = "SELECT extract(epoch FROM clock_timestamp())::bigint";
    let now: i64 = database.text(now).await?.unwrap_or_default().parse()?;
    let (hour, due) = (now / 3_600 - 2, now + SOON);
    let end = (hour + 1) * 3_600;
    table.append(vec![NewFile::of([hour.to_string()])]).await?;
    database.govern(&table, "at", &format!("{}s", due - end)).await?;
    scene.noted(&table).await?;
    database
        .sql(&format!(
            "INSERT INTO tailrace.calendar
             SELECT catalog_id, table_uuid, (SELECT spec_id FROM hog_data_file), false, '{hour}',
                    to_timestamp({end}), to_timestamp({end}), 3600, NULL FROM tailrace.policy"
        ))
        .await?;
    let folder = tempfile::tempdir()?;
    let health = folder.path().join("health.json").to_string_lossy().into_owned();
    let env = [
        ("TAILRACE__SCHEDULE__EVERY", "10m"),
        ("TAILRACE__SCHEDULE__JITTER", "0s"),
        ("TAILRACE__SCHEDULE__LAG", "1s"),
        ("TAILRACE__HEALTH__FILE", &health),
    ];
    let mut run = database.start(&["run"], &env)?;
    run.event("pass_finished", 2).await?;
    assert_eq!(live_ids(&table).await?, [0; 0]);
    run.signal("TERM").await?;
    let ended = run.end().await?;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let passes: Vec<_> = ended.log.iter().filter(|line| line["event"] == "pass_finished").collect();
    let files: Vec<_> = passes.iter().map(|pass| pass["files_ended"].as_i64()).collect();
    assert_eq!(files[..2], [Some(0), Some(1)], "{passes:?}");
    Ok(())
}
