//! Tests of request ids, of the client and generated.

use anyhow::{Context, Result};

use super::Scene;

#[tokio::test]
async fn an_id_comes_back_and_is_made_where_none_was_given() -> Result<()> {
    let scene = Scene::new().await?;
    let given = scene.client.with("x-request-id", "job-17/3");
    // With every kind of answer: good, refused, and of no path.
    for path in
        ["/livez", "/v1/livez?x=y", "/nowhere", "/v1/catalogs/lake/maintenance/partition-retention"]
    {
        assert_eq!(given.get(path).await?.header("x-request-id"), Some("job-17/3"), "{path}");
    }
    let long = scene.client.with("x-request-id", &"x".repeat(300)).get("/livez").await?;
    assert_eq!(long.header("x-request-id"), Some(&*"x".repeat(128)));
    let odd = scene.client.with("x-request-id", "a b\tc<script>").get("/livez").await?;
    assert_eq!(odd.header("x-request-id"), Some("abcscript"));

    let made = async || -> Result<uuid::Uuid> {
        let answer = scene.client.get("/livez").await?;
        Ok(answer.header("x-request-id").context("an id")?.parse()?)
    };
    assert_ne!(made().await?, made().await?);
    Ok(())
}
