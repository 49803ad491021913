//! Tests of what is shown of the newest values: windows, claims, verify, explain, policies and their history.

use anyhow::Result;
use serde_json::{Value, json};
use tailrace_kit::lake::Field;

use crate::explicit::{Scene, file};
use crate::support::TestDatabase;
use crate::support::program::{days_ago, settings};

/// SQL does not tell which the newest are: nothing of the table is in the window, not even what a pass drops.
#[tokio::test]
async fn what_a_policy_keeps_newest_is_in_no_window() -> Result<()> {
    let scene = Scene::of_days(&[40, 39], "1").await?;
    let window = async || -> Result<(bool, i64)> {
        let is_in = sqlx::query_scalar("select tailrace.in_drop_window($1, $2, 1, array[$3])")
            .bind(scene.catalog.catalog_id)
            .bind(scene.table.table_id)
            .bind(days_ago(40));
        let is_in = is_in.fetch_one(&scene.database.pool).await?;
        let view = sqlx::query_scalar("select count(*) from tailrace.drop_window");
        Ok((is_in, view.fetch_one(&scene.database.pool).await?))
    };
    assert_eq!(window().await?, (false, 0));
    scene.keeps(&["--keep-last", "0"]).await?;
    assert_eq!(window().await?, (true, 1));
    // A property that keeps some has no say beside a stored policy that keeps none.
    let text = r#"{"field": "day(at)", "keep": "7d", "keep_last": 1}"#;
    scene.table.set_property("partition_retention", Some(text)).await?;
    scene.database.sweep().await?;
    assert_eq!(window().await?, (true, 1));
    let unset = ["policy", "unset", "lake", "events.raw", "--yes"];
    assert_eq!(scene.database.ran(&unset).await?.code, 0);
    assert_eq!(window().await?, (false, 0));
    Ok(())
}

