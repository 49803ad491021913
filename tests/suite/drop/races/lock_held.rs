//! Tests of a commit lock that somebody else holds for long.

use anyhow::Result;
use serde_json::json;

use crate::support::gate::Gate;
use crate::support::program::days_ago;

use super::{Scene, file, whole};

#[tokio::test]
async fn a_catalog_whose_lock_is_not_granted_is_left_for_the_others() -> Result<()> {
    let scene = Scene::new(&[0, 8]).await?;
    let second = scene
        .database
        .table(&scene.catalog, "second", &[tailrace_kit::lake::Field::day("at")])
        .await?;
    second.append(vec![file(9)]).await?;
    scene.database.policy("lake", "events.second", "at", "7d").await?;
    let free = scene.database.catalog("pond").await?;
    let other = scene.database.table(&free, "raw", &[tailrace_kit::lake::Field::day("at")]).await?;
    other.append(vec![file(8), file(0)]).await?;
    scene.database.policy("pond", "events.raw", "at", "7d").await?;
    let head = scene.catalog.head().await?;

    let gate = Gate::shut(&scene.catalog).await?;
    let run = scene
        .database
        .start(&["sweep", "--output", "json"], &[("TAILRACE__SWEEP__LOCK_TIMEOUT", "150ms")])?;
    let ended = run.end().await?;
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let report = ended.json()?;
    let tables: Vec<_> = report["tables"].as_array().into_iter().flatten().collect();
    let outcomes: Vec<_> =
        tables.iter().map(|t| json!([t["catalog"], t["table"], t["outcome"]])).collect();
    assert_eq!(
        outcomes,
        [
            json!(["lake", "raw", "lock_timeout"]),
            json!(["lake", "second", "lock_timeout"]),
            json!(["pond", "raw", "dropped"]),
        ]
    );
    for table in &tables[..2] {
        assert_eq!(table["snapshots"], json!([]));
        let error = table["error"].as_str().unwrap_or_default();
        assert!(error.contains("sweep.lock_timeout"), "{error}");
    }
    let waits: Vec<f64> = ended
        .log
        .iter()
        .filter(|line| line["event"] == "lock_not_had")
        .filter_map(|line| line["lock_wait_ms"].as_f64())
        .collect();
    assert_eq!(waits.len(), 2);
    assert!(waits.iter().all(|wait| *wait >= 150.0), "{waits:?}");
    assert_eq!(scene.catalog.head().await?, head);
    assert_eq!(scene.live().await?, scene.files);
    assert_eq!(other.live_files().await?[0].values, [Some(days_ago(0))]);
    assert_eq!(whole::drops(&free, other.table_id).await?.len(), 1);

    gate.open().await?;
    let (report, code) = scene.database.json(&["sweep", "--output", "json"]).await?;
    assert_eq!(code, 0);
    assert_eq!(report["tables"][0]["outcome"], "dropped");
    assert_eq!(report["tables"][1]["outcome"], "dropped");
    assert_eq!(report["tables"][2]["outcome"], "nothing_to_do");
    Ok(())
}
