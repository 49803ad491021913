//! Tests of pauses and holds over HTTP.

use anyhow::Result;
use serde_json::json;

use crate::http::{Scene, TABLE};

#[tokio::test]
async fn pauses_are_put_listed_and_deleted() -> Result<()> {
    let scene = Scene::new().await?;
    let reason = r#"{"reason": "repair"}"#;
    for path in [format!("{TABLE}/pause"), "/v1/catalogs/lake/pause".into(), "/v1/pause".into()] {
        let put = scene.client.json("PUT", &path, reason).await?;
        assert_eq!(put.status, 200, "{put:?}");
        let pause = put.json()?;
        assert_eq!((&pause["reason"], &pause["paused_by"]), (&json!("repair"), &json!("http")));
        let again = scene.client.json("PUT", &path, r#"{"reason": "other"}"#).await?;
        assert_eq!((again.status, again.json()?), (200, pause.clone()));
        let listed = scene.client.get("/v1/pauses").await?.json()?;
        assert_eq!(listed, json!({"pauses": [pause]}));
        let drop = json!({
            "idempotency_key": uuid::Uuid::new_v4(), "partitions": [{"partition_values": ["1"]}],
        });
        let drop = drop.to_string();
        let refused = scene.client.json("POST", &format!("{TABLE}/partitions/drop"), &drop).await?;
        assert_eq!((refused.status, &refused.json()?["error"]), (409, &json!("paused")));
        let deleted = scene.client.send("DELETE", &path, b"").await?;
        assert_eq!((deleted.status, deleted.json()?), (200, json!({"pauses": [pause]})));
        assert_eq!(scene.client.send("DELETE", &path, b"").await?.status, 404);
    }
    for (path, body, status) in [
        ("/v1/pause", r#"{"reason": ""}"#, 422),
        ("/v1/pause", "{}", 400),
        ("/v1/catalogs/pond/pause", reason, 404),
    ] {
        let put = scene.client.json("PUT", path, body).await?;
        assert_eq!(put.status, status, "{path} {body} {put:?}");
    }
    Ok(())
}

#[tokio::test]
async fn holds_are_posted_listed_and_deleted() -> Result<()> {
    let scene = Scene::new().await?;
    let day = crate::support::program::days_ago(9);
    let path = format!("{TABLE}/holds");
    let body = json!({"partitions": [{"partition_values": [day]}], "reason": "case 7"});
    let made = scene.client.json("POST", &path, &body.to_string()).await?;
    assert_eq!(made.status, 200, "{made:?}");
    let made = made.json()?;
    assert_eq!((&made["held_by"], &made["keeps"]["files"]), (&json!("http"), &json!(1)));
    for path in [path.as_str(), "/v1/holds"] {
        let listed = scene.client.get(path).await?.json()?;
        assert_eq!(listed["holds"][0]["hold_id"], made["hold_id"], "{path}");
        assert_eq!(listed["holds"][0]["keeps"]["partitions"], 1, "{path}");
    }
    let drop = json!({
        "idempotency_key": uuid::Uuid::new_v4(), "partitions": [{"partition_values": [day]}],
    });
    let drops = format!("{TABLE}/partitions/drop");
    let refused = scene.client.json("POST", &drops, &drop.to_string()).await?;
    let body = refused.json()?;
    assert_eq!((refused.status, &body["error"]), (409, &json!("partition_held")));
    assert_eq!(body["partitions"], json!([{"spec_id": 1, "values": [day]}]));
    let hold = format!("/v1/holds/{}", made["hold_id"]);
    assert_eq!(scene.client.send("DELETE", &hold, b"").await?.told(), (204, ""));
    assert_eq!(scene.client.send("DELETE", &hold, b"").await?.status, 404);
    for (body, status) in [
        (json!({"reason": ""}), 422),
        (json!({"partitions": [], "reason": "x"}), 422),
        (json!({"column": "at", "reason": "x"}), 422),
        (json!({"until": "soon", "reason": "x"}), 422),
        (json!({"why": "x"}), 400),
    ] {
        let made = scene.client.json("POST", &path, &body.to_string()).await?;
        assert_eq!(made.status, status, "{body} {made:?}");
    }
    Ok(())
}