/// The daemon claims what a pass would end, and nothing else.
#[tokio::test]
async fn the_newest_are_not_claimed() -> Result<()> {
    let scene = crate::claims::Scene::new().await?;
    let ids = scene.files(&[40, 39, 38]).await?;
    scene.renew().await?;
    assert_eq!(scene.claimed().await?, ids);
    let set = ["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "7d"];
    let ran = scene.database.ran(&[&set[..], &["--keep-last", "2"]].concat()).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    scene.renew().await?;
    assert_eq!(scene.claimed().await?, ids[..1]);
    Ok(())
}

#[tokio::test]
async fn verify_counts_nothing_newest_as_overdue() -> Result<()> {
    let scene = Scene::of_days(&[40, 39], "0").await?;
    scene
        .database
        .sql(
            "update hog_snapshot set snapshot_time = snapshot_time - interval '3 days';
             update tailrace.policy set updated_at = updated_at - interval '3 days'",
        )
        .await?;
    let verify = ["verify", "--catalog", "lake", "--output", "json"];
    assert_eq!(scene.database.json(&verify).await?.1, 3);
    scene.database.sql("update tailrace.policy set keep_last = 2").await?;
    assert_eq!(scene.database.json(&verify).await?.1, 0);
    // A pass has noted that both wait. One is not among the newest any more; passes need time to see that.
    scene.database.sweep().await?;
    scene.add(&[20]).await?;
    assert_eq!(scene.database.json(&verify).await?.1, 0);
    Ok(())
}

#[tokio::test]
async fn explain_tells_that_a_partition_is_among_the_newest() -> Result<()> {
    let scene = Scene::of_days(&[40, 39], "1").await?;
    let explained = async |age| -> Result<Value> {
        let values = json!([days_ago(age)]).to_string();
        let args = ["explain", "lake", "events.raw", "--partition", &values, "--output", "json"];
        scene.database.done(&args).await
    };
    let kept = explained(39).await?;
    assert_eq!((&kept["outlook"], &kept["rule"]["keep_last"]), (&json!("blocked"), &json!(1)));
    assert_eq!(kept["blocked_by"][0]["by"], "among_newest");
    assert_eq!(explained(40).await?["outlook"], "next_pass");
    scene.swept(&settings()).await?;
    assert_eq!(explained(39).await?["blocked_by"].as_array().map(Vec::len), Some(1));
    Ok(())
}

/// Setting a policy leaves the number as it is, a property's too; each change is in the history.
#[tokio::test]
async fn the_number_stays_until_somebody_changes_it() -> Result<()> {
    let scene = Scene::of_days(&[40], "3").await?;
    let number = async || -> Result<Value> {
        let policies = scene
            .database
            .policies(&["policy", "get", "lake", "events.raw", "--output", "json"])
            .await?;
        Ok(policies[0]["keep_last"].clone())
    };
    assert_eq!(number().await?, 3);
    scene.keeps(&["--mode", "observe"]).await?;
    assert_eq!(number().await?, 3);
    let text = scene.database.ran(&["policy", "get", "lake", "events.raw"]).await?.out;
    assert!(text.starts_with("lake events.raw: at keep 7d and the newest 3, observe\n"), "{text}");
    scene.keeps(&["--keep-last", "0"]).await?;
    assert_eq!(number().await?, Value::Null);
    for refused in ["-1", "10001"] {
        let set = ["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "7d"];
        let ran = scene.database.ran(&[&set[..], &["--keep-last", refused]].concat()).await?;
        assert_eq!(ran.code, 1);
        let said = format!("keep_last is {refused}, and must be a number from 0 to 10000");
        assert!(ran.err.contains(&said), "{}", ran.err);
    }
    let history = ["policy", "history", "lake", "events.raw", "--output", "json"];
    let changes = scene.database.done(&history).await?["changes"].clone();
    let numbers = |side: &str| {
        let changes = changes.as_array().cloned().unwrap_or_default().into_iter();
        changes.map(|change| change[side]["keep_last"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(numbers("after"), [json!(null), json!(3), json!(3)]);
    assert_eq!(numbers("before"), [json!(3), json!(3), json!(null)]);
    Ok(())
}

#[tokio::test]
async fn a_property_keeps_the_newest_as_well() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append([40, 39, 38].map(|age| file(&days_ago(age))).to_vec()).await?;
    let text = r#"{"field": "day(at)", "keep": "7d", "keep_last": 2}"#;
    table.set_property("partition_retention", Some(text)).await?;
    database.sweep().await?;
    let scene = Scene { database, catalog, table };
    assert_eq!(scene.ages().await?, [39, 38]);
    // A stored policy that takes its place keeps no fewer unasked.
    scene.keeps(&[]).await?;
    let policies = scene
        .database
        .policies(&["policy", "get", "lake", "events.raw", "--output", "json"])
        .await?;
    assert_eq!((&policies[0]["source"], &policies[0]["keep_last"]), (&json!("stored"), &json!(2)));
    for (number, problem) in
        [("\"2\"", "invalid type"), ("-1", "keep_last is -1"), ("1.5", "invalid")]
    {
        let text = format!(r#"{{"field": "day(at)", "keep": "7d", "keep_last": {number}}}"#);
        scene.table.set_property("partition_retention", Some(&text)).await?;
        scene.database.sweep().await?;
        let policies = scene
            .database
            .policies(&["policy", "get", "lake", "events.raw", "--output", "json"])
            .await?;
        let said = policies[1]["problem"].as_str().unwrap_or_default();
        assert!(said.contains(problem), "{number}: {said}");
    }
    Ok(())
}

#[tokio::test]
async fn the_number_is_set_over_http() -> Result<()> {
    let scene = crate::http::Scene::new().await?;
    let body = r#"{"field": "at", "keep": "7d", "keep_last": 4}"#;
    let answer = scene.client.json("PUT", &scene.policy(""), body).await?.json()?;
    assert_eq!(answer["policies"][0]["keep_last"], 4);
    let body = r#"{"field": "at", "keep": "7d", "keep_last": 10001}"#;
    let refused = scene.client.json("PUT", &scene.policy(""), body).await?;
    assert_eq!(refused.status, 422, "{refused:?}");
    Ok(())
}
