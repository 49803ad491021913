//! Tests of the history of policies: each change with who made it and why, and nothing else.

use std::time::Duration;

use anyhow::Result;
use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};
use tailrace::catalog::connect::close;
use tailrace::policy::history::purge;
use tailrace_kit::lake::Field;

use super::properties::{PROPERTY, with_property};
use crate::http::Scene;
use crate::support::TestDatabase;

const HISTORY: [&str; 4] = ["policy", "history", "lake", "events.raw"];

/// The changes, the newest first, without ids and times.
async fn changes(database: &TestDatabase) -> Result<Vec<Value>> {
    let answer = database.done(&[&HISTORY[..], &["--output", "json"]].concat()).await?;
    assert_eq!(answer["next_before"], json!(null));
    Ok(bare(&answer))
}

fn bare(answer: &Value) -> Vec<Value> {
    let mut changes = answer["changes"].as_array().cloned().unwrap_or_default();
    for change in changes.iter_mut().filter_map(Value::as_object_mut) {
        change.retain(|key, _| key != "change_id" && key != "changed_at");
    }
    changes
}

fn rule(field_id: i64, keep: &str, mode: &str) -> Value {
    json!({"field": "day(at)", "source_field_id": field_id, "keep": keep, "mode": mode, "fence": false})
}

async fn governable() -> Result<(TestDatabase, i64)> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    Ok((database, table.field_id("at")?))
}

#[tokio::test]
async fn each_change_is_noted_with_who_and_why() -> Result<()> {
    let (database, at) = governable().await?;
    assert_eq!(
        database.ran(&HISTORY).await?.out,
        "No change of a policy of lake events.raw is noted\n"
    );
    let set = ["policy", "set", "lake", "events.raw", "--field", "day(at)", "--by", "ann"];
    let run = async |more: &[&str]| database.ran(&[&set[..], more].concat()).await;
    assert_eq!(run(&["--keep", "7d", "--reason", "case 7"]).await?.code, 0);
    assert_eq!(run(&["--keep", "7d"]).await?.code, 0);
    assert_eq!(run(&["--keep", "8d", "--mode", "observe"]).await?.code, 0);
    assert_eq!(run(&["--keep", "never"]).await?.code, 2);
    let unset = ["policy", "unset", "lake", "events.raw", "--by", "ben", "--reason", "it is over"];
    let ran = database.ran(&unset).await?;
    assert_eq!(ran.code, 0);
    let [event] = &ran.events("policy_unset")[..] else { panic!("{ran:?}") };
    assert_eq!((&event["by"], &event["reason"]), (&json!("ben"), &json!("it is over")));
    let (first, second) = (rule(at, "7d", "enforce"), rule(at, "8d", "observe"));
    let change = |by: &str, before: &Value, after: &Value, reason: Value| json!({"changed_by": by, "source": "stored", "before": before, "after": after, "reason": reason});
    assert_eq!(
        changes(&database).await?,
        [
            change("ben", &second, &json!(null), json!("it is over")),
            change("ann", &first, &second, json!(null)),
            change("ann", &json!(null), &first, json!("case 7")),
        ]
    );
    let text = database.ran(&[&HISTORY[..], &["--limit", "1"]].concat()).await?.out;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("3  20"), "{text}");
    assert!(lines[0].ends_with("Z  stored policy, changed by ben"), "{text}");
    assert_eq!(
        lines[1..],
        [
            "  from    day(at) keep 8d, observe",
            "  to      none",
            "  reason  it is over",
            "There are older ones: --before 3",
        ]
    );
    let text =
        database.ran(&[&HISTORY[..], &["--limit", "1", "--before", "2"]].concat()).await?.out;
    assert!(
        text.ends_with("  from    none\n  to      day(at) keep 7d, enforce\n  reason  case 7\n")
    );
    Ok(())
}

#[tokio::test]
async fn a_reason_is_noted_also_where_nothing_changes() -> Result<()> {
    let (database, at) = governable().await?;
    let set = ["policy", "set", "lake", "events.raw", "--field", "day(at)", "--keep", "7d"];
    database.ran(&set).await?;
    database.ran(&[&set[..], &["--reason", "looked at again"]].concat()).await?;
    database.ran(&[&set[..], &["--reason", " "]].concat()).await?;
    let [again, _] = &changes(&database).await?[..] else { panic!("two changes") };
    assert_eq!((&again["before"], &again["after"]), (&rule(at, "7d", "enforce"), &again["before"]));
    assert_eq!(again["reason"], "looked at again");
    Ok(())
}

