//! Tests of pauses and holds over HTTP.

use anyhow::Result;
use serde_json::json;

use crate::http::{Scene, TABLE, tokens};
use crate::support::program::days_ago;
use tailrace_kit::lake::NewFile;

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

/// Whoever set the policy may not approve what it drops, nor confirm it.
#[tokio::test]
async fn four_eyes_are_two_tokens() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("tokens");
    let text = tokens::line("anna", "operator", "one") + &tokens::line("ben", "operator", "two");
    tokens::write(&file, &text)?;
    let scene = Scene::with(&[
        ("TAILRACE__HTTP__TOKENS_FILE", &file.display().to_string()),
        ("TAILRACE__GUARD__FOUR_EYES", "true"),
        ("TAILRACE__GUARD__MIN_DROP_FILES", "3"),
    ])
    .await?;
    let files = (10..20).map(|day| NewFile::of([days_ago(day).as_str()])).collect();
    scene.table.append(files).await?;
    let client = scene.client.with("content-type", "application/json");
    let (anna, ben) = (client.token("one"), client.token("two"));
    let path = format!("{TABLE}/partition-retention");
    let policy = json!({"field": "day(at)", "keep": "7d", "confirmed": true});
    let refused = anna.json("PUT", &path, &policy.to_string()).await?;
    assert_eq!((refused.status, &refused.json()?["error"]), (403, &json!("four_eyes")));
    let policy = json!({"field": "day(at)", "keep": "7d"});
    assert_eq!(anna.json("PUT", &path, &policy.to_string()).await?.status, 200);
    let plan = anna.get(&format!("{path}/plan")).await?.json()?;
    let held = &plan["tables"][0]["blast_radius"];
    assert_eq!(held["partitions"], json!(plan["tables"][0]["kept"]["blast_radius"]));
    let approvals = "/v1/catalogs/lake/approvals";
    let body = json!({"namespace": "events", "table": "raw", "digest": held["digest"]}).to_string();
    let own = anna.json("POST", approvals, &body).await?;
    assert_eq!((own.status, &own.json()?["error"]), (403, &json!("four_eyes")));
    let wrong = json!({"digest": "0123"}).to_string();
    let drift = ben.json("POST", approvals, &wrong).await?;
    assert_eq!((drift.status, &drift.json()?["error"]), (409, &json!("plan_drift")));
    assert_eq!(drift.json()?["drift"].as_array().map(Vec::len), Some(1));
    let approved = ben.json("POST", approvals, &body).await?;
    assert_eq!(approved.status, 200, "{approved:?}");
    let approved = approved.json()?;
    assert_eq!(approved["approvals"][0]["approved_by"], json!("ben"));
    assert_eq!(approved["approvals"][0]["partitions"], held["partitions"]);
    assert_eq!(anna.get(approvals).await?.json()?, approved);
    for (body, status) in [
        (json!({}), 422),
        (json!({"digest": "0", "table": "raw"}), 422),
        (json!({"digest": "0", "who": "me"}), 400),
    ] {
        let answer = ben.json("POST", approvals, &body.to_string()).await?;
        assert_eq!(answer.status, status, "{body} {answer:?}");
    }
    let gone = ben.json("POST", "/v1/catalogs/pond/approvals", &wrong).await?;
    assert_eq!(gone.status, 404);
    Ok(())
}
