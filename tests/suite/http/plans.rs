//! Tests of the plan of one table over HTTP.

use anyhow::Result;

use super::Scene;

#[tokio::test]
async fn the_plan_is_that_of_the_program() -> Result<()> {
    let scene = Scene::new().await?;
    scene.database.policy("lake", "events.raw", "at", "7d").await?;
    let at = "2026-09-17T00:00:00Z";
    let program = scene
        .database
        .done(&[
            "plan",
            "--catalog",
            "lake",
            "--table",
            "events.raw",
            "--at",
            at,
            "--output",
            "json",
        ])
        .await?;
    let answer = scene.client.get(&scene.policy(&format!("/plan?at={at}"))).await?;
    assert_eq!((answer.status, answer.json()?), (200, program));

    let now = scene.client.get(&scene.policy("/plan")).await?.json()?;
    assert_eq!(now["tables"][0]["expired"].as_array().map(Vec::len), Some(2));
    assert_eq!(now["tables"][0]["kept_files"], 1);
    let head = scene.catalog.head().await?;
    assert_eq!(scene.table.live_files().await?.len(), 3, "nothing is dropped, at {head}");

    let wrong = scene.client.get(&scene.policy("/plan?at=yesterday")).await?;
    assert_eq!((wrong.status, &wrong.json()?["error"]), (400, &serde_json::json!("bad_request")));
    Ok(())
}