/// A pass notes what became of the property, once; a plan notes nothing.
#[tokio::test]
async fn what_a_property_said_is_noted_by_passes() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = with_property(&database, r#"{"field": "day(at)", "keep": "7d"}"#).await?;
    let at = table.field_id("at")?;
    database.plan_one("2026-09-25T00:00:00Z").await?;
    assert_eq!(changes(&database).await?, [] as [Value; 0]);
    for text in [None, Some("{"), Some("{"), None] {
        for _ in 0..2 {
            database.sweep().await?;
        }
        table.set_property(PROPERTY, text).await?;
    }
    let followed = rule(at, "7d", "enforce");
    let found = changes(&database).await?;
    // The text was gone before it was wrong, so nothing was there of which it could be noted.
    let expected = [(&followed, &json!(null)), (&json!(null), &followed)];
    let seen: Vec<_> = found.iter().map(|change| (&change["before"], &change["after"])).collect();
    assert_eq!(seen, expected);
    table.set_property(PROPERTY, Some(r#"{"field": "day(at)", "keep": "9d"}"#)).await?;
    database.sweep().await?;
    table.set_property(PROPERTY, Some("[]")).await?;
    database.sweep().await?;
    database.sweep().await?;
    let found = changes(&database).await?;
    assert_eq!(found.len(), 4, "{found:?}");
    let longer = rule(at, "9d", "enforce");
    assert_eq!(found[0]["before"], longer);
    assert_eq!((&found[1]["before"], &found[1]["after"]), (&json!(null), &longer));
    let problem = found[0]["after"]["problem"].as_str().unwrap_or_default();
    assert!(problem.starts_with("table property partition_retention is not followed"), "{problem}");
    for change in &found {
        assert_eq!(
            (&change["source"], &change["changed_by"]),
            (&json!("property"), &json!("table property"))
        );
    }
    Ok(())
}

#[tokio::test]
async fn over_http_it_is_set_with_a_reason_and_read_in_pages() -> Result<()> {
    let scene = Scene::new().await?;
    let path = scene.policy("");
    for keep in ["7d", "8d"] {
        let body = json!({"field": "day(at)", "keep": keep, "reason": format!("now {keep}")});
        assert_eq!(scene.client.json("PUT", &path, &body.to_string()).await?.status, 200);
    }
    let path = scene.policy("?reason=it%20is%20over");
    assert_eq!(scene.client.send("DELETE", &path, b"").await?.told(), (204, ""));
    let page = scene.client.get(&scene.policy("/history?limit=2")).await?.json()?;
    let reasons = |page: &Value| -> Vec<Value> {
        bare(page).iter().map(|change| change["reason"].clone()).collect()
    };
    assert_eq!(reasons(&page), ["it is over", "now 8d"]);
    assert_eq!(bare(&page)[0]["changed_by"], "http");
    let next = scene.policy(&format!("/history?before={}", page["next_before"]));
    let page = scene.client.get(&next).await?.json()?;
    assert_eq!(reasons(&page), ["now 7d"]);
    assert_eq!(page["next_before"], json!(null));

    let refused = r#"{"detail":"limit is 1001, not between 1 and 1000","error":"validation"}"#;
    let answer = scene.client.get(&scene.policy("/history?limit=1001")).await?;
    assert_eq!(answer.told(), (422, refused));
    let long = json!({"field": "day(at)", "keep": "9d", "reason": "x".repeat(8 * 1024 + 1)});
    let answer = scene.client.json("PUT", &scene.policy(""), &long.to_string()).await?;
    assert_eq!(answer.status, 422, "{answer:?}");
    assert_eq!(scene.client.get(&scene.policy("")).await?.status, 404);
    Ok(())
}

/// By the name that it had, as long as no other table has it; one of which no policy ever changed is not there.
#[tokio::test]
async fn a_table_that_is_gone_has_its_history() -> Result<()> {
    let scene = Scene::new().await?;
    scene.database.policy("lake", "events.raw", "day(at)", "7d").await?;
    scene.table.drop_table().await?;
    let unset = ["policy", "unset", "lake", "events.raw", "--reason", "the table is gone"];
    assert_eq!(scene.database.ran(&unset).await?.code, 0);
    let seen = changes(&scene.database).await?;
    assert_eq!((seen.len(), &seen[0]["after"]), (2, &json!(null)), "{seen:?}");
    assert_eq!(seen[0]["reason"], "the table is gone");
    let answer = scene.client.get(&scene.policy("/history")).await?;
    assert_eq!((answer.status, bare(&answer.json()?)), (200, seen));
    // Taken away once, it is not noted again.
    assert_eq!(scene.database.ran(&unset).await?.code, 1);
    assert_eq!(changes(&scene.database).await?.len(), 2);

    let never = scene.database.ran(&["policy", "history", "lake", "events.never"]).await?;
    assert_eq!((never.code, never.out.as_str()), (1, ""));
    scene.database.table(&scene.catalog, "raw", &[Field::day("at")]).await?;
    assert_eq!(changes(&scene.database).await?, [] as [Value; 0]);
    Ok(())
}

/// Old changes go, but for the newest of a table that has a policy.
#[tokio::test]
async fn old_changes_go_and_the_newest_stays() -> Result<()> {
    let (database, _) = governable().await?;
    let set = ["policy", "set", "lake", "events.raw", "--field", "day(at)", "--keep"];
    for keep in ["7d", "8d"] {
        database.ran(&[&set[..], &[keep]].concat()).await?;
    }
    let mut session = database.tailrace().session().await?;
    let (now, keep) = (Utc::now(), Duration::from_secs(90 * 86_400));
    purge(&mut session, now, keep, &[]).await?;
    assert_eq!(changes(&database).await?.len(), 2);
    let later = now + TimeDelta::days(91);
    let catalog_id: i64 =
        database.text("SELECT catalog_id FROM hog_catalog").await?.unwrap_or_default().parse()?;
    purge(&mut session, later, keep, &[catalog_id]).await?;
    assert_eq!(changes(&database).await?.len(), 2);
    purge(&mut session, later, keep, &[]).await?;
    let [newest] = &changes(&database).await?[..] else { panic!("one change") };
    assert_eq!(newest["after"]["keep"], "8d");
    database.sql("DELETE FROM tailrace.policy").await?;
    purge(&mut session, later, keep, &[]).await?;
    close(session).await;
    assert_eq!(changes(&database).await?, [] as [Value; 0]);
    Ok(())
}
