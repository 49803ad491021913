//! Tests of policies over HTTP: set, read, deleted.

use anyhow::Result;
use serde_json::json;
use tailrace_kit::lake::Field;

use super::Scene;
use crate::support::program::days_ago;

#[tokio::test]
async fn a_policy_is_set_shown_changed_and_taken_away() -> Result<()> {
    let scene = Scene::new().await?;
    let path = scene.policy("");
    let put = scene
        .client
        .json("PUT", &path, r#"{"field": "day(at)", "keep": "7d", "mode": "observe"}"#)
        .await?;
    assert_eq!(put.status, 200, "{put:?}");
    let policy = put.json()?["policies"][0].clone();
    for (key, value) in [
        ("catalog", json!("lake")),
        ("namespace", json!("events")),
        ("table", json!("raw")),
        ("source", json!("stored")),
        ("in_force", json!(true)),
        ("field", json!("day(at)")),
        ("column", json!("at")),
        ("keep", json!("7d")),
        ("keep_seconds", json!(604_800)),
        ("mode", json!("observe")),
        ("updated_by", json!("http")),
        ("problem", json!(null)),
    ] {
        assert_eq!(policy[key], value, "{key}");
    }
    let shown = scene.client.get(&path).await?;
    assert_eq!((shown.status, &shown.body), (200, &put.body));
    let same =
        scene.database.policies(&["policy", "get", "lake", "events.raw", "--output", "json"]);
    assert_eq!(same.await?, json!([policy]));

    let changed = scene.client.json("PUT", &path, r#"{"field": "at", "keep": "8d"}"#).await?;
    let changed = changed.json()?["policies"][0].clone();
    assert_eq!((&changed["keep"], &changed["mode"]), (&json!("8d"), &json!("observe")));
    assert_ne!(changed["revision"], policy["revision"]);

    assert_eq!(scene.client.send("DELETE", &path, b"").await?.told(), (204, ""));
    let gone = r#"{"detail":"table events.raw has no policy","error":"not_found"}"#;
    assert_eq!(scene.client.get(&path).await?.told(), (404, gone));
    assert_eq!(scene.client.send("DELETE", &path, b"").await?.told(), (404, gone));
    Ok(())
}

#[tokio::test]
async fn a_wrong_policy_is_422_in_words() -> Result<()> {
    let scene = Scene::new().await?;
    for (body, status, detail) in [
        (
            r#"{"field": "at", "keep": "1M"}"#,
            422,
            r#"keep \"1M\" is in months, and months differ in length (1 month is 28 to 31 days): say 31d"#,
        ),
        (
            r#"{"field": "at", "keep": "1m"}"#,
            422,
            r#"keep \"1m\" is less than guard.min_keep (1h): keep more, or lower that guard"#,
        ),
        (
            r#"{"field": "at", "keep": "7d", "mode": "delete"}"#,
            400,
            "the body is not what it should be: mode: unknown variant `delete`, expected one of `enforce`, `observe`, `paused` at line 1 column 46",
        ),
        (
            r#"{"field": "at", "keep": "7d", "mode": {"observe": null}}"#,
            400,
            "the body is not what it should be: mode: invalid type: map, expected a text at line 1 column 38",
        ),
        (
            r#"["at", "7d"]"#,
            400,
            "the body is not what it should be: invalid type: sequence, expected an object at line 1 column 0",
        ),
        (
            r#"{"field": "at"}"#,
            400,
            "the body is not what it should be: missing field `keep` at line 1 column 15",
        ),
        (
            r#"{"field": "at", "keep": "7d", "by": "me"}"#,
            400,
            "the body is not what it should be: by: unknown field `by`, expected one of `field`, `keep`, `keep_last`, `mode`, `fence`, `reason`, `confirmed` at line 1 column 34",
        ),
    ] {
        let code = if status == 422 { "validation" } else { "bad_request" };
        let expected = format!(r#"{{"detail":"{detail}","error":"{code}"}}"#);
        let answer = scene.client.json("PUT", &scene.policy(""), body).await?;
        assert_eq!(answer.told(), (status, expected.as_str()), "{body}");
    }
    let nothing = r#"{"field": "kind", "keep": "7d"}"#;
    let answer = scene.client.json("PUT", &scene.policy(""), nothing).await?;
    assert_eq!((answer.status, &answer.json()?["error"]), (422, &json!("validation")));
    Ok(())
}

#[tokio::test]
async fn where_the_property_would_take_over_it_has_to_be_said() -> Result<()> {
    let scene = Scene::new().await?;
    let path = scene.policy("");
    scene.client.json("PUT", &path, r#"{"field": "at", "keep": "90d"}"#).await?;
    scene
        .table
        .set_property("partition_retention", Some(r#"{"field": "day(at)", "keep": "7d"}"#))
        .await?;
    let answer = scene.client.send("DELETE", &path, b"").await?;
    let expected = r#"{"detail":"the table's property partition_retention takes over: day(at) keep 7d, enforce; at the moment it would drop 2 partitions with 2 files, 20 records and 200 bytes; accept_property=true lets it","error":"property_takes_over"}"#;
    assert_eq!(answer.told(), (409, expected));
    assert_eq!(scene.client.get(&path).await?.json()?["policies"][0]["keep"], "90d");
    let refused = scene.client.send("DELETE", &format!("{path}?accept_property=yes"), b"").await?;
    assert_eq!(refused.status, 400);

    let accepted = format!("{path}?accept_property=true");
    assert_eq!(scene.client.send("DELETE", &accepted, b"").await?.told(), (204, ""));
    let gone = r#"{"detail":"table events.raw has no policy; its property partition_retention is the table's own","error":"not_found"}"#;
    assert_eq!(scene.client.send("DELETE", &accepted, b"").await?.told(), (404, gone));
    let values = crate::support::governed::live_values(&scene.table).await?;
    assert_eq!(values.len(), 3, "taking a policy away drops nothing: {values:?}, {}", days_ago(9));
    Ok(())
}

/// No policy follows the name to a table that is made anew; DELETE forgets the one that is gone with its
/// table, whether or not there is a table of the name.
#[tokio::test]
async fn a_policy_of_a_table_that_is_gone_is_forgotten_on_demand() -> Result<()> {
    let scene = Scene::new().await?;
    let (path, body) = (scene.policy(""), r#"{"field": "day(at)", "keep": "7d"}"#);
    let none = r#"{"detail":"table events.raw has no policy","error":"not_found"}"#;
    let no_table =
        r#"{"detail":"there is no table events.raw in catalog \"lake\"","error":"not_found"}"#;
    let kept = "SELECT count(*) FROM tailrace.policy";
    assert_eq!(scene.client.json("PUT", &path, body).await?.status, 200);
    scene.table.drop_table().await?;
    assert_eq!(scene.client.get(&path).await?.told(), (404, no_table));
    assert_eq!(scene.client.send("DELETE", &path, b"").await?.told(), (204, ""));
    assert_eq!(scene.client.send("DELETE", &path, b"").await?.told(), (404, no_table));

    let again = scene.database.table(&scene.table.catalog, "raw", &[Field::day("at")]).await?;
    assert_eq!(scene.client.json("PUT", &path, body).await?.status, 200);
    again.drop_table().await?;
    scene.database.table(&scene.table.catalog, "raw", &[Field::day("at")]).await?;
    assert_eq!(scene.client.get(&path).await?.told(), (404, none));
    assert_eq!(scene.database.text(kept).await?.as_deref(), Some("1"));
    assert_eq!(scene.client.send("DELETE", &path, b"").await?.told(), (204, ""));
    assert_eq!(scene.client.send("DELETE", &path, b"").await?.told(), (404, none));
    assert_eq!(scene.database.text(kept).await?.as_deref(), Some("0"));
    Ok(())
}
